//! Example of a scheme in a separate crate: CMT with a scheduler that prefers the path with the shortest queue.
//!
//! A queue on a path makes the round trip longer than its minimum. The difference between the latest and the minimum
//! round-trip time is the current queueing delay. The scheduler sends on the path where this delay is lowest.

use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Policies, Reason, Refusal, Refused, Scheduler, Scheme, SendAsk, Slot,
    View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_schemes::registry;

// ANCHOR: policy
/// Scheduler that sends on the path with room and the lowest queueing delay.
#[derive(Debug, Default)]
pub struct ShortestQueue;

/// Returns the queueing delay of a path, zero without a round-trip time.
fn queueing(path: &PathFacts) -> Span {
    match (path.rtt.latest, path.rtt.min) {
        (Some(latest), Some(least)) => latest - least,
        _ => Span::ZERO,
    }
}

impl Slot for ShortestQueue {}

impl Scheduler for ShortestQueue {
    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        let mut best: Option<&PathFacts> = None;
        for path in view.paths {
            if let Some(why) = view.refusal(path.id) {
                refused.push((path.id, why));
                continue;
            }
            // Among equals, the lower id wins.
            let worse = match best {
                Some(other) if queueing(other) <= queueing(path) => Some(path),
                other => {
                    best = Some(path);
                    other
                }
            };
            refused.extend(worse.map(|path| (path.id, Refusal::Preference)));
        }
        match best {
            Some(path) => {
                let milliseconds = queueing(path).as_millis_f64();
                let reason = Reason::figure("the shortest queue", "queueing_ms", milliseconds);
                Decision::with_refused(Pick::Path(path.id), reason, refused)
            }
            None => {
                let reason = Reason::rule("no path has room");
                Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused)
            }
        }
    }
}
// ANCHOR_END: policy

// ANCHOR: scheme
/// CMT with another scheduler.
#[derive(Debug)]
pub struct Quiet;

impl Scheme for Quiet {
    fn policies(&self) -> Policies {
        let cmt = registry::parse("cmt").expect("a scheme of the registry");
        Policies { scheduler: Box::new(ShortestQueue), ..cmt.policies() }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}
// ANCHOR_END: scheme
