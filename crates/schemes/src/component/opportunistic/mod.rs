//! `opportunistic`: copies of the head-of-line chunk while the peer's window is closed.
//!
//! Opportunistic retransmission (Raiciu et al. 2012, as in Linux's multipath TCP): while the peer's window blocks new data, a path
//! with room sends a copy of the chunk that keeps the window closed.

use anabranch_core::policy::{
    Context, Decision, HeadOfLine, HeadOfLineAction, HeadOfLineBlocking, HeadOfLineHandling, PathFacts,
    Policies, Reason, Refusal, Refused, View,
};

use crate::component::opportunistic::penalisation::Penalisation;
use crate::congestion::Wrapped;
use crate::definition::{Card, Choice, ChoiceParameter, Component, Equation, Parameter, Role, Values, text};
use crate::retransmit::head_of_line_refusal;

pub mod penalisation;

pub(crate) const FILE: &str = file!();

const WHEN: ChoiceParameter<Condition> = ChoiceParameter {
    name: "when",
    options: &[("linux", Condition::MuchSlower), ("always", Condition::Always)],
    default: "linux",
    about: "copy if the slow path is much slower or has a small window, or whenever a path has room",
    source: "MPTCP in Linux 0.9x; Raiciu et al. 2012 copies always",
};

const PARAMETERS: &[Parameter] = &[
    WHEN.parameter(),
    Parameter::switch(
        "penalise",
        false,
        "halve the window of the slower path with the head of line when that is copied",
        "Raiciu et al. 2012, penalisation; Linux MPTCP v0.9x",
    ),
];

const CARD: Card = Card {
    summary: &[
        "While the peer's window blocks new data, the fastest path with room that does not carry the head of",
        "line yet sends a copy of it. The chunk does not count as lost and no window is reduced; the copy that",
        "arrives first opens the window.",
    ],
    equations: &[&[Equation {
        name: "mptcp_rcv_buf_optimization",
        rule: text!("copy if cwnd_slow <= {} chunks or {} srtt_fast < srtt_slow", SMALL_WINDOW, MUCH_SLOWER,),
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "When is a chunk copied?",
            answer: "As in Linux; the paper copies whenever a path has room.",
            parameter: "when",
        },
        Choice {
            question: "Which path is the fastest?",
            answer: "The one with the lowest smoothed round-trip time; paths without a sample come last, and of equal ones the \
                     lowest id first.",
            parameter: "",
        },
        Choice {
            question: "What happens if several slow paths carry the chunk?",
            answer: "They are checked in the order of their ids: the first one with a small window decides for the copy, the \
                     first one that is not much slower against it, as in Linux's loop.",
            parameter: "",
        },
        Choice {
            question: "Is the slow path penalised?",
            answer: "Only on request, so that copying can be compared alone. Then its window is halved, at most once in the \
                     fast path's round-trip time.",
            parameter: "penalise",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "opportunistic",
    about: "Copies the head of line to a fast path while the peer's window is closed",
    source: "Raiciu et al. 2012; MPTCP in Linux",
    role: Role::OpportunisticRetransmission,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let head_of_line = Box::new(Opportunistic { condition: WHEN.get(values) });
    let congestion = match values.switch("penalise") {
        true => Box::new(Wrapped::new(Penalisation::default(), policies.congestion)),
        false => policies.congestion,
    };
    Policies { head_of_line, congestion, ..policies }
}

/// Condition for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A path has room.
    Always,
    /// The chunk's path has a window of at most four chunks, or more than four times the round-trip time.
    MuchSlower,
}

/// Largest window, in chunks, at which a path counts as slow regardless of its round-trip time (Linux,
/// `mptcp_rcv_buf_optimization`).
const SMALL_WINDOW: u64 = 4;
/// Ratio of round-trip times above which a path counts as slow (the same source).
const MUCH_SLOWER: u64 = 4;

/// Copies the head-of-line chunk.
#[derive(Clone, Copy, Debug)]
pub struct Opportunistic {
    /// Condition for a copy.
    pub condition: Condition,
}

impl Opportunistic {
    fn copy(&self, head: &HeadOfLine, view: &View<'_>) -> Option<Decision<HeadOfLineAction>> {
        let mut refused = Refused::new();
        let mut fastest: Option<&PathFacts> = None;
        for path in view.paths {
            if let Some(refusal) = head_of_line_refusal(path, head) {
                refused.push((path.id, refusal));
                continue;
            }
            let passed_over = match fastest {
                Some(other) if !is_faster(path, other) => Some(path),
                other => {
                    fastest = Some(path);
                    other
                }
            };
            if let Some(other) = passed_over {
                refused.push((other.id, Refusal::Preference));
            }
        }
        let fastest = fastest?;
        let worth = match self.condition {
            Condition::Always => true,
            Condition::MuchSlower => is_much_slower(head, fastest, view),
        };
        let milliseconds = fastest.rtt.smoothed.map_or(0.0, |smoothed| smoothed.as_millis_f64());
        let reason = Reason::figure("the peer's window is closed", "srtt_ms", milliseconds);
        worth.then(|| Decision::with_refused(HeadOfLineAction::Copy(fastest.id), reason, refused))
    }
}

/// Returns `true` if `path` has a lower round-trip time than `than`. An unmeasured path counts as slower than a measured one.
fn is_faster(path: &PathFacts, than: &PathFacts) -> bool {
    match (path.rtt.smoothed, than.rtt.smoothed) {
        (Some(mine), Some(other)) => mine < other,
        (mine, None) => mine.is_some(),
        (None, Some(_)) => false,
    }
}

/// Implements Linux's loop over the paths that carry the chunk: the first one with a small window selects a copy, the first one
/// that is not much slower rejects it.
fn is_much_slower(head: &HeadOfLine, fast: &PathFacts, view: &View<'_>) -> bool {
    let mut slower = false;
    for id in head.in_flight_on.iter() {
        let Some(slow) = view.paths.get(id.index()) else { continue };
        if slow.cwnd <= slow.largest_chunk.times(SMALL_WINDOW) {
            return true;
        }
        let (Some(mine), Some(theirs)) = (fast.rtt.smoothed, slow.rtt.smoothed) else { return false };
        if mine.times(MUCH_SLOWER) >= theirs {
            return false;
        }
        slower = true;
    }
    slower
}

ignores_events! { Opportunistic }

impl HeadOfLineHandling for Opportunistic {
    copied!(HeadOfLineHandling);

    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        let blocked = blocking.next_chunk.is_some() && blocking.peer_window_closed;
        let head = view.association.head_of_line.filter(|head| blocked && !head.in_flight_on.is_empty());
        head.and_then(|head| self.copy(&head, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::{Span, Time};

    const CLOSED: HeadOfLineBlocking =
        HeadOfLineBlocking { next_chunk: Some(ASK.chunk), peer_window_closed: true };

    fn policy(condition: Condition) -> Opportunistic {
        Opportunistic { condition }
    }

    /// Creates paths with these round-trip times in milliseconds and windows of ten chunks. The head-of-line chunk is in flight on
    /// the second.
    fn world<const N: usize>(rtts: [u64; N]) -> World {
        let mut world = World::new(Profile::ns2_multipath(), N);
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            facts.rtt.smoothed = (rtt > 0).then(|| Span::from_millis(rtt));
            facts.cwnd = bytes(10 * M);
        }
        in_flight_on(&mut world, &[1]);
        world
    }

    fn in_flight_on(world: &mut World, indices: &[usize]) {
        world.association.head_of_line = Some(HeadOfLine {
            tsn: 101,
            bytes: bytes(M),
            path: path(1),
            in_flight_on: indices.iter().map(|&index| path(index)).collect(),
            sent_at: Some(Time::ZERO),
            transmissions: 1,
        });
    }

    fn handle(
        world: &mut World,
        condition: Condition,
        blocking: HeadOfLineBlocking,
    ) -> Option<Decision<HeadOfLineAction>> {
        world.with(|view, context| policy(condition).handle(&blocking, view, context))
    }

    /// Returns the path that gets a copy.
    fn copied(world: &mut World, condition: Condition) -> Option<usize> {
        handle(world, condition, CLOSED).map(|decision| match decision.choice {
            HeadOfLineAction::Copy(path) => path.index(),
            HeadOfLineAction::Move(_) => panic!("it only copies"),
        })
    }

    #[test]
    fn the_fastest_path_with_room_gets_a_copy_and_the_others_are_named() {
        let mut world = world([80, 400, 20, 10, 30]);
        world.paths[3].in_flight = bytes(10 * M);
        world.paths[4].state = PathState::PotentiallyFailed;
        let decision = handle(&mut world, Condition::Always, CLOSED).expect("a copy");
        assert_eq!(decision.choice, HeadOfLineAction::Copy(path(2)));
        assert_eq!(decision.reason, Reason::figure("the peer's window is closed", "srtt_ms", 20.0));
        let expected = [
            (path(1), Refusal::Preference),
            (path(0), Refusal::Preference),
            (path(3), Refusal::WindowFull),
            (path(4), Refusal::State),
        ];
        assert_eq!(decision.refused.as_slice(), expected);
    }

    #[test]
    fn no_copy_while_new_data_can_be_sent_or_none_waits() {
        let mut world = world([20, 400]);
        assert_eq!(
            handle(&mut world, Condition::Always, HeadOfLineBlocking { peer_window_closed: false, ..CLOSED }),
            None
        );
        assert_eq!(
            handle(&mut world, Condition::Always, HeadOfLineBlocking { next_chunk: None, ..CLOSED }),
            None
        );
        assert_eq!(copied(&mut world, Condition::Always), Some(0));
    }

    #[test]
    fn chunk_that_is_not_in_flight_is_not_copied() {
        let mut world = world([20, 400]);
        in_flight_on(&mut world, &[]);
        assert_eq!(copied(&mut world, Condition::Always), None);
        world.association.head_of_line = None;
        assert_eq!(copied(&mut world, Condition::Always), None);
    }

    #[test]
    fn path_that_carries_the_chunk_gets_no_second_copy() {
        let mut world = world([20, 400]);
        in_flight_on(&mut world, &[0, 1]);
        assert_eq!(copied(&mut world, Condition::Always), None);
    }

    #[test]
    fn full_failed_or_burst_limited_path_gets_no_copy() {
        let mut full = world([20, 400]);
        full.paths[0].in_flight = bytes(10 * M);
        let mut spent = world([20, 400]);
        spent.paths[0].resend_burst_left = 0;
        let mut failed = world([20, 400]);
        failed.paths[0].state = PathState::Inactive;
        for mut world in [full, spent, failed] {
            assert_eq!(copied(&mut world, Condition::Always), None);
        }
    }

    #[test]
    fn path_without_rtt_sorts_last_and_equal_paths_keep_their_order() {
        assert_eq!(copied(&mut world([0, 400, 90]), Condition::Always), Some(2));
        assert_eq!(copied(&mut world([0, 400, 0]), Condition::Always), Some(0));
        assert_eq!(copied(&mut world([90, 400, 0]), Condition::Always), Some(0));
        assert_eq!(copied(&mut world([90, 400, 90]), Condition::Always), Some(0));
    }

    #[test]
    fn linux_copies_if_the_slow_rtt_is_over_four_times_the_fast() {
        // 4 * 100 < 401.
        assert_eq!(copied(&mut world([100, 401]), Condition::MuchSlower), Some(0));
        assert_eq!(copied(&mut world([100, 400]), Condition::MuchSlower), None);
        assert_eq!(copied(&mut world([100, 400]), Condition::Always), Some(0));
    }

    #[test]
    fn linux_copies_if_the_slow_window_is_at_most_four_chunks() {
        for (cwnd, expected) in [(4 * M, Some(0)), (4 * M + 1, None), (0, Some(0))] {
            let mut world = world([100, 100]);
            world.paths[1].cwnd = bytes(cwnd);
            assert_eq!(copied(&mut world, Condition::MuchSlower), expected);
        }
    }

    #[test]
    fn of_two_paths_that_carry_it_the_first_clear_case_decides() {
        // (srtt, window in chunks) of paths 1 and 2, beside an unused path of 10 ms.
        let cases = [
            ((100, 10), (100, 10), true),
            ((100, 10), (40, 10), false),
            ((40, 10), (100, 10), false),
            ((40, 4), (40, 10), true),
            ((100, 10), (40, 4), true),
            ((40, 10), (40, 4), false),
        ];
        for (first, second, expected) in cases {
            let mut world = world([10, first.0, second.0]);
            world.paths[1].cwnd = bytes(first.1 * M);
            world.paths[2].cwnd = bytes(second.1 * M);
            in_flight_on(&mut world, &[1, 2]);
            assert_eq!(
                copied(&mut world, Condition::MuchSlower) == Some(0),
                expected,
                "{first:?} {second:?}"
            );
        }
    }

    #[test]
    fn an_unknown_round_trip_time_is_not_much_slower() {
        for rtts in [[0, 400], [100, 0], [0, 0]] {
            assert_eq!(copied(&mut world(rtts), Condition::MuchSlower), None);
        }
    }
}
