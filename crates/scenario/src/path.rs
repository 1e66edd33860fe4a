//! `[[path]]`: links between the two hosts.

use anabranch_core::PathCost;

use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::flow::Flow;
use crate::form::{AnyRate, Form as _, Name, OneOf, Placed, PlacedTexts};
use crate::handover::{Handover, Mover, check_link};
use crate::inner::Inner;
use crate::link::{Duplex, Link, read_duplex, refuse_duplex};
use crate::names::Names;
use crate::reader::Reader;
use crate::section::{Section as _, section};
use crate::units::format_span;

/// Maximum number of paths of a scenario.
const MOST_PATHS: usize = 8;

/// Path between the hosts: shared links, then its own link, or one of the two.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Name, unique among the paths.
    pub name: String,
    /// Shared links in the order of the data, as indices into [`Scenario::links`](crate::Scenario::links).
    pub via: Vec<usize>,
    /// Own link of the path, behind the shared ones.
    pub own: Option<Duplex>,
    /// Handovers of the own link.
    pub handover: Option<Handover>,
    /// Cost of the path, which both ends set.
    pub cost: PathCost,
}

section! {
    /// A path between the two hosts, `[[path]]`: the links in `via`, then a link of its own, or one of the two.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct PathRows {
        /// The name, unique among the paths.
        name: Option<String> = "name" [optional "`\"path-1\"`, …"] Name;
        /// Names of shared links in forward order; the reverse direction uses the opposite order.
        via: Option<Vec<Placed>> = "via" [optional "none"] PlacedTexts;
        /// [Handovers](simulator.md#handovers) to other points of access.
        handover: Option<Handover> = "handover" [optional "none"] Inner::<Handover>::new("Handover");
        /// [Cost](paths.md#costs-and-limits) of the path: `metered` as `--path wwan0,metered`, `backup` as `only=backup`.
        cost: Option<PathCost> = "cost" [optional "`\"free\"`"]
            OneOf(&[("free", PathCost::Free), ("metered", PathCost::Metered), ("backup", PathCost::Backup)]);
    }
}

/// Reads the paths, at least one.
pub(crate) fn read_paths(
    root: &Reader<'_>,
    mut readers: Vec<Reader<'_>>,
    links: &Names,
    names: &mut Names,
) -> Option<Vec<Path>> {
    if readers.is_empty() {
        root.missing("path", "at least one [[path]] with a `rate` and a `delay`".to_owned());
    }
    names.limit(&mut readers, MOST_PATHS);
    let paths: Vec<Option<Path>> = readers.into_iter().map(|reader| read(reader, links, names)).collect();
    paths.into_iter().collect()
}

fn read(mut reader: Reader<'_>, links: &Names, names: &mut Names) -> Option<Path> {
    let name = names.add(&reader);
    let rows = PathRows::read_rows(&mut reader);
    let cost = rows.as_ref().map(|rows| rows.cost.unwrap_or_default());
    let rows = rows.map(|rows| (rows.via.unwrap_or_default(), rows.handover));
    let (via, handover) = rows.unzip();
    let via = via.and_then(|via| links.resolve(&reader, "via", &via));
    let own = if reader.has("via") && !reader.has("rate") && !reader.has("capacity") {
        reader.know(&["rate", "capacity"]);
        refuse_duplex(&mut reader);
        Some(None)
    } else {
        let expected = format!("{}; or `via` with the names of links", AnyRate.expected());
        read_duplex(&mut reader, expected).map(Some)
    };
    let handover = handover.flatten();
    let is_sound = handover.is_none() || own.as_ref().is_none_or(|own| check_link(&reader, own.as_ref()));
    reader.finish();
    is_sound.then_some(Path { name: name?, via: via?, own: own?, handover, cost: cost? })
}

/// Reports links that no path uses.
pub(crate) fn check_links_used(root: &Reader<'_>, links: &[Link], paths: &[Path]) {
    for (index, link) in links.iter().enumerate() {
        if !paths.iter().any(|path| path.via.contains(&index)) {
            let message = format!("no path goes through the link `{}`", link.name);
            let help = format!("give a path `via = [\"{}\"]`, or leave the link out", link.name);
            root.fault_of_element("link", index, Fault::explained(ProblemKind::Conflict, message, help));
        }
    }
}

/// Reports handovers that change an address before a flow of the path has started, since its first packets would not arrive.
pub(crate) fn check_handovers(root: &Reader<'_>, paths: &[Path], flows: &[Flow]) {
    for (index, path) in paths.iter().enumerate() {
        let Some(handover) = path.handover.filter(|handover| handover.mover != Mover::Neither) else {
            continue;
        };
        let starts = flows.iter().filter(|flow| flow.paths.contains(&index)).map(|flow| flow.start);
        if let Some(start) = starts.max().filter(|start| *start >= handover.times.first) {
            let message = format!(
                "the path `{}` gets another address before a flow on it starts, at {}",
                path.name,
                format_span(start)
            );
            let help = "give a later `handover.at`, start the flow earlier, or keep the address with `moves = \"none\"`";
            root.fault_of_element("path", index, Fault::explained(ProblemKind::Conflict, message, help));
        }
    }
}
