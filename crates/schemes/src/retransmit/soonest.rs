//! Path on which a lost chunk arrives first: until then it holds back all later data, on every path.

use anabranch_core::policy::{
    Context, Decision, LostChunk, PathFacts, Reason, Refusal, Refused, RetransmitChoice, RetransmitPath, View,
};
use anabranch_core::time::Span;

use crate::definition::Equation;
use crate::retransmit::{if_room, nowhere};

pub(crate) const RTX_SOONEST: Equation = Equation {
    name: "RTX-SOONEST",
    rule: "the active path with the lowest SRTT, which counts twice if its window is full; the chunk waits for that path",
    file: file!(),
};

/// Retransmits on the active path with the lowest round-trip time, doubled if its window is full, since the window opens within one
/// round trip. So a chunk waits for a fast path rather than use one that is more than twice as slow.
#[derive(Clone, Copy, Debug)]
pub struct Soonest;

/// Returns the expected delay, or `None` if it is unknown. Of equal paths, [`sooner`] selects the larger window: it lost less.
fn delay(path: &PathFacts) -> Option<Span> {
    let rounds = if path.admits_retransmission() { 1 } else { 2 };
    path.rtt.smoothed.map(|smoothed| smoothed.times(rounds))
}

fn sooner(path: &PathFacts, than: &PathFacts) -> bool {
    match (delay(path), delay(than)) {
        (Some(mine), Some(other)) => mine < other || (mine == other && path.cwnd > than.cwnd),
        (mine, None) => mine.is_some(),
        (None, Some(_)) => false,
    }
}

ignores_events! { Soonest }

impl RetransmitPath for Soonest {
    copied!(RetransmitPath);

    fn route(&mut self, _: &LostChunk, view: &View<'_>, _: &mut Context<'_>) -> Decision<RetransmitChoice> {
        let mut refused = Refused::new();
        let mut best: Option<&PathFacts> = None;
        for path in view.paths {
            if !path.is_active() {
                refused.push((path.id, Refusal::State));
                continue;
            }
            let passed_over = match best {
                Some(other) if !sooner(path, other) => Some(path),
                other => {
                    best = Some(path);
                    other
                }
            };
            refused.extend(passed_over.map(|other| (other.id, Refusal::Preference)));
        }
        let Some(path) = best else { return nowhere() };
        let reason = match delay(path) {
            Some(delay) => Reason::figure("arrives soonest", "delay_ms", delay.as_millis_f64()),
            None => Reason::rule("no round-trip sample yet"),
        };
        if_room(path, reason, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, lost_on, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{LossCause, WaitFor};
    use anabranch_core::profile::Profile;

    /// Creates paths with these round-trip times in milliseconds (unknown if zero) and room in their windows.
    fn world<const N: usize>(rtts: [u64; N]) -> World {
        let mut world = World::new(Profile::net().multipath(), N);
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            facts.rtt.smoothed = (rtt > 0).then(|| Span::from_millis(rtt));
            facts.cwnd = bytes(10 * M);
        }
        world
    }

    fn route(world: &mut World) -> RetransmitChoice {
        world.route(&mut Soonest, lost_on(0, LossCause::FastRetransmit)).choice
    }

    #[test]
    fn the_lowest_round_trip_time_serves_however_large_other_windows_are() {
        let mut world = world([300, 5, 0]);
        world.paths[0].cwnd = bytes(100 * M);
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(1)));
    }

    #[test]
    fn full_fast_path_is_awaited_unless_another_takes_under_twice_its_time() {
        for (other, expected) in [
            (300, RetransmitChoice::Wait(WaitFor::Window)),
            (101, RetransmitChoice::Wait(WaitFor::Window)),
            (99, RetransmitChoice::Path(path(1))),
        ] {
            let mut world = world([50, other]);
            world.paths[0].in_flight = world.paths[0].cwnd;
            assert_eq!(route(&mut world), expected, "{other} ms");
        }
    }

    #[test]
    fn only_active_paths_serve_even_if_unmeasured() {
        let mut world = world([5, 0]);
        world.paths[0].state = PathState::PotentiallyFailed;
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(1)));
        world.paths[1].state = PathState::Inactive;
        assert_eq!(route(&mut world), RetransmitChoice::Wait(WaitFor::Window));
    }

    #[test]
    fn of_equals_the_larger_window_serves() {
        let mut world = world([50, 50]);
        world.paths[1].cwnd = bytes(11 * M);
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(1)));
        world.paths[0].cwnd = bytes(12 * M);
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(0)));
    }
}
