//! Redundant retransmissions.
//!
//! A lost chunk blocks all later data for a round trip, and for another one if its retransmission is lost too. If the peer's window
//! closes meanwhile, the other paths are idle. A copy on one of them takes no capacity from other data, and both have to be lost
//! before the chunk costs another round trip.

use anabranch_core::PathSet;
use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, LostChunk, PathFacts, RetransmitChoice, RetransmitPath,
    SendKind, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;

use crate::definition::{Equation, text};
use crate::preset::braid::in_order::{rate, seconds};
use crate::preset::braid::soonest::SoonestForAll;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "retransmission on two paths",
    rule: text!(
        "if sum of cwnd_j SRTT_p / SRTT_j over all paths > the peer's window, p the path of the \
         retransmission, a copy is sent on the other path with room and the lowest SRTT < 2 SRTT_p; at \
         most one copy per {} new chunks",
        CHUNKS_PER_COPY,
    ),
    file: file!(),
}];

/// Number of new chunks per copy, which keeps transmissions well below 1.1 times those without copies.
const CHUNKS_PER_COPY: u32 = 16;
/// Maximum number of copies in a burst, as after a burst of losses.
const MOST_AT_ONCE: u32 = 8;

/// Routes a retransmission like [`SoonestForAll`], and copies it to another path while the peer's window limits the paths.
#[derive(Clone, Copy, Debug)]
pub struct RedundantRetransmission {
    /// New chunks not yet counted for a copy.
    unspent_chunks: u32,
}

impl Default for RedundantRetransmission {
    fn default() -> Self {
        RedundantRetransmission { unspent_chunks: MOST_AT_ONCE * CHUNKS_PER_COPY }
    }
}

/// Returns `true` if new data closes the peer's window before the acknowledgement of the retransmission arrives.
fn window_closes_first(round_trip: Span, view: &View<'_>) -> bool {
    // Paths without a round-trip time are skipped, since their rate is unknown.
    let rates = view.active().filter_map(|path| Some(rate(path, seconds(path.rtt.smoothed?))));
    rates.sum::<f64>() * round_trip.as_secs_f64() > view.association.peer_window.get() as f64
}

/// Returns the path for a copy. Paths with twice the round-trip time are excluded, because the loss is detected earlier.
fn other<'a>(path: &PathFacts, view: &View<'a>) -> Option<&'a PathFacts> {
    let limit = path.rtt.smoothed?.times(2);
    let serves = |other: &&PathFacts| {
        other.id != path.id
            && !other.estimates.withdrawn
            && other.admits_retransmission()
            && other.rtt.smoothed.is_some_and(|smoothed| smoothed < limit)
    };
    view.active().filter(serves).min_by_key(|other| other.rtt.smoothed)
}

impl Slot for RedundantRetransmission {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::Sent])
    }

    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
        if matches!(event, Event::Sent(sent) if sent.kind == SendKind::New) {
            self.unspent_chunks = (self.unspent_chunks + 1).min(MOST_AT_ONCE * CHUNKS_PER_COPY);
        }
    }
}

impl RetransmitPath for RedundantRetransmission {
    copied!(RetransmitPath);

    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        let decision = SoonestForAll.route(chunk, view, context);
        let RetransmitChoice::Path(path) = decision.choice else { return decision };
        let facts = view.path(path);
        let Some(round_trip) = facts.rtt.smoothed else { return decision };
        let affords = self.unspent_chunks >= CHUNKS_PER_COPY;
        match other(facts, view).filter(|_| affords && window_closes_first(round_trip, view)) {
            Some(copy) => {
                self.unspent_chunks -= CHUNKS_PER_COPY;
                let others: PathSet = [copy.id].into_iter().collect();
                let refused = decision.refused.into_iter().filter(|(id, _)| *id != copy.id).collect();
                Decision { choice: RetransmitChoice::Copies { path, others }, refused, ..decision }
            }
            None => decision,
        }
    }

    fn wait_holds(&self, view: &View<'_>) -> bool {
        SoonestForAll.wait_holds(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, lost_on, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{LossCause, SentTransmission};
    use anabranch_core::profile::Profile;
    use anabranch_core::units::WindowBytes;

    /// Creates paths with these round-trip times in milliseconds and windows of 10 chunks each, and this peer's window in chunks.
    fn world<const N: usize>(rtts: [u64; N], window_chunks: u64) -> World {
        let mut world = World::new(Profile::net().multipath(), N);
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            let rtt = Span::from_millis(rtt);
            (facts.estimates.propagation, facts.rtt.smoothed) = (Some(rtt), Some(rtt));
            facts.cwnd = bytes(10 * M);
        }
        world.association.peer_window = WindowBytes::new(window_chunks * M);
        world
    }

    /// Returns the path of a retransmission and that of its copy.
    fn route(world: &mut World) -> (Option<usize>, Option<usize>) {
        let choice = world
            .route(&mut RedundantRetransmission::default(), lost_on(0, LossCause::FastRetransmit))
            .choice;
        (choice.path().map(|path| path.index()), choice.copies().first().map(|path| path.index()))
    }

    #[test]
    fn retransmission_is_doubled_if_the_window_closes_within_its_rtt() {
        // In 100 ms the first path sends 10 chunks and the second one 8.
        for (window_chunks, copy) in [(0, Some(1)), (17, Some(1)), (18, None), (1000, None)] {
            assert_eq!(route(&mut world([100, 125], window_chunks)), (Some(0), copy), "{window_chunks}");
        }
    }

    #[test]
    fn copy_takes_the_earliest_path_within_twice_the_time() {
        for (rtts, copy) in [([100, 180, 150], Some(2)), ([100, 199, 250], Some(1)), ([100, 200, 250], None)]
        {
            assert_eq!(route(&mut world(rtts, 1)), (Some(0), copy), "{rtts:?}");
        }
    }

    #[test]
    fn a_path_without_room_or_out_of_service_gets_no_copy() {
        let mut full = world([100, 110], 1);
        full.paths[1].in_flight = full.paths[1].cwnd;
        assert_eq!(route(&mut full), (Some(0), None));
        let mut failed = world([100, 110], 1);
        failed.paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(route(&mut failed), (Some(0), None));
    }

    #[test]
    fn no_copy_while_the_retransmission_waits() {
        let mut world = world([10, 100], 1);
        world.paths[0].in_flight = world.paths[0].cwnd;
        assert_eq!(route(&mut world), (None, None));
    }

    #[test]
    fn one_loss_per_sixteen_new_chunks_is_doubled() {
        let mut world = world([100, 110], 1);
        let mut policy = RedundantRetransmission::default();
        let mut copied = |world: &mut World, losses: usize| {
            let lost = (0..losses).map(|_| {
                world.route(&mut policy, lost_on(0, LossCause::FastRetransmit)).choice.copies().len()
            });
            let copied: usize = lost.sum();
            let new = SentTransmission {
                path: path(0),
                previous_path: None,
                tsn: 7,
                bytes: bytes(M),
                kind: SendKind::New,
            };
            (0..33).for_each(|_| world.dispatch(&mut policy, &Event::Sent(&new)));
            copied
        };
        assert_eq!([copied(&mut world, 40), copied(&mut world, 40), copied(&mut world, 40)], [8, 2, 2]);
    }
}
