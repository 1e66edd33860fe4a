//! `min-rtt`: the path with the lowest round-trip time.
//!
//! Selects the path with the lowest smoothed round-trip time of those with room: the default scheduler of MPTCP in Linux
//! (`get_available_subflow` of v0.9x).

use anabranch_core::policy::{Context, Decision, Pick, Policies, Reason, Scheduler, SendAsk, View};

use crate::definition::{Card, Choice, ChoiceParameter, Component, Equation, Role, Values};
use crate::scheduler::Unmeasured;
use crate::scheduler::by_rtt::Ranking;

const UNMEASURED: ChoiceParameter<Unmeasured> = ChoiceParameter {
    name: "unmeasured",
    options: &[("first", Unmeasured::First), ("last", Unmeasured::Last)],
    default: "first",
    about: "rank of a path without a round-trip sample",
    source: "first in Linux, where a smoothed time begins at zero",
};

const CARD: Card = Card {
    summary: &[
        "Each packet of new data goes to the path with the lowest smoothed round-trip time of those",
        "with room. It never waits while a path has room.",
    ],
    equations: &[&[Equation {
        name: "get_available_subflow",
        rule: "argmin of srtt over active paths with outstanding < cwnd; of equal ones the lowest id",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "What is the rank of a path without a round-trip sample?",
            answer: "The first, as in Linux: only its own data measures it.",
            parameter: "unmeasured",
        },
        Choice {
            question: "Do Linux's opportunistic retransmission and penalisation belong to the scheduler?",
            answer: "They are part of Linux's default scheduler, but change retransmission and windows. Here they are the component \
                     `opportunistic`, so that the choice of paths alone can be compared.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "min-rtt",
    about: "New data on the path with the lowest round-trip time of those with room",
    source: "Linux MPTCP v0.9x, default scheduler; Raiciu et al. 2012; Paasch et al. 2014",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[UNMEASURED.parameter()],
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(MinRtt { unmeasured: UNMEASURED.get(values) }), ..policies }
}

/// Scheduler: lowest smoothed round-trip time first.
#[derive(Clone, Debug)]
pub struct MinRtt {
    /// Rank of an unmeasured path.
    pub unmeasured: Unmeasured,
}

ignores_events! { MinRtt }

impl Scheduler for MinRtt {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let ranking = Ranking::of(view, self.unmeasured);
        let reason = lowest(&ranking);
        ranking.send(reason)
    }
}

/// Returns the reason for the best path of a ranking.
pub(crate) fn lowest(ranking: &Ranking<'_>) -> Reason {
    match ranking.best.and_then(|path| path.rtt.smoothed) {
        Some(srtt) => {
            Reason::figure("lowest round-trip time of the paths with room", "srtt_ms", srtt.as_millis_f64())
        }
        None => Reason::rule("no round-trip sample yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{Refusal, WaitFor};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    const FIRST: MinRtt = MinRtt { unmeasured: Unmeasured::First };

    fn world(rtts: &[u64]) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), rtts.len());
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            facts.rtt.smoothed = Some(Span::from_millis(*rtt));
        }
        world
    }

    #[test]
    fn new_data_goes_where_the_round_trip_is_shortest() {
        let decision = world(&[60, 20, 40]).pick(&mut { FIRST });
        assert_eq!(decision.choice, Pick::Path(path(1)));
        assert_eq!((decision.reason.figure, decision.reason.value), ("srtt_ms", 20.0));
        assert_eq!(
            decision.refused.as_slice(),
            [(path(0), Refusal::Preference), (path(2), Refusal::Preference)]
        );
    }

    #[test]
    fn of_equal_paths_the_first_is_taken() {
        assert_eq!(world(&[30, 30]).pick(&mut { FIRST }).choice, Pick::Path(path(0)));
    }

    #[test]
    fn full_fastest_path_is_replaced_by_the_next() {
        let mut world = world(&[60, 20, 40]);
        world.paths[1].in_flight = bytes(4380);
        let decision = world.pick(&mut { FIRST });
        assert_eq!(decision.choice, Pick::Path(path(2)));
        assert!(decision.refused.contains(&(path(1), Refusal::WindowFull)));
    }

    #[test]
    fn fast_path_without_service_burst_or_share_is_skipped() {
        let mut world = world(&[60, 20, 30, 40]);
        world.paths[1].state = PathState::PotentiallyFailed;
        world.paths[2].burst_left = 0;
        world.paths[3].within_share = false;
        let decision = world.pick(&mut { FIRST });
        assert_eq!(decision.choice, Pick::Path(path(0)));
        assert_eq!(
            decision.refused.as_slice(),
            [(path(1), Refusal::State), (path(2), Refusal::Burst), (path(3), Refusal::BufferShare)]
        );
    }

    #[test]
    fn with_every_window_full_it_waits_for_any() {
        let mut world = world(&[60, 20]);
        for facts in &mut world.paths {
            facts.in_flight = bytes(4380);
        }
        assert_eq!(world.pick(&mut { FIRST }).choice, Pick::Wait(WaitFor::Window));
    }

    #[test]
    fn unmeasured_path_goes_first_or_last_as_configured() {
        let mut world = world(&[60, 20, 40]);
        world.paths[2].rtt.smoothed = None;
        let decision = world.pick(&mut { FIRST });
        assert_eq!((decision.choice, decision.reason.figure), (Pick::Path(path(2)), ""));
        let mut last = MinRtt { unmeasured: Unmeasured::Last };
        assert_eq!(world.pick(&mut last).choice, Pick::Path(path(1)));
        world.paths[0].in_flight = bytes(4380);
        world.paths[1].in_flight = bytes(4380);
        assert_eq!(world.pick(&mut last).choice, Pick::Path(path(2)), "it is the only one with room");
    }
}
