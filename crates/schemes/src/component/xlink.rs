//! `xlink`: copies of the head-of-line chunk while the receiver will soon be blocked without it.
//!
//! XLINK (Zheng, Ma, Liu et al., SIGCOMM 2021): unacknowledged data is sent again on another path, controlled by two thresholds of
//! the time for which the player has data. A bulk transfer has no player; here it is the time until data behind the hole fills the
//! receive buffer.

use anabranch_core::policy::{
    Context, Decision, HeadOfLine, HeadOfLineAction, HeadOfLineBlocking, HeadOfLineHandling, PathFacts,
    Policies, Reason, Refusal, Refused, View,
};
use anabranch_core::time::Span;

use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values};
use crate::retransmit::head_of_line_refusal;

const fn time(name: &'static str, default: u32, about: &'static str, source: &'static str) -> Parameter {
    let kind = Kind::Milliseconds { min: 0, max: 60_000 };
    Parameter { name, kind, unit: "ms", default: Value::Number(default), about, source }
}

const PARAMETERS: &[Parameter] = &[
    time(
        "urgent",
        200,
        "time left below which the receiver gets a copy at once",
        "T_th1 of Zheng et al. 2021, there a percentile of play times; here the longest delay of a SACK (RFC 9260 section 6.2)",
    ),
    time(
        "relaxed",
        1_000,
        "time left above which the receiver gets no copy",
        "T_th2 of Zheng et al. 2021, there a percentile of play times; here RTO.Min (RFC 9260 section 16)",
    ),
];

const CARD: Card = Card {
    summary: &[
        "The chunk for which the receiver waits is sent a second time on the fastest path with room, if the time",
        "that the receiver can continue without it is short, or shorter than the possible arrival time of data in",
        "flight. The chunk does not count as lost and no window is reduced. No copy is sent while there is time.",
    ],
    equations: &[&[
        Equation {
            name: "double thresholding",
            rule: "dt > relaxed: no copy; dt < urgent: copy; between them: copy if max of srtt + rttvar over paths with data in flight > dt",
            file: file!(),
        },
        Equation {
            name: "time left",
            rule: "dt = peer's window / sum of the paths' delivery rates; 0 if no data waits to be sent",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "The player reports the time for which it has data. How does a receiver of bulk data report it?",
            answer: "By its window: it can continue until arriving data has filled the window. If no data waits to be sent, \
                     the end of the message waits only for the head of line, and no time is left.",
            parameter: "",
        },
        Choice {
            question: "Which data is copied, and when?",
            answer: "The head of line, before new data. This is the priority that the paper gives to the stream and frame that \
                     are needed first. The paper copies all unacknowledged data; no data behind the head of line is missing.",
            parameter: "",
        },
        Choice {
            question: "Which path sends the copy?",
            answer: "The one with the lowest smoothed round-trip time of those with room that do not carry it.",
            parameter: "",
        },
        Choice {
            question: "How is new data scheduled?",
            answer: "By the scheduler. XLINK uses the minimum round-trip time: `cmt+min-rtt+xlink`.",
            parameter: "",
        },
        Choice {
            question: "What happens before a rate was measured?",
            answer: "The receiver counts as having time.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "xlink",
    about: "Copies the head of line while the receiver cannot continue for long without it",
    source: "Zheng, Ma, Liu et al. 2021 (SIGCOMM)",
    role: Role::OpportunisticRetransmission,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let span = |name| Span::from_millis(u64::from(values.number(name)));
    let gate = GatedCopies { urgent: span("urgent"), relaxed: span("relaxed") };
    Policies { head_of_line: Box::new(gate), ..policies }
}

/// Policy that sends copies of the head-of-line chunk while little time remains.
#[derive(Clone, Debug)]
struct GatedCopies {
    urgent: Span,
    relaxed: Span,
}

impl GatedCopies {
    /// Returns `true` if copies may be sent, by the paper's double threshold.
    fn opens(&self, left: Span, view: &View<'_>) -> bool {
        if left < self.urgent {
            return true;
        }
        left <= self.relaxed && longest_delivery(view) > left
    }
}

/// Returns the time for which the receiver can accept more data, or `None` if it is unknown.
fn time_left(blocking: &HeadOfLineBlocking, view: &View<'_>) -> Option<Span> {
    if blocking.next_chunk.is_none() {
        return Some(Span::ZERO);
    }
    let rates = view.active().filter_map(|path| path.delivery_rate);
    let bps: f64 = rates.map(|rate| rate.as_bps() as f64).sum();
    let window = view.association.peer_window.get() as f64;
    (bps > 0.0).then(|| Span::from_secs_f64(window * 8.0 / bps))
}

/// Returns the time until the last data in flight may be delivered.
fn longest_delivery(view: &View<'_>) -> Span {
    let carrying = view.active().filter(|path| !path.in_flight.is_zero());
    let times = carrying.filter_map(|path| Some(path.rtt.smoothed? + path.rtt.variance.unwrap_or_default()));
    times.max().unwrap_or_default()
}

/// Chooses a copy on the fastest path that may carry one. Unmeasured paths come last.
fn copy(head: &HeadOfLine, left: Span, view: &View<'_>) -> Option<Decision<HeadOfLineAction>> {
    let refusal = |path: &PathFacts| head_of_line_refusal(path, head);
    let free = view.paths.iter().filter(|path| refusal(path).is_none());
    let best = free.min_by_key(|path| (path.rtt.smoothed.is_none(), path.rtt.smoothed))?.id;
    let others = view.paths.iter().filter(|path| path.id != best);
    let refused: Refused =
        others.map(|path| (path.id, refusal(path).unwrap_or(Refusal::Preference))).collect();
    let reason =
        Reason::figure("the receiver cannot continue for long", "time_left_ms", left.as_millis_f64());
    Some(Decision::with_refused(HeadOfLineAction::Copy(best), reason, refused))
}

ignores_events! { GatedCopies }

impl HeadOfLineHandling for GatedCopies {
    copied!(HeadOfLineHandling);

    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        let head = view.association.head_of_line.filter(|head| !head.in_flight_on.is_empty())?;
        let left = time_left(blocking, view).filter(|left| self.opens(*left, view))?;
        copy(&head, left, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, M, World, bytes, path};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::{Rate, Time};
    use anabranch_core::units::WindowBytes;

    const WAITING: HeadOfLineBlocking =
        HeadOfLineBlocking { next_chunk: Some(ASK.chunk), peer_window_closed: false };

    /// Creates three paths of 4 Mbit/s each and 300, 20 and 40 ms. The first carries the head-of-line chunk. The receiver can
    /// accept data for `left_ms`.
    fn world(left_ms: u64) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 3);
        for (facts, rtt) in world.paths.iter_mut().zip([300, 20, 40]) {
            facts.rtt.smoothed = Some(Span::from_millis(rtt));
            facts.rtt.variance = Some(Span::from_millis(100));
            facts.delivery_rate = Some(Rate::from_bps(4_000_000));
        }
        world.paths[0].in_flight = bytes(M);
        world.association.peer_window = WindowBytes::new(1_500 * left_ms);
        world.association.head_of_line = Some(HeadOfLine {
            tsn: 7,
            bytes: bytes(M),
            path: path(0),
            in_flight_on: [path(0)].into_iter().collect(),
            sent_at: Some(Time::ZERO),
            transmissions: 1,
        });
        world
    }

    fn copied(world: &mut World, blocking: HeadOfLineBlocking) -> Option<usize> {
        let mut gate = GatedCopies { urgent: Span::from_millis(200), relaxed: Span::from_secs(1) };
        let action = world.with(|view, context| gate.handle(&blocking, view, context))?;
        match action.choice {
            HeadOfLineAction::Copy(path) => Some(path.index()),
            HeadOfLineAction::Move(_) => panic!("it only copies"),
        }
    }

    #[test]
    fn copies_are_sent_only_below_the_playout_threshold() {
        assert_eq!(copied(&mut world(1_001), WAITING), None);
        assert_eq!(copied(&mut world(199), WAITING), Some(1));
    }

    #[test]
    fn between_the_thresholds_the_slowest_path_with_data_in_flight_decides() {
        // The answer arrives within 300 + 100 ms.
        assert_eq!(copied(&mut world(399), WAITING), Some(1));
        assert_eq!(copied(&mut world(400), WAITING), None);
        let mut quick = world(399);
        quick.paths[0].in_flight = bytes(0);
        assert_eq!(copied(&mut quick, WAITING), None);
    }

    #[test]
    fn end_of_data_has_no_remaining_time() {
        let end = HeadOfLineBlocking { next_chunk: None, peer_window_closed: false };
        assert_eq!(copied(&mut world(60_000), end), Some(1));
    }

    #[test]
    fn full_path_or_path_with_the_chunk_gets_no_copy() {
        let mut world = world(0);
        world.paths[1].in_flight = bytes(4_380);
        assert_eq!(copied(&mut world, WAITING), Some(2));
        world.paths[2].in_flight = bytes(4_380);
        assert_eq!(copied(&mut world, WAITING), None);
    }

    #[test]
    fn no_copy_without_rate_or_outstanding_chunk() {
        let mut unmeasured = world(0);
        unmeasured.paths.iter_mut().for_each(|facts| facts.delivery_rate = None);
        assert_eq!(copied(&mut unmeasured, WAITING), None);
        let mut lost = world(0);
        if let Some(head) = &mut lost.association.head_of_line {
            head.in_flight_on = Default::default();
        }
        assert_eq!(copied(&mut lost, WAITING), None);
    }
}
