//! `rescheduling`: chunk rescheduling, which moves the head-of-line chunk to the path whose data waits behind it.
//!
//! Chunk rescheduling (Adhari et al. 2011, Dreibholz's SCTP in INET): if received data that waits behind a hole fills half of a
//! buffer, or of a path's share of it, the missing chunk moves to the path whose data waits.

use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, HeadOfLine, HeadOfLineAction, HeadOfLineBlocking,
    HeadOfLineHandling, LossCause, PathFacts, Policies, Reason, Refusal, Refused, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

use crate::component::split::{PATHS, SIDE, SharingPaths, Side};
use crate::definition::{
    Card, Choice, ChoiceParameter, Component, Equation, Kind, Parameter, Role, Value, Values,
};
use crate::retransmit::head_of_line_refusal;

const LIMIT: ChoiceParameter<Limit> = ChoiceParameter {
    name: "limit",
    options: &[("whole", Limit::Whole), ("share", Limit::Share)],
    default: "whole",
    about: "compare with the whole buffer, or with a path's equal share as `split` defines it",
    source: "INET: a share if buffers are split",
};

const PARAMETERS: &[Parameter] = &[
    SIDE.parameter(),
    LIMIT.parameter(),
    PATHS.parameter(),
    Parameter {
        name: "threshold",
        kind: Kind::Decimal { min: 0.01, max: 1.0 },
        unit: "",
        default: Value::Decimal(0.5),
        about: "blocking fraction from which on the head of line is moved",
        source: "Adhari et al. 2011; INET: 0.5",
    },
    Parameter {
        name: "age",
        kind: Kind::Decimal { min: 0.0, max: 100.0 },
        unit: "",
        default: Value::Decimal(0.0),
        about: "smoothed round trips for which the head of line must have been outstanding",
        source: "INET: none for a chunk of another path; 2 for one of the same path",
    },
];

const CARD: Card = Card {
    summary: &[
        "If received data of a path that waits behind a hole fills half of a buffer, the missing chunk is moved",
        "to that path, provided that the path has room and is not in recovery. The previous path of the chunk",
        "reacts as to a loss. No chunk is moved twice.",
    ],
    equations: &[&[
        Equation {
            name: "blocking fraction",
            rule: "(b_p - out_p) / limit >= `fraction`, for the sender's or the receiver's limit",
            file: file!(),
        },
        Equation { name: "sender's limit", rule: "S [/ n]", file: file!() },
        Equation {
            name: "receiver's limit",
            rule: "(peer's window + all data in the send buffer) [/ n]",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "Which of several blocked paths gets the chunk?",
            answer: "The one with the largest fraction. INET uses the first one in its sending order, which is up to the \
                     scheduler here.",
            parameter: "",
        },
        Choice {
            question: "Must the chunk have been outstanding for some time?",
            answer: "No. INET requires two round trips only for a chunk that the blocked path itself carries, and such a chunk \
                     is not moved here: fast retransmit and T3 recover it.",
            parameter: "age",
        },
        Choice {
            question: "Does the whole buffer count, or a share of it?",
            answer: "The whole, as in INET unless buffers are split too.",
            parameter: "limit",
        },
        Choice {
            question: "What is the effect of `nr-sack`?",
            answer: "Data that an NR-SACK releases does not count as waiting. With `keeps=all` hardly any data is left that \
                     reveals a blocked receiver.",
            parameter: "",
        },
        Choice { question: "What is n?", answer: "The active paths, as for `split`.", parameter: "paths" },
        Choice {
            question: "How do lost chunks that wait count?",
            answer: "They count as waiting, as in INET, where only data in the network is outstanding. Chunks that are bound \
                     to the path and not sent do not count: they wait for its window.",
            parameter: "",
        },
        Choice {
            question: "Does the previous path pause if it is in recovery already?",
            answer: "No. INET's pause of one round trip is omitted, since a path in recovery is reduced only once here too.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "rescheduling",
    about: "Moves the head of line to a path whose data behind it fills half of a buffer",
    source: "Adhari, Dreibholz et al. 2011 (chunk rescheduling); INET",
    role: Role::OpportunisticRetransmission,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let settings = ReschedulingSettings {
        side: SIDE.get(values),
        limit: LIMIT.get(values),
        sharers: PATHS.get(values),
        threshold: values.decimal("threshold"),
        age: values.decimal("age"),
    };
    Policies { head_of_line: Box::new(Rescheduling::new(settings)), ..policies }
}

/// Size with which waiting data is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Whole buffer.
    Whole,
    /// Equal share of each path in the buffer, as with buffer splitting.
    Share,
}

/// Conditions for moving the head-of-line chunk.
#[derive(Clone, Copy, Debug)]
pub struct ReschedulingSettings {
    /// Endpoint whose buffer is checked.
    pub side: Side,
    /// Whole buffer, or a share.
    pub limit: Limit,
    /// Paths that have a share.
    pub sharers: SharingPaths,
    /// Fraction of the limit from which a path counts as blocked.
    pub threshold: f64,
    /// Minimum time in flight, in smoothed round-trip times of the chunk's path; 0 requires none.
    pub age: f64,
}

/// Moves the head-of-line chunk.
#[derive(Clone, Copy, Debug)]
pub struct Rescheduling {
    settings: ReschedulingSettings,
    /// Chunk that moved last. The head of line never moves back, so the last one suffices.
    moved: Option<u64>,
}

impl Rescheduling {
    /// Creates a policy that has moved no chunk.
    pub fn new(settings: ReschedulingSettings) -> Self {
        Rescheduling { settings, moved: None }
    }

    /// Returns the bytes of a path that are in the send buffer but not in the network: received behind a hole, or lost and waiting.
    /// Bound chunks wait for their window, not behind a hole.
    fn blocked(path: &PathFacts) -> ChunkBytes {
        path.held - path.in_flight - path.bound
    }

    /// Returns the larger of the relevant blocking fractions: (b_p - out_p) / limit. The sender's limit is its buffer, the
    /// receiver's the peer's window plus the whole send buffer.
    fn blocking_fraction(&self, path: &PathFacts, view: &View<'_>) -> f64 {
        let settings = &self.settings;
        let shares = match settings.limit {
            Limit::Whole => 1,
            Limit::Share => settings.sharers.count(view),
        };
        let held: ChunkBytes = view.paths.iter().map(|p| p.held).sum();
        let receiver = view.association.peer_window.get().saturating_add(held.get());
        let limits = [
            // A send buffer without a limit is never full.
            view.association.send_buffer_limit.filter(|_| settings.side.has_sender()),
            Some(receiver).filter(|_| settings.side.has_receiver()),
        ];
        let blocked = Self::blocked(path).get() as f64;
        let fraction = |limit: u64| if limit == 0 { 0.0 } else { blocked * shares as f64 / limit as f64 };
        limits.into_iter().flatten().map(fraction).fold(0.0, f64::max)
    }

    /// INET's conditions for the target path, apart from its blocking fraction.
    fn refusal(path: &PathFacts, head: &HeadOfLine) -> Option<Refusal> {
        // A path in recovery is excluded.
        let recovering = path.recovery_point.is_some().then_some(Refusal::Preference);
        head_of_line_refusal(path, head).or(recovering)
    }

    /// Returns `true` if the chunk has been in flight for long enough on the path of its latest transmission.
    fn is_old(&self, head: &HeadOfLine, view: &View<'_>) -> bool {
        if self.settings.age <= 0.0 {
            return true;
        }
        let smoothed = view.paths.get(head.path.index()).and_then(|path| path.rtt.smoothed);
        let (Some(sent_at), Some(smoothed)) = (head.sent_at, smoothed) else { return false };
        view.now.since(sent_at).as_secs_f64() > self.settings.age * smoothed.as_secs_f64()
    }

    fn reschedule(&self, head: &HeadOfLine, view: &View<'_>) -> Option<Decision<HeadOfLineAction>> {
        let mut refused = Refused::new();
        let mut most: Option<(&PathFacts, f64)> = None;
        for path in view.paths {
            if let Some(refusal) = Self::refusal(path, head) {
                refused.push((path.id, refusal));
                continue;
            }
            let fraction = self.blocking_fraction(path, view);
            let better =
                fraction >= self.settings.threshold && most.is_none_or(|(_, other)| fraction > other);
            let passed_over =
                if better { most.replace((path, fraction)).map(|(other, _)| other) } else { Some(path) };
            if let Some(other) = passed_over {
                refused.push((other.id, Refusal::Preference));
            }
        }
        let (path, fraction) = most?;
        let reason = Reason::figure("its data waits behind the hole", "blocking_fraction", fraction);
        Some(Decision::with_refused(HeadOfLineAction::Move(path.id), reason, refused))
    }
}

impl Slot for Rescheduling {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::Lost])
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
        if let Event::Lost { tsn, cause: LossCause::Rescheduled, .. } = event {
            self.moved = Some(*tsn);
        }
    }
}

impl HeadOfLineHandling for Rescheduling {
    copied!(HeadOfLineHandling);

    fn handle(
        &mut self,
        _: &HeadOfLineBlocking,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        let moves = |head: &HeadOfLine| {
            // Only chunks in flight, and each chunk once (INET: `countsAsOutstanding`, `hasBeenMoved`).
            !head.in_flight_on.is_empty() && self.moved != Some(head.tsn) && self.is_old(head, view)
        };
        let head = view.association.head_of_line.filter(moves);
        head.and_then(|head| self.reschedule(&head, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::{Span, Time};
    use anabranch_core::units::WindowBytes;

    const SETTINGS: ReschedulingSettings = ReschedulingSettings {
        side: Side::Both,
        limit: Limit::Whole,
        sharers: SharingPaths::Active,
        threshold: 0.5,
        age: 0.0,
    };
    const SENDER: ReschedulingSettings = ReschedulingSettings { side: Side::Sender, ..SETTINGS };
    const RECEIVER: ReschedulingSettings = ReschedulingSettings { side: Side::Receiver, ..SETTINGS };
    /// New data could be sent: a blocked buffer shows in the waiting data, not in the window.
    const NOT_BLOCKED: HeadOfLineBlocking =
        HeadOfLineBlocking { next_chunk: None, peer_window_closed: false };

    /// Creates a first path with 12 chunks of which 2 are in flight, so 10 wait, and a second path with the head-of-line chunk. The
    /// peer's window is 7 chunks, so its buffer is 12 + 1 + 7 = 20. The send buffer is 20 too.
    fn world() -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, (held, in_flight)) in world.paths.iter_mut().zip([(12, 2), (1, 1)]) {
            facts.held = bytes(held * M);
            facts.in_flight = bytes(in_flight * M);
            facts.rtt.smoothed = Some(Span::from_millis(100));
        }
        world.association.peer_window = WindowBytes::new(7 * M);
        world.association.send_buffer_limit = Some(20 * M);
        world.association.head_of_line = Some(HeadOfLine {
            tsn: 101,
            bytes: bytes(M),
            path: path(1),
            in_flight_on: [path(1)].into_iter().collect(),
            sent_at: Some(Time::from_nanos(900_000_000)),
            transmissions: 1,
        });
        world
    }

    fn policy(settings: ReschedulingSettings) -> Rescheduling {
        Rescheduling::new(settings)
    }

    fn handle(world: &mut World, settings: ReschedulingSettings) -> Option<Decision<HeadOfLineAction>> {
        world.with(|view, context| policy(settings).handle(&NOT_BLOCKED, view, context))
    }

    fn moved(world: &mut World, settings: ReschedulingSettings) -> Option<usize> {
        handle(world, settings).map(|decision| match decision.choice {
            HeadOfLineAction::Move(path) => path.index(),
            HeadOfLineAction::Copy(_) => panic!("it only moves"),
        })
    }

    #[test]
    fn head_of_line_moves_to_the_path_that_fills_half_a_buffer() {
        let decision = handle(&mut world(), SETTINGS).expect("a move");
        assert_eq!(decision.choice, HeadOfLineAction::Move(path(0)));
        // 10 of 20 chunks.
        let reason = Reason::figure("its data waits behind the hole", "blocking_fraction", 0.5);
        assert_eq!(decision.reason, reason);
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::Preference)]);
    }

    #[test]
    fn the_senders_fraction_is_of_the_send_buffer() {
        let mut world = world();
        assert_eq!(moved(&mut world, SENDER), Some(0));
        world.association.send_buffer_limit = Some(20 * M + 1);
        assert_eq!(moved(&mut world, SENDER), None);
        assert_eq!(moved(&mut world, ReschedulingSettings { threshold: 0.49, ..SENDER }), Some(0));
        world.association.send_buffer_limit = None;
        assert_eq!(moved(&mut world, ReschedulingSettings { threshold: 0.01, ..SENDER }), None);
    }

    #[test]
    fn the_receivers_fraction_is_of_the_peers_window_and_all_that_is_held() {
        let mut world = world();
        assert_eq!(moved(&mut world, RECEIVER), Some(0));
        world.association.peer_window = WindowBytes::new(7 * M + 1);
        assert_eq!(moved(&mut world, RECEIVER), None);
        world.association.peer_window = WindowBytes::ZERO;
        // 10 / 13.
        let decision = handle(&mut world, RECEIVER).expect("a move");
        assert_eq!(decision.reason.value, (10 * M) as f64 / (13 * M) as f64);
    }

    #[test]
    fn with_both_sides_one_of_them_is_enough() {
        let mut world = world();
        world.association.send_buffer_limit = Some(100 * M);
        assert_eq!([SETTINGS, SENDER, RECEIVER].map(|s| moved(&mut world, s)), [Some(0), None, Some(0)]);
        world.association.send_buffer_limit = Some(20 * M);
        world.association.peer_window = WindowBytes::new(100 * M);
        assert_eq!([SETTINGS, SENDER, RECEIVER].map(|s| moved(&mut world, s)), [Some(0), Some(0), None]);
    }

    #[test]
    fn smaller_share_requires_less_waiting_data() {
        let mut world = world();
        // 10 chunks of 40 are a quarter, and half of a share of two.
        world.association.send_buffer_limit = Some(40 * M);
        let share = ReschedulingSettings { limit: Limit::Share, ..SENDER };
        assert_eq!([SENDER, share].map(|s| moved(&mut world, s)), [None, Some(0)]);
        // The second path still carries the chunk, but is out of service: one share, or still two.
        world.paths[1].state = PathState::Inactive;
        let all = ReschedulingSettings { sharers: SharingPaths::All, ..share };
        assert_eq!([share, all].map(|s| moved(&mut world, s)), [None, Some(0)]);
    }

    #[test]
    fn lost_chunks_count_as_waiting_but_not_bound_or_flying_ones() {
        let mut world = world();
        world.paths[0].in_flight = bytes(2 * M + 1);
        assert_eq!(moved(&mut world, SENDER), None);
        world.paths[0].in_flight = bytes(2 * M);
        world.paths[0].bound = bytes(1);
        assert_eq!(moved(&mut world, SENDER), None);
        world.paths[0].bound = bytes(0);
        world.paths[0].lost_unsent = bytes(5 * M);
        assert_eq!(moved(&mut world, SENDER), Some(0));
    }

    #[test]
    fn head_of_line_avoids_carrying_recovering_full_and_failed_paths() {
        type Trouble = fn(&mut World);
        let cases: [(Trouble, Refusal); 5] = [
            (|w| w.paths[0].recovery_point = Some(200), Refusal::Preference),
            (|w| w.paths[0].cwnd = bytes(2 * M), Refusal::WindowFull),
            (|w| w.paths[0].resend_burst_left = 0, Refusal::Burst),
            (|w| w.paths[0].state = PathState::PotentiallyFailed, Refusal::State),
            (
                |w| {
                    let head = w.association.head_of_line.as_mut().expect("it is there");
                    head.in_flight_on.insert(path(0));
                },
                Refusal::Preference,
            ),
        ];
        for (trouble, refusal) in cases {
            let mut world = world();
            trouble(&mut world);
            assert_eq!(moved(&mut world, SETTINGS), None, "{refusal:?}");
            let head = world.association.head_of_line.expect("it is there");
            assert_eq!(Rescheduling::refusal(&world.paths[0], &head), Some(refusal));
        }
    }

    #[test]
    fn most_blocked_path_gets_the_chunk_and_the_first_of_equals() {
        for (held, expected) in [(13, 2), (12, 0), (11, 0)] {
            let mut world = world();
            let mut third = world.paths[0];
            third.id = path(2);
            third.held = bytes(held * M);
            world.paths.push(third);
            let decision =
                handle(&mut world, ReschedulingSettings { threshold: 0.1, ..SENDER }).expect("a move");
            assert_eq!(decision.choice, HeadOfLineAction::Move(path(expected)));
            assert_eq!(decision.refused.len(), 2);
        }
    }

    #[test]
    fn chunk_that_is_not_in_flight_is_not_moved() {
        let mut world = world();
        if let Some(head) = &mut world.association.head_of_line {
            head.in_flight_on = anabranch_core::PathSet::EMPTY;
        }
        assert_eq!(moved(&mut world, SETTINGS), None);
        world.association.head_of_line = None;
        assert_eq!(moved(&mut world, SETTINGS), None);
    }

    #[test]
    fn a_chunk_moves_once() {
        let mut world = world();
        let mut policy = policy(SETTINGS);
        let lost =
            |tsn, cause| Event::Lost { path: path(1), tsn, bytes: bytes(M), sent_at: Time::default(), cause };
        let mut moves = |policy: &mut Rescheduling, event: Event<'_>| {
            world.dispatch(policy, &event);
            world.with(|view, context| policy.handle(&NOT_BLOCKED, view, context)).is_some()
        };
        assert!(moves(&mut policy, lost(101, LossCause::FastRetransmit)));
        assert!(moves(&mut policy, lost(100, LossCause::Rescheduled)), "another one did");
        assert!(!moves(&mut policy, lost(101, LossCause::Rescheduled)));
    }

    #[test]
    fn an_age_may_be_asked_for_in_round_trips_of_its_path() {
        // The chunk has been in flight for 100 ms, since the world's time is 1000 ms and the chunk was sent at 900 ms.
        let of = |age, rtt: Option<u64>| {
            let mut world = world();
            world.paths[1].rtt.smoothed = rtt.map(Span::from_millis);
            moved(&mut world, ReschedulingSettings { age, ..SETTINGS })
        };
        assert_eq!(of(2.0, Some(49)), Some(0), "100 > 98");
        assert_eq!(of(2.0, Some(50)), None, "100 is not more than 100");
        assert_eq!([of(2.0, None), of(0.0, None)], [None, Some(0)]);
        let mut never_sent = world();
        if let Some(head) = &mut never_sent.association.head_of_line {
            head.sent_at = None;
        }
        assert_eq!(moved(&mut never_sent, ReschedulingSettings { age: 2.0, ..SETTINGS }), None);
    }

    #[test]
    fn no_chunk_moves_without_measurements() {
        let mut world = world();
        world.association.peer_window = WindowBytes::ZERO;
        world.association.send_buffer_limit = Some(0);
        world.paths.iter_mut().for_each(|facts| facts.held = bytes(0));
        assert_eq!(moved(&mut world, SETTINGS), None);
    }
}
