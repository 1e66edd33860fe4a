//! Scenario files: what lies between two hosts, what they send, and how often it is run.
//!
//! A scenario is a TOML file with units in its strings. Reading gives a [`Scenario`] in which every default is filled
//! in, or all that is wrong with the file at once. Keys that mean nothing are errors, so that a misspelled one cannot
//! be taken for its default.
//!
//! ```
//! use anabranch_lab::scenario::Scenario;
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
mod error;
mod event;
mod fault;
mod flow;
mod impairment;
mod key;
mod link;
mod loss;
mod names;
mod origin;
mod overrides;
mod path;
mod reader;
mod reliability;
mod report;
mod run;
mod scheme;
mod shape;
mod sweep;
mod text;
pub mod units;
mod video;
mod write;

use std::fs;
use std::path::Path as FilePath;

use anabranch_schemes::registry::Vocabulary;

use self::document::Table;
use self::fault::Fault;
use self::flow::Surroundings;
use self::names::Names;
use self::origin::Origin;
use self::reader::Reader;
use self::report::Report;

pub use self::association::{Association, Encapsulation, Protection, SendBuffer};
pub use self::background::{Background, TrafficModel};
pub use self::beside::MessagesBeside;
pub use self::direction::Direction;
pub use self::error::{Place, Problem, ProblemKind, ScenarioError};
pub use self::event::Event;
pub use self::flow::{FileSource, Flow, FlowDirection, FlowKind};
pub use self::impairment::Impairments;
pub use self::link::{Duplex, Link, OneWay};
pub use self::loss::{Loss, LossModel, LossPlace};
pub use self::overrides::{Override, OverrideError};
pub use self::path::Path;
pub use self::run::{Run, Stop};
pub use self::scheme::SchemeDefinition;
pub use self::sweep::{Sweep, SweepError};
pub use self::units::Queue;
pub use self::video::{FrameReliability, VideoFlow};

/// A scenario with every default filled in and every reference checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// How long, how often and with which schemes.
    pub run: Run,
    /// What holds for every association.
    pub association: Association,
    /// Schemes that it defines for itself, in the order of their names.
    pub schemes: Vec<SchemeDefinition>,
    /// Links that paths share.
    pub links: Vec<Link>,
    /// Paths between the hosts, one at least.
    pub paths: Vec<Path>,
    /// What is sent, one flow at least.
    pub flows: Vec<Flow>,
}

impl Scenario {
    /// Reads a scenario file and puts the overrides in, later ones over earlier ones.
    ///
    /// # Errors
    /// If the file cannot be read, or with all that is wrong in it.
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
                let fault = Fault::because(ProblemKind::Syntax, message, "save the file as UTF-8");
                report.add(&Origin::File(at..at), "", fault);
                report.finish(None)
            }
        }
    }

    /// Reads the text of a scenario. The name of the file is only used in errors.
    ///
    /// # Errors
    /// With all that is wrong in the text; if it is not TOML, with the first place where it is not.
    pub fn parse(text: &str, file: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        let report = Report::new(file, text, overrides);
        let mut root = match document::parse(text) {
            Ok(root) => root,
            Err(error) => {
                report.add(&Origin::File(error.at.clone()), "", error.fault());
                return report.finish(None);
            }
        };
        for (index, set) in overrides.iter().enumerate() {
            if let Err(fault) = set.apply(&mut root, index) {
                report.add(&Origin::Override(index), &set.key, fault);
            }
        }
        overrides::assume_flow(&mut root);
        let scenario = read(&root, &report);
        report.finish(scenario)
    }

    /// What scheme expressions may be made of: presets, components, and the scenario's own definitions. One that was changed
    /// since it was read, and is wrong now, is left out.
    pub fn vocabulary(&self) -> Vocabulary {
        scheme::vocabulary(&self.schemes)
    }

    /// The scenario as a file that says everything, which reads as the same scenario.
    ///
    /// # Panics
    /// If an index in `paths` or `flows` was changed to one that does not exist.
    pub fn to_toml(&self) -> String {
        write::scenario(self)
    }
}

fn read(root: &Table, report: &Report<'_>) -> Option<Scenario> {
    let mut root = Reader::new(root, Origin::Assumed, String::new(), report);
    let run = root.table("run").and_then(Run::read);
    let association = root.table("association").and_then(Association::read);
    let schemes = root.table("scheme").and_then(scheme::read_schemes);
    let (mut link_names, mut path_names) = (Names::new("link"), Names::new("path"));
    let links = root.tables("link").and_then(|readers| link::read_links(readers, &mut link_names));
    let paths = root.tables("path");
    let paths = paths.and_then(|readers| path::read_paths(&root, readers, &link_names, &mut path_names));
    let around =
        Surroundings { paths: &path_names, run: run.as_ref(), association: association.unwrap_or_default() };
    let flows = root.tables("flow").and_then(|readers| flow::read_flows(readers, &around));
    if let (Some(run), Some(flows)) = (&run, &flows) {
        flow::check_end(&root, run, flows);
    }
    if let (Some(links), Some(paths)) = (&links, &paths) {
        path::check_links_used(&root, links, paths);
        if let Some(association) = &association {
            let mtu = association.mtu_bytes;
            link::check_bursts(&root, "link", mtu, links.iter().map(|link| Some(&link.duplex)));
            link::check_bursts(&root, "path", mtu, paths.iter().map(|path| path.own.as_ref()));
        }
    }
    root.finish();
    Some(Scenario {
        run: run?,
        association: association?,
        schemes: schemes?,
        links: links?,
        paths: paths?,
        flows: flows?,
    })
}

/// The known word closest to one that is not known, if it is close enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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
