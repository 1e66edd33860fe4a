//! The cost of a SACK does not grow with the window: it judges no more gaps with 16,384 packets in flight than with 64. The cost is
//! the number of calls of the loss policy, as the walk over gaps makes them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::rig;
use crate::rig::fixed_window::{Fixed, world};

/// Returns the number of judged gaps for each SACK, over some round trips.
fn holes_per_sack(scheme: &str, paths: u8, loss: f64, chunks: u64) -> f64 {
    let inner = rig::association(scheme).scheme;
    let scheme = Fixed { inner, chunks: chunks / u64::from(paths), asked: Arc::default() };
    let (mut world, _) = world(&scheme, paths, loss);
    world.run_until(rig::at(250));
    let [sacks, holes] = [&scheme.asked.sacks, &scheme.asked.holes].map(|count| count.load(Relaxed) as f64);
    assert!(sacks > chunks as f64 / 4.0, "{sacks} SACKs for a window of {chunks}");
    holes / sacks
}

/// The number is zero if no chunk is lost, since data in flight on another path is not a relevant gap. If chunks are lost, each gap
/// is judged until the chunk is declared lost, and a lost retransmission until T3 expires.
#[test]
fn a_sack_judges_no_more_holes_in_a_large_window() {
    for (scheme, paths, loss, most) in [
        ("cmt", 2, 0.0, 0.0),
        ("bonded", 2, 0.0, 0.0),
        ("cmt", 8, 0.0, 0.0),
        ("cmt+nr-sack", 2, 0.0, 0.0),
        ("sctp", 1, 0.01, 0.1),
        ("cmt", 2, 0.01, 1.0),
        ("cmt+nr-sack", 2, 0.01, 1.0),
        ("cmt+redundant", 2, 0.01, 5.0),
    ] {
        let per_sack = [64, 16_384].map(|chunks| holes_per_sack(scheme, paths, loss, chunks));
        println!("{scheme} on {paths} paths, loss {loss}: {per_sack:?} holes per SACK");
        assert!(per_sack.iter().all(|holes| *holes <= most), "{scheme} on {paths} paths: {per_sack:?}");
    }
}
