//! All sections of a scenario file, for completions, the book and Python.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anabranch_sim::{Aggregation, Policer};

use crate::association::Association;
use crate::background::BackgroundRows;
use crate::beside::MessagesBeside;
use crate::event::EventRows;
use crate::field::Field;
use crate::flow::FlowRows;
use crate::forward::{Datagrams, Exchange};
use crate::handover::HandoverRows;
use crate::impairment::JitterRows;
use crate::link::{DuplexRows, Link, OneWayRows};
use crate::loss::LossRows;
use crate::path::PathRows;
use crate::queue::QueueRows;
use crate::reliability::{FrameLimitRows, LimitRows};
use crate::run::RunRows;
use crate::scheme::SchemeRows;
use crate::section::Section;
use crate::trace::{CapacityRows, TraceRows};

/// Description of one table of a scenario file.
#[derive(Clone, Debug)]
pub struct SectionInfo {
    /// Name of its class in Python.
    pub class: &'static str,
    /// Header in a file, without brackets; empty for tables in one line.
    pub header: &'static str,
    /// Description of the table.
    pub about: &'static str,
    /// Keys of the table in canonical order.
    pub fields: Vec<Field>,
}

/// Returns the sections of scenario files. A class follows those that its fields use.
pub fn sections() -> Vec<SectionInfo> {
    let mut sections = vec![
        section("RunSettings", "run", "Duration, repetitions and schemes, `[run]`.", RunRows::fields()),
        section(
            "AssociationSettings",
            "association",
            "Settings of every association of a scenario, `[association]`.",
            Association::fields(),
        ),
        section(
            "Scheme",
            "scheme.NAME",
            "Name for a scheme expression, `[scheme.NAME]`.",
            SchemeRows::fields(),
        ),
    ];
    sections.extend(sections_of_one_way());
    sections.extend([
        section("Background", "path.background", "Cross traffic on one link.", BackgroundRows::fields()),
        section(
            "LinkEvent",
            "path.event",
            "Change of one link during a run. Omitted keys do not change.",
            EventRows::fields(),
        ),
        section("Handover", "", "Handovers of a path.", HandoverRows::fields()),
        section("Link", "link", "Link that paths share, `[[link]]`.", Link::fields()),
        section(
            "Path",
            "path",
            "Path between the two hosts, `[[path]]`: the links in `via`, then its own link, or only one of these.",
            [PathRows::fields(), DuplexRows::fields()].concat(),
        ),
        section(
            "Reliability",
            "",
            "Limit after which a message is abandoned: `max_retransmissions`, `lifetime` or both, or `priority`; for a video also \
             limits by the type of frame.",
            [LimitRows::fields(), FrameLimitRows::fields()].concat(),
        ),
        section(
            "SmallMessages",
            "",
            "Small messages that a bulk flow's association carries beside the bulk, on a separate stream.",
            MessagesBeside::fields(),
        ),
        section("Exchange", "", "Requests and responses on one connection of a forward flow.", Exchange::fields()),
        section("Datagrams", "", "Datagrams of a program on a forward flow.", Datagrams::fields()),
        section("Flow", "flow", "One association and its traffic, `[[flow]]`.", FlowRows::fields()),
    ]);
    sections
}

fn section(
    class: &'static str,
    header: &'static str,
    about: &'static str,
    fields: Vec<Field>,
) -> SectionInfo {
    SectionInfo { class, header, about, fields }
}

/// Returns the sections of one direction of a link.
fn sections_of_one_way() -> Vec<SectionInfo> {
    vec![
        section("Loss", "", "Process that loses packets on a link.", LossRows::fields()),
        section(
            "Policer",
            "",
            "Token bucket that drops packets above a rate before they reach the queue.",
            Policer::fields(),
        ),
        section(
            "Jitter",
            "",
            "Delay that is drawn for each packet and added to `delay`.",
            JitterRows::fields(),
        ),
        section(
            "Aggregation",
            "",
            "Transmission in batches, for which packets wait in the queue.",
            Aggregation::fields(),
        ),
        section(
            "Fading",
            "",
            "Rayleigh channel whose signal-to-noise ratio determines the rate of a link.",
            anabranch_sim::Fading::fields(),
        ),
        section("Queue", "", "Queue of one direction of a link, with its discipline.", QueueRows::fields()),
        section(
            "CapacityTrace",
            "",
            "Trace of the capacity of a link: a file of Mahimahi, or a table of times and rates.",
            CapacityRows::fields(),
        ),
        section(
            "SeriesTrace",
            "",
            "Trace of the delay, the loss or the outages of a link: a table of times and values.",
            TraceRows::fields(),
        ),
        section(
            "Reverse",
            "path.reverse",
            "Reverse direction of a link. Omitted `rate`, `delay`, `queue` and `outage_trace` are as forward; omitted impairments do not apply.",
            OneWayRows::fields(),
        ),
    ]
}

/// Returns the keys of values in scenario files in the form of `--set`, with `*` for list elements.
pub fn keys() -> Vec<String> {
    let sections = sections();
    let below = |place: String, header: &str| -> Vec<String> {
        let of = sections.iter().filter(|section| section.header == header);
        let is_value =
            |field: &&Field| !["Background", "LinkEvent"].contains(&field.about.class.unwrap_or(""));
        let fields = of.flat_map(|section| &section.fields).filter(is_value);
        fields.map(|field| format!("{place}.{}", field.key)).collect()
    };
    let mut keys: Vec<String> = Vec::new();
    for table in ["run", "association"] {
        keys.extend(below(table.to_owned(), table));
    }
    for list in ["link", "path", "flow"] {
        keys.extend(below(format!("{list}.*"), list));
    }
    for list in ["link", "path"] {
        keys.extend(below(format!("{list}.*.reverse"), "path.reverse"));
        keys.extend(below(format!("{list}.*.background.*"), "path.background"));
        keys.extend(below(format!("{list}.*.event.*"), "path.event"));
    }
    keys
}

/// Maximum number of places that an error about a misplaced key names.
const MOST_HOMES: usize = 2;

/// Sections to which a misplaced key may belong, by key.
static HOMES: LazyLock<BTreeMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let homes = [
        ("run", "[run]"),
        ("association", "[association]"),
        ("scheme.NAME", "[scheme.NAME]"),
        ("path", "[[path]], above its other tables"),
        ("path.background", "[[path.background]]"),
        ("path.event", "[[path.event]]"),
        ("flow", "[[flow]]"),
    ];
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for section in sections() {
        let Some((_, home)) = homes.iter().find(|(header, _)| *header == section.header) else { continue };
        for field in &section.fields {
            found.entry(field.key).or_default().push(home);
        }
    }
    found
});

/// Returns the sections to which a key belongs, unless they are too many to help.
pub(crate) fn home_of(key: &str) -> Option<String> {
    let homes = HOMES.get(key).filter(|homes| homes.len() <= MOST_HOMES)?;
    Some(homes.join(", or "))
}

/// Returns the keys of a link whose tables have a key, unless they are too many to help.
pub(crate) fn home_in_link(key: &str) -> Option<String> {
    let sections = sections();
    let has = |class| {
        let section = sections.iter().find(|section| section.class == class);
        section.is_some_and(|section| section.fields.iter().any(|field| field.key == key))
    };
    let fields = DuplexRows::fields().into_iter().filter(|field| field.about.class.is_some_and(has));
    let homes: Vec<String> = fields.map(|field| format!("`{}`", field.key)).collect();
    (1..=MOST_HOMES).contains(&homes.len()).then(|| homes.join(" or "))
}
