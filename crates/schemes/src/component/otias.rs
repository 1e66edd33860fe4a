//! `otias`: out-of-order transmission for in-order arrival.
//!
//! OTIAS (Yang, Wang, Amer, "Out-of-Order Transmission for In-Order Arrival Scheduling for Multipath TCP", 2014): each chunk is
//! assigned to the path on which it arrives earliest, including the wait behind data queued there, even if the path is full.

use anabranch_core::policy::{Context, Decision, PathFacts, Pick, Policies, Scheduler, SendAsk, View};
use anabranch_core::time::Span;

use crate::definition::{Card, Choice, ChoiceParameter, Component, Equation, Parameter, Role, Values};
use crate::scheduler::arrival::{after_rounds, earliest};
use crate::scheduler::free;

const ROUNDING: ChoiceParameter<WaitRounding> = ChoiceParameter {
    name: "rounding",
    options: &[("down", WaitRounding::Down), ("begun", WaitRounding::Begun)],
    default: "down",
    about: "round trips of a chunk's wait: whole windows before it, or also the one that contains it",
    source: "down: Yang, Wang, Amer 2014 and the kernel module of MP-DCCP",
};

const PARAMETERS: &[Parameter] = &[ROUNDING.parameter()];

const CARD: Card = Card {
    summary: &[
        "Each chunk goes to the path on which it is expected to arrive first, even if that path is full: queued",
        "data is sent at one window per round trip, and windows are assumed to stay the same. The chunk is bound",
        "to the path and waits in its queue.",
    ],
    equations: &[&[
        Equation {
            name: "RTT_to_wait",
            rule: "0 if bound_j < free_j, else floor((bound_j - free_j) / cwnd_j)",
            file: file!(),
        },
        Equation { name: "T", rule: "argmin over j of (RTT_to_wait_j + 0.5) srtt_j", file: file!() },
    ]],
    choices: &[&[
        Choice {
            question: "Is a full path without queued data a path without a wait?",
            answer: "Yes, by the published floor, although an acknowledgement has to arrive first.",
            parameter: "rounding",
        },
        Choice {
            question: "How does a path without a round-trip sample count?",
            answer: "It carries the data that can be sent at once, which measures it. No data waits for it.",
            parameter: "",
        },
        Choice {
            question: "Are decisions revised?",
            answer: "No, as published. Only data bound to a path that leaves service is assigned again.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "otias",
    about: "Binds each chunk to the path on which it arrives first, with constant windows",
    source: "Yang, Wang, Amer 2014",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(Otias { rounding: ROUNDING.get(values) }), ..policies }
}

/// Rounding of the round trips that a chunk waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRounding {
    /// Whole windows only, as published: less than one window ahead means no wait.
    Down,
    /// Partial windows count as well: a chunk that does not fit now waits for one acknowledgement at least.
    Begun,
}

/// Scheduler: earliest arrival with windows that do not grow.
#[derive(Clone, Debug)]
pub struct Otias {
    /// Rounding of waits.
    pub rounding: WaitRounding,
}

impl Otias {
    /// Returns RTT_to_wait: the number of windows to send before a chunk that joins the queue now.
    fn rounds(&self, path: &PathFacts, view: &View<'_>) -> u64 {
        let free = free(path, view);
        if path.bound < free {
            return 0;
        }
        let cwnd = path.cwnd.max(path.largest_chunk).get().max(1);
        // floor((not_yet_sent - can_be_sent) / cwnd)
        let whole = (path.bound - free).get() / cwnd;
        match self.rounding {
            WaitRounding::Down => whole,
            WaitRounding::Begun => whole + 1,
        }
    }
}

ignores_events! { Otias }

impl Scheduler for Otias {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        // T = (RTT_to_wait + 0.5) srtt
        let arrival = |path: &PathFacts, rtt: Span| after_rounds(self.rounds(path, view), rtt);
        earliest(ask, view, |path| path.rtt.smoothed, arrival)
    }

    fn replan(&mut self, _: &View<'_>) -> bool {
        // OTIAS never reverts a decision.
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::profile::Profile;

    const PUBLISHED: Otias = Otias { rounding: WaitRounding::Down };
    const BEGUN: Otias = Otias { rounding: WaitRounding::Begun };

    /// Creates paths of 20 ms and 100 ms with windows of four chunks. On the first, `flight` chunks are in flight and `bound` wait.
    fn world(flight: u64, bound: u64) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, rtt) in world.paths.iter_mut().zip([20, 100]) {
            facts.rtt.smoothed = Some(Span::from_millis(rtt));
            facts.cwnd = bytes(4 * M);
        }
        world.paths[0].in_flight = bytes(flight * M);
        world.paths[0].bound = bytes(bound * M);
        world
    }

    fn rounds(scheduler: &Otias, flight: u64, bound: u64) -> u64 {
        let world = world(flight, bound);
        scheduler.rounds(&world.paths[0], &world.view())
    }

    #[test]
    fn data_within_the_free_window_has_no_wait() {
        // 2 free: 0 and 1 chunks ahead leave room.
        assert_eq!([0, 1].map(|bound| rounds(&PUBLISHED, 2, bound)), [0, 0]);
        assert_eq!([0, 1].map(|bound| rounds(&BEGUN, 2, bound)), [0, 0]);
    }

    #[test]
    fn data_beyond_the_free_window_waits_for_whole_windows() {
        // 2 free of 4: (2-2)/4 = 0, (5-2)/4 = 0.75, (6-2)/4 = 1, (9-2)/4 = 1.75, (10-2)/4 = 2.
        assert_eq!([2, 5, 6, 9, 10].map(|bound| rounds(&PUBLISHED, 2, bound)), [0, 0, 1, 1, 2]);
        assert_eq!([2, 5, 6, 9, 10].map(|bound| rounds(&BEGUN, 2, bound)), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_full_path_with_nothing_queued_counts_as_no_wait_unless_rounded_up() {
        assert_eq!(rounds(&PUBLISHED, 4, 0), 0);
        assert_eq!(rounds(&BEGUN, 4, 0), 1);
    }

    #[test]
    fn more_in_flight_than_the_window_leaves_nothing_free() {
        // Nothing is free: 4/4 = 1.
        assert_eq!(rounds(&PUBLISHED, 6, 4), 1);
    }

    #[test]
    fn the_fast_path_is_queued_on_until_the_slow_one_is_earlier() {
        // Full: 20 ms * (floor(bound/4) + 0.5) against 100 ms * 0.5 = 50 ms. At bound 8 both are 50 ms, and the first of equals is
        // kept; at 12 the first path needs 70 ms.
        let figure = |bound| {
            let decision = world(4, bound).pick(&mut { PUBLISHED });
            (decision.choice, decision.reason.value)
        };
        assert_eq!(figure(0), (Pick::Bind(path(0)), 10.0));
        assert_eq!(figure(4), (Pick::Bind(path(0)), 30.0));
        assert_eq!(figure(11), (Pick::Bind(path(0)), 50.0));
        assert_eq!(figure(12), (Pick::Path(path(1)), 50.0));
    }

    #[test]
    fn rounded_up_it_leaves_the_fast_path_a_window_earlier() {
        // 20 ms * (floor(7/4) + 1 + 0.5) = 50 ms, and 70 ms from 8 on.
        assert_eq!(world(4, 7).pick(&mut { BEGUN }).choice, Pick::Bind(path(0)));
        assert_eq!(world(4, 8).pick(&mut { BEGUN }).choice, Pick::Path(path(1)));
    }

    #[test]
    fn a_window_with_room_is_used_at_once() {
        assert_eq!(world(2, 0).pick(&mut { PUBLISHED }).choice, Pick::Path(path(0)));
    }

    #[test]
    fn placed_chunk_is_never_moved() {
        assert!(!{ PUBLISHED }.replan(&world(4, 100).view()));
    }

    #[test]
    fn a_path_without_a_window_counts_as_one_with_a_window_of_one_chunk() {
        let mut world = world(0, 3);
        world.paths[0].cwnd = bytes(0);
        assert_eq!(PUBLISHED.rounds(&world.paths[0], &world.view()), 3);
    }
}
