//! Use of each field of a SACK by the sender, for SACKs of any origin.

use std::sync::{Arc, Mutex};

use anabranch_core::PathId;
use anabranch_core::policy::{
    AckedTransmission, Context, Estimates, Event, PathEstimator, Policies, Scheme, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::{GapBlock, NoSpace, PacketWriter, SackRepr, Tsn};

use crate::rig::craft;

const A: usize = Side::A as usize;

/// A sender of `cmt` that has grown its window and then sent chunks that never arrive: four, which are a burst, and more after some
/// of them are acknowledged.
struct Unheard {
    duo: Duo,
    /// Cumulative TSN before them, on the wire and unwrapped.
    before: (u32, u64),
    /// Window of the next SACK.
    a_rwnd: u32,
}

impl Unheard {
    fn new(setup: Setup) -> Self {
        let mut duo = Duo::new(setup.with(|config| config.initial_tsn = Some(1_000)));
        duo.kept = Some(Vec::new());
        duo.connect();
        duo.send_all(Side::A, 1_000, 40);
        assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
        duo.run(Span::from_millis(500));
        let unwrapped = duo.nodes[A].association().association_facts().cumulative_tsn;
        // Later packets between the two sides are lost in both directions.
        duo.network.set_filter(|packet| packet.from == Side::A && sight::tsns(packet).is_empty());
        duo.send_all(Side::A, 1_000, 10);
        duo.run(Span::from_millis(20));
        Unheard { duo, before: (unwrapped as u32, unwrapped), a_rwnd: 100_000 }
    }

    /// Passes A a SACK that acknowledges this number of them in sequence, with these blocks and flags.
    fn sack(&mut self, cumulative: u32, blocks: &[(u16, u16)], flags: u8) {
        let (cum_tsn, a_rwnd) = (self.tsn(cumulative), self.a_rwnd);
        let gaps = blocks.iter().map(|&(start, end)| GapBlock { start, end });
        self.hand(|packet| packet.sack(&SackRepr { cum_tsn, a_rwnd, flags }, gaps, []));
    }

    /// Passes A a SHUTDOWN that acknowledges this number of them.
    fn shutdown(&mut self, cumulative: u32) {
        let tsn = self.tsn(cumulative);
        self.hand(|packet| packet.shutdown(tsn));
    }

    fn tsn(&self, place: u32) -> Tsn {
        Tsn::new(self.before.0.wrapping_add(place))
    }

    fn hand(&mut self, write: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>) {
        let genuine = self.duo.kept.iter().flatten().rfind(|(_, packet)| packet.from == Side::B);
        let (_, genuine) = genuine.expect("B has sent something");
        let tag = u32::from_be_bytes(genuine.bytes[4..8].try_into().expect("four bytes"));
        let mut bytes = craft::packet(tag, write);
        bytes[..4].copy_from_slice(&genuine.bytes[..4]);
        craft::fix_checksum(&mut bytes);
        let packet = Packet { bytes, ..genuine.clone() };
        let now = self.duo.now;
        self.duo.nodes[A].handle(now, &packet);
    }

    /// Returns the number of chunks that are neither acknowledged nor lost.
    fn in_flight(&self) -> u64 {
        // A chunk has 1,000 user bytes and the header of a DATA chunk.
        self.duo.nodes[A].association().paths()[0].in_flight.get() / 1_016
    }

    fn statistics(&self) -> anabranch_core::Statistics {
        self.duo.nodes[A].association().statistics()
    }
}

fn one_path() -> Unheard {
    Unheard::new(Setup::new(1, "cmt", "rfc9260"))
}

#[test]
fn empty_adjacent_or_unsent_gap_block_is_ignored() {
    for (block, taken) in
        [((0, 3), 0), ((4, 3), 0), ((2, 5), 0), ((5, 6), 0), ((2, 4), 3), ((1, 1), 1), ((3, 3), 1)]
    {
        let mut unheard = one_path();
        assert_eq!(unheard.in_flight(), 4);
        unheard.sack(0, &[block], 0);
        assert_eq!(unheard.in_flight(), 4 - taken, "{block:?}");
    }
}

#[test]
fn a_shutdown_acknowledges_what_was_sent_and_nothing_beyond_it() {
    for (cumulative, left) in [(0, 4), (1, 3), (4, 0), (5, 4), (1_000, 4)] {
        let mut unheard = one_path();
        unheard.shutdown(cumulative);
        assert_eq!(unheard.in_flight(), left, "{cumulative}");
    }
}

#[test]
fn the_flags_say_how_many_packets_a_sack_reports_under_delayed_acks() {
    for (flags, lost) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
        let mut unheard = one_path();
        unheard.sack(0, &[(2, 4)], flags);
        assert_eq!(unheard.statistics().fast_retransmit_events, lost, "{flags} packets");
    }
}

#[test]
fn block_partly_passed_by_the_cumulative_tsn_is_not_reneged() {
    let mut unheard = one_path();
    unheard.sack(0, &[(2, 4)], 0);
    // The first two are in sequence, and the SACK still names the rest of the block. A SACK that names less would count as
    // overtaken, and its window would not count.
    unheard.a_rwnd = 50_000;
    unheard.sack(2, &[(1, 2)], 0);
    let peer_window = unheard.duo.nodes[A].association().association_facts().peer_window;
    assert!(peer_window.get() <= 50_000, "{peer_window:?}");
    unheard.duo.run(Span::from_secs(4));
    assert_eq!(unheard.statistics().reneged, 0);
}

#[test]
fn dropped_block_is_reneged_above_the_cumulative_tsn() {
    let mut unheard = one_path();
    unheard.sack(0, &[(2, 4)], 0);
    unheard.sack(2, &[], 0);
    unheard.duo.run(Span::from_secs(4));
    assert_eq!(unheard.statistics().reneged, 2, "the third and the fourth");
}

/// Returns the positions of a path's chunks among those that never arrive.
fn places_on(unheard: &Unheard, path: usize) -> Vec<u16> {
    let address = unheard.duo.setup.address(Side::B, path);
    let kept = unheard.duo.kept.iter().flatten().filter(|(_, packet)| packet.destination == address);
    let tsns = kept.flat_map(|(_, packet)| sight::tsns(packet));
    let places = tsns.filter_map(|tsn| u16::try_from(tsn.checked_sub(unheard.before.0)?).ok());
    places.filter(|&place| place > 0).collect()
}

#[test]
fn recovery_lasts_while_data_up_to_the_recovery_point_is_outstanding() {
    for (end_of_block, is_over) in [(0, true), (1, false)] {
        let mut unheard = Unheard::new(Setup::new(2, "cmt", "rfc9260"));
        // The other path has the chunks before those of this one.
        let path = usize::from(places_on(&unheard, 0)[0] == 1);
        let places = places_on(&unheard, path);
        let (first, last) = (places[0], places[places.len() - 1]);
        assert_eq!(last, first + 3, "a burst");
        let point = unheard.before.1 + u64::from(last);
        let recovery_point =
            |unheard: &Unheard| unheard.duo.nodes[A].association().paths()[path].recovery_point;
        // This path's first chunk is reported missing for three packets; no chunk of the other path is reported.
        unheard.sack(0, &[(first + 1, last - end_of_block)], 3);
        assert_eq!(recovery_point(&unheard), Some(point));
        unheard.duo.run(Span::from_millis(10));
        // The cumulative TSN stays before the recovery point, since nothing of the other path is acknowledged.
        unheard.sack(0, &[(first, last - end_of_block)], 1);
        assert_eq!(recovery_point(&unheard), (!is_over).then_some(point), "all but {end_of_block}");
    }
}

/// `cmt` with an estimator that records acknowledged chunks.
struct Watched {
    cmt: Arc<dyn Scheme>,
    acked: Arc<Mutex<Vec<AckedTransmission>>>,
}

struct Watcher {
    inner: Box<dyn PathEstimator>,
    acked: Arc<Mutex<Vec<AckedTransmission>>>,
}

impl Slot for Watcher {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        if let Event::Acked(acked) = event {
            self.acked.lock().expect("no other test panicked").push(**acked);
        }
        self.inner.on_event(event, view, context);
    }
}

impl PathEstimator for Watcher {
    fn estimates(&self, path: PathId) -> Estimates {
        self.inner.estimates(path)
    }
}

impl Scheme for Watched {
    fn policies(&self) -> Policies {
        let policies = self.cmt.policies();
        let watcher = Watcher { inner: policies.estimator, acked: Arc::clone(&self.acked) };
        Policies { estimator: Box::new(watcher), ..policies }
    }

    fn is_multipath(&self) -> bool {
        self.cmt.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.cmt.profile(row)
    }
}

#[test]
fn policies_get_ack_kind_and_transmissions_of_each_acked_chunk() {
    let mut setup = Setup::new(1, "cmt", "rfc9260");
    let acked = Arc::new(Mutex::new(Vec::new()));
    setup.sides[A].scheme =
        Arc::new(Watched { cmt: Arc::clone(&setup.sides[A].scheme), acked: Arc::clone(&acked) });
    let mut unheard = Unheard::new(setup);
    let before = unheard.before.1;
    acked.lock().expect("no other test panicked").clear();
    unheard.sack(0, &[(2, 4)], 3);
    // The first chunk was reported missing for three packets and is retransmitted; further chunks follow it.
    unheard.duo.run(Span::from_millis(10));
    unheard.sack(1, &[(1, 3)], 1);
    unheard.sack(5, &[], 1);
    let heard: Vec<_> = acked
        .lock()
        .expect("no other test panicked")
        .iter()
        .map(|acked| (acked.tsn - before, acked.cumulative, acked.sent_once))
        .collect();
    assert_eq!(
        heard,
        [(2, false, true), (3, false, true), (4, false, true), (1, true, false), (5, true, true)]
    );
}
