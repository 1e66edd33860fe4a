//! Scenario files: the network between two hosts, their traffic, and the number of runs.
//!
//! A scenario is a TOML file with units in its strings. Reading gives a [`Scenario`] in which every default is filled in, or all
//! problems of the file at once. Unknown keys are errors, so that a misspelled one is not taken for its default.
//!
//! Each section of the file is one table of fields: key, form and range of the value, default, help text. The reader with its error
//! places, the canonical writer, completions, the key reference of the book and the classes of the Python package come from these
//! tables. Rules across fields are next to them.
//!
//! ```
//! use anabranch_scenario::Scenario;
//! let text = r#"
//! [run]
//! duration = "60 s"
//!
//! [[path]]
//! rate = "10 Mbit/s"
//! delay = "45 ms"
//! loss = 0.01
//! "#;
//! let set = ["path.path-1.delay=90 ms".parse()?];
//! let scenario = Scenario::parse(text, "example.toml", &set)?;
//! assert_eq!(scenario.paths[0].name, "path-1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod association;
mod background;
mod beside;
mod direction;
mod document;
mod draft;
mod error;
mod event;
mod fault;
mod field;
mod flow;
mod form;
mod forward;
mod frame_type;
mod handover;
mod impairment;
mod inner;
mod key;
mod line;
mod link;
mod loss;
mod names;
mod origin;
mod overrides;
mod path;
mod queue;
mod reader;
mod reading;
mod reliability;
mod report;
mod run;
mod scheme;
mod section;
mod sections;
mod sweep;
mod text;
mod trace;
pub mod units;
mod whole;
mod writer;

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use anabranch_schemes::registry::Vocabulary;

use crate::fault::Fault;
use crate::link::DuplexRows;
use crate::origin::Origin;
use crate::report::Report;
use crate::scheme::SchemeRows;
use crate::section::{Described as _, Section as _};
use crate::writer::Writer;

pub use crate::association::{Association, Protection, UDP};
pub use crate::background::{Background, BackgroundSource, Control, Pieces, Reacting};
pub use crate::beside::MessagesBeside;
pub use crate::direction::{Direction, Directions};
pub use crate::draft::{Document, Draft, RawValue};
pub use crate::error::{Place, Problem, ProblemKind, ScenarioError};
pub use crate::event::{Change, Event};
pub use crate::field::{About, Field, Presence};
pub use crate::flow::{FileSource, Flow, FlowKind, MOST_PAYLOAD_BYTES, VideoFlow};
pub use crate::forward::{Datagrams, Exchange, Forwarded};
pub use crate::frame_type::FrameType;
pub use crate::handover::{Handover, Mover};
pub use crate::impairment::Impairments;
pub use crate::link::{Capacity, Delay, Duplex, Link, OneWay};
pub use crate::loss::{EACH_FLOW, Loss};
pub use crate::overrides::{Override, OverrideError};
pub use crate::path::Path;
pub use crate::queue::Queue;
pub use crate::reliability::FrameReliability;
pub use crate::run::{Run, Stop};
pub use crate::scheme::SchemeDefinition;
pub use crate::sections::{SectionInfo, keys, sections};
pub use crate::sweep::{Sweep, SweepError};
pub use crate::text::without_mark;
pub use crate::trace::{CapacityFile, SeriesFile, TraceFile};

/// A scenario with every default filled in and every reference checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Duration, repetitions and schemes.
    pub run: Run,
    /// Settings of every association.
    pub association: Association,
    /// Schemes that the scenario defines, in alphabetical order.
    pub schemes: Vec<SchemeDefinition>,
    /// Links that paths share.
    pub links: Vec<Link>,
    /// Paths between the hosts, at least one.
    pub paths: Vec<Path>,
    /// Flows, at least one.
    pub flows: Vec<Flow>,
}

impl Scenario {
    /// Reads a scenario file with overrides, later ones over earlier ones.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or all errors in the file.
    pub fn load(path: &FilePath, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        let bytes =
            fs::read(path).map_err(|cause| ScenarioError::Unreadable { file: file.clone(), cause })?;
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(&text, &file, overrides),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes());
                let report = Report::new(&file, &text, overrides);
                let message = "this is not text in UTF-8";
                let fault = Fault::explained(ProblemKind::Syntax, message, "save the file as UTF-8");
                report.add(&Origin::File(at..at), "", fault);
                report.finish(None)
            }
        }
    }

    /// Reads the text of a scenario. The name of the file is only used in errors.
    ///
    /// # Errors
    /// Returns all errors in the text, or the first error of TOML syntax.
    pub fn parse(text: &str, file: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        Draft::parse(text, file)?.read_scenario(overrides)
    }

    /// Returns the parts of scheme expressions: presets, components, and the scenario's own definitions. A definition that was
    /// changed after reading and is invalid is omitted.
    pub fn vocabulary(&self) -> Vocabulary {
        scheme::vocabulary(&self.schemes)
    }

    /// Returns both directions of all links, with their keys.
    pub fn ways(&self) -> impl Iterator<Item = (String, &OneWay)> {
        let links = self.links.iter().map(|link| ("link", &link.name, &link.duplex));
        let paths = self.paths.iter().filter_map(|path| Some(("path", &path.name, path.own.as_ref()?)));
        links.chain(paths).flat_map(|(list, name, duplex)| {
            let key = format!("{list}.{name}");
            [(key.clone(), &duplex.forward), (format!("{key}.reverse"), &duplex.reverse)]
        })
    }

    /// Replaces the paths of all traces of links.
    pub fn map_trace_paths(&mut self, map: impl Fn(&FilePath) -> PathBuf) {
        let links = self.links.iter_mut().map(|link| &mut link.duplex);
        for duplex in links.chain(self.paths.iter_mut().filter_map(|path| path.own.as_mut())) {
            duplex.forward.map_trace_paths(&map);
            duplex.reverse.map_trace_paths(&map);
        }
    }

    /// Returns the scenario as a file with all values, which reads as the same scenario.
    ///
    /// # Panics
    /// Panics if an index in `paths` or `flows` was changed to a nonexistent one.
    pub fn to_toml(&self) -> String {
        let mut out = Writer::default();
        out.table("run", false, |out| self.run.to_rows().write_rows(out));
        out.table("association", false, |out| self.association.write_rows(out));
        for scheme in &self.schemes {
            let name = format!("scheme.{}", scheme.name);
            out.table(&name, false, |out| SchemeRows::from(scheme).write_rows(out));
        }
        for link in &self.links {
            out.table("link", true, |out| {
                link::LinkRows { name: Some(link.name.clone()) }.write_rows(out);
                DuplexRows::from(&link.duplex).write_rows(out);
            });
        }
        for path in &self.paths {
            let via =
                path.via.iter().map(|&index| (self.links[index].name.clone(), Origin::Assumed)).collect();
            let via = Some(via).filter(|via: &Vec<_>| !via.is_empty());
            out.table("path", true, |out| {
                path::PathRows {
                    name: Some(path.name.clone()),
                    via,
                    handover: path.handover,
                    cost: Some(path.cost).filter(|cost| *cost != anabranch_core::PathCost::Free),
                }
                .write_rows(out);
                if let Some(own) = &path.own {
                    DuplexRows::from(own).write_rows(out);
                }
            });
        }
        let paths: Vec<&str> = self.paths.iter().map(|path| path.name.as_str()).collect();
        for flow in &self.flows {
            out.table("flow", true, |out| flow.to_rows(&paths).write_rows(out));
        }
        out.finish().0
    }
}

/// Returns the known word closest to an unknown one, if it is close enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase();
    let close = known.into_iter().filter_map(|candidate| {
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        let allowed = (word.chars().count().max(candidate.chars().count()) / 3).max(1);
        (distance <= allowed && distance < candidate.chars().count()).then_some((distance, candidate))
    });
    close.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}
