//! `[[path]]`: what lies between the two hosts.

use super::error::ProblemKind;
use super::fault::Fault;
use super::link::{Duplex, Link, LinkRate, read_duplex, refuse_duplex};
use super::names::Names;
use super::reader::Reader;
use super::shape::TextList;

/// Paths of a scenario at most.
const MOST_PATHS: usize = 8;

/// A path between the hosts: shared links, then a link of its own; one of the two may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Unique among the paths.
    pub name: String,
    /// Shared links in the order of the data, as indices into [`Scenario::links`](super::Scenario::links).
    pub via: Vec<usize>,
    /// The link of its own, after the shared ones.
    pub own: Option<Duplex>,
}

/// Reads the paths; `root` is told if there are none.
pub(super) fn read_paths(
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
    let name = names.read(&mut reader);
    let via = match reader.optional("via", &TextList) {
        Some(Some(via)) => links.resolve(&reader, "via", &via),
        Some(None) => Some(Vec::new()),
        None => None,
    };
    let own = if reader.has("via") && !reader.has("rate") {
        reader.know(&["rate"]);
        refuse_duplex(&mut reader);
        Some(None)
    } else {
        read_duplex(&mut reader, &LinkRate { or_via: true }).map(Some)
    };
    reader.finish();
    Some(Path { name: name?, via: via?, own: own? })
}

/// A link that no path goes through would be left out without a word.
pub(super) fn check_links_used(root: &Reader<'_>, links: &[Link], paths: &[Path]) {
    for (index, link) in links.iter().enumerate() {
        if !paths.iter().any(|path| path.via.contains(&index)) {
            let message = format!("no path goes through the link `{}`", link.name);
            let help = format!("give a path `via = [\"{}\"]`, or leave the link out", link.name);
            root.fault_of_element("link", index, Fault::because(ProblemKind::Conflict, message, help));
        }
    }
}
