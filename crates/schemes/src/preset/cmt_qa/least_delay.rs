//! CMT-QA's path for retransmissions (Xu et al. 2013, section 6): "the active path with the minimum value of the transfer delay".

use anabranch_core::PathId;
use anabranch_core::policy::{
    Context, Decision, LostChunk, PathFacts, Reason, Refusal, Refused, RetransmitChoice, RetransmitPath,
    View, WaitFor,
};

use crate::definition::{ChoiceParameter, Equation, Values};
use crate::estimator::advised;
use crate::preset::cmt_qa::data_distribution::{delivery_time, handling_time, rounds};
use crate::retransmit::{no_room, nowhere};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "Algorithm 3, line 14",
    rule: "retransmit on the active path with the least transfer delay",
    file: file!(),
}];

pub(super) const DELAY: ChoiceParameter<TransferDelay> = ChoiceParameter {
    name: "delay",
    options: &[("half-rtt", TransferDelay::HalfRoundTrip), ("handling", TransferDelay::Handling)],
    default: "half-rtt",
    about: "orp: transfer delay of a path: SRTT / 2, or equation 13 for the data in flight and the chunk",
    source: "Xu 2013, section 6",
};

/// Definition of a path's transfer delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferDelay {
    /// Half of SRTT: the one-way delay.
    HalfRoundTrip,
    /// Equation 13 for the data in flight on the path and the chunk: k x Q x cwnd.
    Handling,
}

impl TransferDelay {
    /// Returns the delay in seconds; infinite if it is unknown.
    fn of(self, path: &PathFacts, chunk: &LostChunk) -> f64 {
        match self {
            TransferDelay::HalfRoundTrip => {
                path.rtt.smoothed.map_or(f64::INFINITY, |srtt| srtt.as_secs_f64() / 2.0)
            }
            TransferDelay::Handling => {
                // Bound and unsent data waits behind a retransmission.
                let data = (path.in_flight + chunk.bytes).get();
                let k = rounds(path.cwnd.get(), path.largest_chunk.get(), data);
                delivery_time(k, handling_time(path))
            }
        }
    }
}

/// Retransmits on the path with the least transfer delay.
#[derive(Clone, Debug)]
pub struct LeastDelay {
    /// Definition of a path's transfer delay.
    pub delay: TransferDelay,
    /// Set to wait for room on it; otherwise the best path with room is used.
    pub waits: bool,
}

impl LeastDelay {
    pub(super) fn from_values(values: &Values) -> Self {
        LeastDelay { delay: DELAY.get(values), waits: values.switch("await-room") }
    }
}

impl LeastDelay {
    /// Returns the reason for which a path is not a candidate.
    fn refusal(&self, path: &PathFacts, used: bool) -> Option<Refusal> {
        if !used {
            Some(Refusal::State)
        } else if !self.waits && !path.admits_retransmission() {
            Some(no_room(path))
        } else {
            None
        }
    }
}

ignores_events! { LeastDelay }

impl RetransmitPath for LeastDelay {
    copied!(RetransmitPath);

    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        let used = advised(view);
        let mut best: Option<(PathId, f64)> = None;
        let mut refused = Refused::new();
        for path in view.paths {
            if let Some(why) = self.refusal(path, used.contains(path.id)) {
                refused.push((path.id, why));
                continue;
            }
            let delay = self.delay.of(path, chunk);
            match best {
                Some((_, least)) if least <= delay => refused.push((path.id, Refusal::Preference)),
                _ => {
                    refused.extend(best.map(|(other, _)| (other, Refusal::Preference)));
                    best = Some((path.id, delay));
                }
            }
        }
        let Some((id, delay)) = best else { return Decision { refused, ..nowhere() } };
        let path = view.path(id);
        if !path.admits_retransmission() {
            refused.push((id, no_room(path)));
            return Decision::with_refused(RetransmitChoice::Wait(WaitFor::Window), least(delay), refused);
        }
        Decision::with_refused(RetransmitChoice::Path(id), least(delay), refused)
    }
}

fn least(delay: f64) -> Reason {
    if delay.is_finite() {
        Reason::figure("least transfer delay", "delay_s", delay)
    } else {
        Reason::rule("no transfer delay is known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, lost_on, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::LossCause;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    const HALF: LeastDelay = LeastDelay { delay: TransferDelay::HalfRoundTrip, waits: false };
    const HANDLING: LeastDelay = LeastDelay { delay: TransferDelay::Handling, waits: false };

    /// Creates paths with round-trip times of 200, 80 and 120 ms, and Q of 10, 30 and 20 us per byte.
    fn world() -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 3);
        for (facts, (ms, q)) in world.paths.iter_mut().zip([(200, 10e-6), (80, 30e-6), (120, 20e-6)]) {
            facts.rtt.smoothed = Some(Span::from_millis(ms));
            facts.estimates.seconds_per_byte = Some(q);
        }
        world
    }

    fn route(world: &mut World, mut policy: LeastDelay) -> Decision<RetransmitChoice> {
        world.route(&mut policy, lost_on(0, LossCause::FastRetransmit))
    }

    #[test]
    fn half_the_round_trip_decides() {
        let decision = route(&mut world(), HALF);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(1)));
        assert_eq!(decision.reason, Reason::figure("least transfer delay", "delay_s", 0.04));
        let others = [(path(0), Refusal::Preference), (path(2), Refusal::Preference)];
        assert_eq!(decision.refused.as_slice(), others);
    }

    #[test]
    fn equation_13_decides_for_flight_plus_chunk() {
        // One round of 4380 B on path 0: 10 us/B x 4380 B = 43.8 ms; the others take 131 and 88 ms.
        let mut world = world();
        let decision = route(&mut world, HANDLING);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(0)));
        assert!((decision.reason.value - 0.0438).abs() < 1e-12);
        // With 4379 B in flight and 1468 B more, path 0 needs two rounds of 4380 B + 5848 B: 87.6 ms, equal to path 2.
        world.paths[0].in_flight = bytes(4379);
        world.paths[2].estimates.seconds_per_byte = Some(19e-6);
        assert_eq!(route(&mut world, HANDLING).choice, RetransmitChoice::Path(path(2)), "83 ms");
    }

    #[test]
    fn choice_is_equal_after_fast_retransmit_and_t3() {
        for cause in [LossCause::FastRetransmit, LossCause::Timeout] {
            for from in 0..3 {
                let mut policy = HALF;
                assert_eq!(
                    world().route(&mut policy, lost_on(from, cause)).choice,
                    RetransmitChoice::Path(path(1))
                );
            }
        }
    }

    #[test]
    fn full_path_is_replaced_or_awaited() {
        let mut world = world();
        world.paths[1].in_flight = bytes(4380);
        let decision = route(&mut world, HALF);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(2)));
        assert!(decision.refused.contains(&(path(1), Refusal::WindowFull)));
        let decision = route(&mut world, LeastDelay { waits: true, ..HALF });
        assert_eq!(decision.choice, RetransmitChoice::Wait(WaitFor::Window));
        assert!(decision.refused.contains(&(path(1), Refusal::WindowFull)));
        world.paths.iter_mut().for_each(|facts| facts.in_flight = bytes(4380));
        assert_eq!(route(&mut world, HALF).choice, RetransmitChoice::Wait(WaitFor::Window));
    }

    #[test]
    fn inactive_or_withdrawn_paths_are_skipped() {
        let mut world = world();
        world.paths[1].state = PathState::PotentiallyFailed;
        world.paths[2].estimates.withdrawn = true;
        let decision = route(&mut world, HALF);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(0)));
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::State), (path(2), Refusal::State)]);
        world.paths[0].estimates.withdrawn = true;
        assert_eq!(
            route(&mut world, HALF).choice,
            RetransmitChoice::Path(path(2)),
            "withdrawn all, used all"
        );
        world.paths.iter_mut().for_each(|facts| facts.state = PathState::Inactive);
        assert_eq!(route(&mut world, HALF).choice, RetransmitChoice::Wait(WaitFor::Window));
    }

    #[test]
    fn a_path_without_figures_comes_last_and_of_equals_the_first_is_taken() {
        let mut world = world();
        world.paths[1].rtt.smoothed = None;
        assert_eq!(route(&mut world, HALF).choice, RetransmitChoice::Path(path(2)));
        world.paths.iter_mut().for_each(|facts| facts.rtt.smoothed = None);
        let decision = route(&mut world, HALF);
        assert_eq!((decision.choice, decision.reason.figure), (RetransmitChoice::Path(path(0)), ""));
    }

    #[test]
    fn the_only_path_is_taken() {
        let mut world = World::new(Profile::rfc9260_multipath(), 1);
        world.paths[0].in_flight = bytes(M);
        for policy in [HALF, HANDLING] {
            assert_eq!(route(&mut world, policy).choice, RetransmitChoice::Path(path(0)));
        }
    }
}
