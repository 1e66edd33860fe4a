//! Copies of a late head-of-line chunk.
//!
//! The other paths have nothing to send while the peer's window is closed, and a copy takes no room from new data. The smoothed
//! round-trip time covers only chunks that arrived. The age of a chunk also reveals that it waits in a queue that has grown.

use anabranch_core::policy::{
    Context, Decision, HeadOfLine, HeadOfLineAction, HeadOfLineBlocking, HeadOfLineHandling, PathFacts,
    Reason, View,
};

use crate::component::opportunistic::{Condition, Opportunistic};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "copy of the head of line",
    rule: "the peer's window is closed, f is the path with room and the lowest SRTT that does not carry the head of line, and \
           every path p that carries it has age + SRTT_f < SRTT_p, or age > SRTT_p + max(4 RTTVAR_p, SRTT_p / 4) and SRTT_f < \
           2 SRTT_p",
    file: file!(),
}];

/// Copies the head-of-line chunk if the copy is expected to arrive first.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadOfLineRetransmission;

/// Returns `true` if a copy on this path is expected before the chunk itself, or the chunk is overdue: it may be lost, and RACK
/// cannot detect that while nothing is sent. Paths with twice the round-trip time are excluded, since a loss is detected earlier.
fn is_late(head: &HeadOfLine, fast: &PathFacts, view: &View<'_>) -> bool {
    let (Some(sent_at), Some(copy)) = (head.sent_at, fast.rtt.smoothed) else { return false };
    let age = view.now.since(sent_at);
    head.in_flight_on.iter().all(|id| {
        let Some(path) = view.paths.get(id.index()) else { return false };
        let Some(smoothed) = path.rtt.smoothed else { return false };
        let margin = path.rtt.variance.unwrap_or_default().times(4).max(smoothed.over(4));
        age + copy < smoothed || (age > smoothed + margin && copy < smoothed.times(2))
    })
}

ignores_events! { HeadOfLineRetransmission }

impl HeadOfLineHandling for HeadOfLineRetransmission {
    copied!(HeadOfLineHandling);

    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        let decision = Opportunistic { condition: Condition::Always }.handle(blocking, view, context)?;
        let HeadOfLineAction::Copy(to) = decision.choice else { return None };
        let head = view.association.head_of_line?;
        let age = head.sent_at.map_or(0.0, |sent_at| view.now.since(sent_at).as_millis_f64());
        let reason = Reason::figure("the head of line is late", "age_ms", age);
        is_late(&head, view.path(to), view).then_some(Decision { reason, ..decision })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, M, World, bytes, path};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// Creates paths with these round-trip times in milliseconds and a variation of 10 ms. The head-of-line chunk was sent on the
    /// second.
    fn world(rtts: [u64; 2], age: u64) -> World {
        let mut world = World::new(Profile::rfc9260(), 2);
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            (facts.rtt.smoothed, facts.rtt.variance) = (Some(ms(rtt)), Some(ms(10)));
            facts.cwnd = bytes(10 * M);
        }
        world.association.head_of_line = Some(HeadOfLine {
            tsn: 101,
            bytes: bytes(M),
            path: path(1),
            in_flight_on: [path(1)].into_iter().collect(),
            sent_at: Some(world.now),
            transmissions: 1,
        });
        world.now += ms(age);
        world
    }

    fn copied(world: &mut World, closed: bool) -> bool {
        let blocking = HeadOfLineBlocking { next_chunk: Some(ASK.chunk), peer_window_closed: closed };
        let decision = world.with(|view, context| HeadOfLineRetransmission.handle(&blocking, view, context));
        decision.is_some_and(|decision| decision.choice == HeadOfLineAction::Copy(path(0)))
    }

    #[test]
    fn a_copy_is_sent_while_it_is_expected_to_arrive_first() {
        for (age, expected) in [(0, true), (59, true), (60, false), (140, false)] {
            assert_eq!(copied(&mut world([40, 100], age), true), expected, "{age} ms");
        }
    }

    #[test]
    fn overdue_chunk_is_copied_unless_the_path_takes_twice_as_long() {
        for (other, expected) in [(40, true), (100, true), (199, true), (200, false)] {
            assert_eq!(copied(&mut world([other, 100], 141), true), expected, "{other} ms");
        }
    }

    #[test]
    fn open_window_or_unknown_rtt_prevents_a_copy() {
        assert!(!copied(&mut world([40, 100], 0), false));
        for index in [0, 1] {
            let mut world = world([40, 100], 141);
            world.paths[index].rtt.smoothed = None;
            assert!(!copied(&mut world, true), "{index}");
        }
    }
}
