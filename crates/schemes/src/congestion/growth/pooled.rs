//! Shared parts of both versions of resource pooling (Dreibholz's congestion controls CMT/RPv1 and CMT/RPv2): a path grows by its
//! share of the standard's growth.

use anabranch_core::policy::{PathFacts, Reason, View, Window};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::congestion::growth::Flows;
use crate::congestion::growth::standard::spend_window;
use crate::congestion::{Acknowledged, Change};
use crate::definition::Equation;

pub(crate) const THRESHOLD_SHARE: Equation =
    Equation { name: "share", rule: "s_i = ssthresh_i / sum of ssthresh_k", file: file!() };

pub(crate) const RATE_SHARE: Equation =
    Equation { name: "share", rule: "s_i = (cwnd_i / srtt_i) / sum of (cwnd_k / srtt_k)", file: file!() };

/// Iterates over the paths that share one resource: the active ones, and the path in question regardless of its state.
pub(crate) fn coupled_paths<'a>(path: PathId, view: &View<'a>) -> impl Iterator<Item = &'a PathFacts> {
    view.paths.iter().filter(move |facts| facts.is_active() || facts.id == path)
}

fn equal_share(path: PathId, view: &View<'_>) -> f64 {
    1.0 / coupled_paths(path, view).count().max(1) as f64
}

/// Version 1: returns the path's part of the sum of all slow-start thresholds, or an equal part if all are zero.
pub(crate) fn threshold_share(path: PathId, windows: &[Window; MAX_PATHS], view: &View<'_>) -> f64 {
    let ssthresh = |path: PathId| windows[path.index()].ssthresh;
    let sum: ChunkBytes = coupled_paths(path, view).map(|facts| ssthresh(facts.id)).sum();
    if sum.is_zero() { equal_share(path, view) } else { ssthresh(path).get() as f64 / sum.get() as f64 }
}

/// Version 2: returns the path's part of the sum of all rates cwnd / srtt, or an equal part before its first RTT sample.
pub(crate) fn rate_share(path: PathId, windows: &[Window; MAX_PATHS], view: &View<'_>) -> f64 {
    let flows = Flows::of(path, windows, view);
    let sum: f64 = flows.all().iter().map(|flow| flow.rate()).sum();
    flows.find(path).map_or(equal_share(path, view), |own| own.rate() / sum)
}

/// Grows by the standard's steps, each multiplied by `share` and rounded up.
pub(crate) fn grow(acknowledged: &Acknowledged<'_>, share: f64) -> Option<Change> {
    let (window, largest) = (acknowledged.window(), acknowledged.facts().largest_chunk);
    if window.cwnd <= window.ssthresh {
        let by = part(acknowledged.bytes.min(largest), share);
        let reason = Reason::figure("slow start by the path's share", "share", share);
        return Some(Change { window: Window { cwnd: window.cwnd + by, ..window }, reason });
    }
    let spent = spend_window(window)?;
    let reason = Reason::figure("the path's share after an acknowledged window", "share", share);
    Some(Change { window: Window { cwnd: window.cwnd + part(largest, share), ..spent }, reason })
}

/// Returns `share` of `bytes`, rounded up.
pub(crate) fn part(bytes: ChunkBytes, share: f64) -> ChunkBytes {
    ChunkBytes::new((bytes.get() as f64 * share).ceil() as u64)
}
