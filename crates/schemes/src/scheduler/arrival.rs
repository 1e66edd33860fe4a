//! Shared part of the schedulers that choose the path with the earliest arrival, including the time in the path's queue.

use anabranch_core::policy::{Decision, PathFacts, Pick, Reason, Refusal, Refused, SendAsk, View, WaitFor};
use anabranch_core::time::Span;

/// Path that could take the chunk.
struct Offer {
    path: anabranch_core::PathId,
    /// Time until the chunk arrives.
    arrival: Span,
    /// Set if the chunk has to wait in the path's queue.
    queues: bool,
}

/// Returns the duration of `rounds` round trips and a half.
pub(crate) fn after_rounds(rounds: u64, rtt: Span) -> Span {
    rtt.times(rounds.saturating_mul(2).saturating_add(1)).over(2)
}

/// Selects the path with the earliest arrival. `arrival` computes it from a path and its round-trip time.
pub(crate) fn earliest(
    ask: &SendAsk,
    view: &View<'_>,
    rtt_of: impl Fn(&PathFacts) -> Option<Span>,
    arrival: impl Fn(&PathFacts, Span) -> Span,
) -> Decision<Pick> {
    let mut refused = Refused::new();
    let mut best: Option<Offer> = None;
    for path in view.paths {
        match offer(path, ask, view, &rtt_of, &arrival) {
            Err(why) => refused.push((path.id, why)),
            Ok(offer) => match best {
                Some(ref other) if other.arrival <= offer.arrival => {
                    refused.push((path.id, Refusal::Preference));
                }
                _ => {
                    refused.extend(best.map(|other| (other.path, Refusal::Preference)));
                    best = Some(offer);
                }
            },
        }
    }
    let Some(Offer { path, arrival, queues }) = best else {
        let reason = Reason::rule("no path may send it");
        return Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused);
    };
    let reason = Reason::figure("arrives earliest there", "arrival_ms", arrival.as_millis_f64());
    Decision::with_refused(if queues { Pick::Bind(path) } else { Pick::Path(path) }, reason, refused)
}

fn offer(
    path: &PathFacts,
    ask: &SendAsk,
    view: &View<'_>,
    rtt_of: &impl Fn(&PathFacts) -> Option<Span>,
    arrival: &impl Fn(&PathFacts, Span) -> Span,
) -> Result<Offer, Refusal> {
    let hindrance = view.refusal(path.id);
    match hindrance {
        Some(why @ Refusal::State) => return Err(why),
        // A window probe is sent now or not at all.
        Some(why) if ask.window_probe => return Err(why),
        _ if !path.within_share => return Err(Refusal::BufferShare),
        _ => {}
    }
    let queues = !path.bound.is_zero() || hindrance.is_some();
    match rtt_of(path) {
        Some(rtt) => Ok(Offer { path: path.id, arrival: arrival(path, rtt), queues }),
        // If the chunk can be sent at once on an unmeasured path, it measures the path; otherwise no chunk queues there.
        None if !queues => Ok(Offer { path: path.id, arrival: Span::ZERO, queues }),
        None => Err(hindrance.unwrap_or(Refusal::WindowFull)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;

    /// Creates paths with these smoothed round-trip times in milliseconds.
    fn world(rtts: &[u64]) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), rtts.len());
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            facts.rtt.smoothed = Some(Span::from_millis(*rtt));
        }
        world
    }

    /// Returns the choice if a chunk arrives after half a round trip on every path.
    fn pick(world: &World, ask: SendAsk) -> Decision<Pick> {
        earliest(&ask, &world.view(), |path| path.rtt.smoothed, |_, rtt| after_rounds(0, rtt))
    }

    #[test]
    fn a_chunk_arrives_half_a_round_trip_after_it_left() {
        let rtt = Span::from_millis(30);
        assert_eq!(after_rounds(0, rtt), Span::from_millis(15));
        assert_eq!(after_rounds(1, rtt), Span::from_millis(45));
        assert_eq!(after_rounds(4, rtt), Span::from_millis(135));
        assert_eq!(after_rounds(u64::MAX, rtt), Span::from_nanos(u64::MAX / 2));
    }

    #[test]
    fn the_earliest_arrival_wins_and_of_equal_ones_the_first_path() {
        let decision = pick(&world(&[80, 40, 40]), ASK);
        assert_eq!(decision.choice, Pick::Path(path(1)));
        assert_eq!((decision.reason.figure, decision.reason.value), ("arrival_ms", 20.0));
        assert_eq!(
            decision.refused.as_slice(),
            [(path(0), Refusal::Preference), (path(2), Refusal::Preference)]
        );
    }

    #[test]
    fn a_chunk_that_cannot_leave_at_once_is_bound() {
        let mut full = world(&[80, 40]);
        full.paths[1].in_flight = bytes(4380);
        let mut burst = world(&[80, 40]);
        burst.paths[1].burst_left = 0;
        let mut behind_others = world(&[80, 40]);
        behind_others.paths[1].bound = bytes(1);
        for world in [full, burst, behind_others] {
            assert_eq!(pick(&world, ASK).choice, Pick::Bind(path(1)));
        }
    }

    #[test]
    fn inactive_path_or_path_beyond_its_share_gets_no_chunk() {
        let mut world = world(&[40, 50, 80]);
        world.paths[0].state = PathState::PotentiallyFailed;
        world.paths[1].within_share = false;
        world.paths[1].in_flight = bytes(4380);
        let decision = pick(&world, ASK);
        assert_eq!(decision.choice, Pick::Path(path(2)));
        assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::State), (path(1), Refusal::BufferShare)]);
        world.paths[2].state = PathState::Inactive;
        assert_eq!(pick(&world, ASK).choice, Pick::Wait(WaitFor::Window));
    }

    #[test]
    fn unmeasured_path_takes_only_immediate_chunks() {
        let mut world = world(&[40, 50]);
        world.paths[1].rtt.smoothed = None;
        assert_eq!(pick(&world, ASK).choice, Pick::Path(path(1)));
        world.paths[1].in_flight = bytes(4380);
        assert_eq!(pick(&world, ASK).choice, Pick::Path(path(0)));
        world.paths[1].in_flight = bytes(0);
        world.paths[1].bound = bytes(1);
        assert_eq!(pick(&world, ASK).choice, Pick::Path(path(0)));
        world.paths[0].rtt.smoothed = None;
        world.paths[0].in_flight = bytes(4380);
        assert_eq!(pick(&world, ASK).choice, Pick::Wait(WaitFor::Window));
    }

    #[test]
    fn a_window_probe_leaves_at_once() {
        let mut world = world(&[40, 50]);
        world.paths[0].in_flight = bytes(4380);
        let probe = SendAsk { window_probe: true, ..ASK };
        assert_eq!(pick(&world, ASK).choice, Pick::Bind(path(0)));
        assert_eq!(pick(&world, probe).choice, Pick::Path(path(1)));
    }
}
