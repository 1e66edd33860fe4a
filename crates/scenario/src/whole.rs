//! Reading of a whole document.

use crate::Scenario;
use crate::association::Association;
use crate::document::Table;
use crate::flow::{self, FlowContext};
use crate::link;
use crate::names::Names;
use crate::origin::Origin;
use crate::path;
use crate::reader::Reader;
use crate::report::Report;
use crate::run::Run;
use crate::scheme;
use crate::section::Described as _;

/// Reads every section, and checks the rules across sections.
pub(crate) fn read(root: &Table, report: &Report<'_>) -> Option<Scenario> {
    let mut root = Reader::new(root, Origin::Assumed, String::new(), report);
    let run = root.table("run").and_then(Run::read);
    let association = root.table("association").and_then(Association::read);
    let schemes = root.table("scheme").and_then(scheme::read_schemes);
    let (mut link_names, mut path_names) = (Names::new("link"), Names::new("path"));
    let links = root.tables("link").and_then(|readers| link::read_links(readers, &mut link_names));
    let paths = root.tables("path");
    let paths = paths.and_then(|readers| path::read_paths(&root, readers, &link_names, &mut path_names));
    let around =
        FlowContext { paths: &path_names, run: run.as_ref(), association: association.unwrap_or_default() };
    let flows = root.tables("flow").and_then(|readers| flow::read_flows(readers, &around));
    if let (Some(run), Some(flows)) = (&run, &flows) {
        flow::check_end(&root, run, flows);
    }
    if let (Some(paths), Some(flows)) = (&paths, &flows) {
        path::check_handovers(&root, paths, flows);
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
