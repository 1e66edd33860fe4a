//! Transmission with only paths, a sender and a packet buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use bytes::Bytes;

use crate::association::cookie_echo::CookieEcho;
use crate::association::outputs::Outputs;
use crate::association::policies::PolicyState;
use crate::association::state::{Opening, State};
use crate::association::testing::{FIRST, PAYLOAD, PacketParts, Rig, at, plain_policies};
use crate::entropy::Entropy;
use crate::path_id::PathState;
use crate::policy::{
    Context, Decision, LossCause, LostChunk, Policies, Reason, RetransmitChoice, RetransmitPath, Slot,
    StateCause, View, WaitFor,
};
use crate::profile::{BurstArming, Profile};
use crate::protection::KEY_MANAGEMENT_PPID;
use crate::protection::testing::agreed;
use crate::send::{SendOptions, Sender};
use crate::units::WindowBytes;

/// Rig with a started transmission.
struct Sending {
    rig: Rig,
    parts: PacketParts,
    transmission: Transmission,
}

impl Sending {
    fn new(profile: Profile) -> Self {
        let mut transmission = Transmission::closed();
        transmission.start();
        Sending { rig: Rig::new(2, profile), parts: PacketParts::new(2), transmission }
    }

    /// Builds the next packet, and checks the totals of the sender.
    fn next(&mut self) -> Option<PathId> {
        let mut buf = PacketBuffer::new();
        let path = self.transmission.next(&mut self.rig.outlet(&mut self.parts), &mut buf);
        assert_eq!(path.is_some(), !buf.is_empty());
        self.rig.sender.check();
        path
    }

    /// Builds the next packet before a path carries user data.
    fn next_early(&mut self) -> Option<(PathId, usize)> {
        let mut buf = PacketBuffer::new();
        let path = self.transmission.next_early(&mut self.rig.outlet(&mut self.parts), &mut buf);
        self.rig.sender.check();
        path.map(|path| (path, buf.len()))
    }

    /// Returns the number of packets until the opportunity ends.
    fn drain(&mut self) -> usize {
        std::iter::from_fn(|| self.next()).count()
    }
}

fn path(index: usize) -> PathId {
    PathId::new(index)
}

/// Retransmission policy that waits, and counts the questions.
#[derive(Default)]
struct Waiting {
    holds: bool,
    asked: Arc<AtomicU32>,
}

impl Slot for Waiting {}

impl RetransmitPath for Waiting {
    fn route(&mut self, _: &LostChunk, _: &View<'_>, _: &mut Context<'_>) -> Decision<RetransmitChoice> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Decision::new(RetransmitChoice::Wait(WaitFor::Window), Reason::rule("a test"))
    }

    fn wait_holds(&self, _: &View<'_>) -> bool {
        self.holds
    }
}

/// Returns a rig that has a COOKIE ECHO to send on the second path.
fn echoing(cookie_bytes: usize) -> Sending {
    let mut sending = Sending::new(Profile::rfc9260());
    let echo = CookieEcho::new(vec![7; cookie_bytes], Vec::new(), path(1));
    sending.parts.state = State::CookieEchoed { opening: Opening::default(), echo };
    sending
}

#[test]
fn due_cookie_echo_leaves_once_and_without_user_data() {
    let mut sending = echoing(100);
    sending.rig.push();
    assert_eq!((sending.next_early(), sending.next_early()), (Some((path(1), 12 + 4 + 100)), None));
    assert!(!sending.rig.sender.queue().is_empty());
}

#[test]
fn cookie_larger_than_packets_of_its_path_is_echoed() {
    assert_eq!(echoing(4_000).next_early(), Some((path(1), 12 + 4 + 4_000)));
}

#[test]
fn cookie_is_not_echoed_on_a_removed_path() {
    let mut sending = echoing(100);
    sending.rig.paths.retire(path(1));
    assert_eq!(sending.next_early(), None);
}

#[test]
fn key_management_is_echoed_with_the_cookie_in_at_most_three_packets() {
    let mut sending = echoing(1_000);
    sending.parts.protection = agreed();
    let options = SendOptions { ppid: KEY_MANAGEMENT_PPID, ..SendOptions::default() };
    sending.rig.sender.push_key_management(Bytes::from_static(&[1; 4_000]), options);
    let packets: Vec<_> = std::iter::from_fn(|| sending.next_early()).collect();
    assert_eq!(packets.len(), 3);
    assert!(packets.iter().all(|&(on, bytes)| on == path(1) && bytes > 12 + 4 + 1_000), "{packets:?}");
}

#[test]
fn wait_that_holds_ends_the_walk_unless_decisions_are_recorded() {
    for (holds, traces, questions) in [(false, false, 3), (true, false, 1), (true, true, 3)] {
        let asked = Arc::<AtomicU32>::default();
        let retransmit = Box::new(Waiting { holds, asked: Arc::clone(&asked) });
        let slots = Policies { retransmit, ..plain_policies() };
        let mut sending = Sending::new(Profile::rfc9260());
        sending.rig.policies = PolicyState::new(slots, Entropy::new([7; 32]), &Profile::rfc9260(), false);
        sending.rig.outputs = Outputs::new(traces);
        sending.rig.send(path(0), 3);
        (FIRST..FIRST + 3).for_each(|tsn| sending.rig.dispatcher().mark_lost(tsn, LossCause::FastRetransmit));
        assert_eq!(sending.drain(), 0);
        assert_eq!(asked.load(Ordering::Relaxed), questions, "holds: {holds}, traced: {traces}");
    }
}

#[test]
fn lost_chunk_leaves_before_new_data() {
    let mut sending = Sending::new(Profile::rfc9260());
    sending.rig.send(path(1), 1);
    sending.rig.dispatcher().mark_lost(FIRST, LossCause::FastRetransmit);
    sending.rig.push();
    assert_eq!(sending.next(), Some(path(1)), "where the chunk was lost");
    assert_eq!(
        (sending.rig.outputs.statistics.retransmissions, sending.rig.sender.queue().is_empty()),
        (1, false)
    );
    assert_eq!(sending.next(), Some(path(0)));
    assert!(sending.rig.sender.queue().is_empty());
    assert_eq!((sending.next(), sending.transmission.is_open()), (None, false));
}

#[test]
fn bound_chunk_leaves_before_new_data() {
    let mut sending = Sending::new(Profile::rfc9260());
    sending.rig.push();
    sending.rig.push();
    let draft = sending.rig.sender.cut(PAYLOAD).expect("a message waits");
    sending.rig.dispatcher().update_sender(|sender| {
        let admitted = sender.admit(draft, path(1));
        sender.bind(path(1), admitted.tsn);
    });
    assert_eq!((sending.next(), sending.next(), sending.next()), (Some(path(1)), Some(path(0)), None));
    assert_eq!((sending.rig.in_flight(path(0)), sending.rig.in_flight(path(1))), (1, 1));
}

#[test]
fn copies_leave_on_other_paths_before_lost_chunks() {
    let mut sending = Sending::new(Profile::rfc9260());
    sending.rig.send(path(0), 2);
    sending.rig.dispatcher().mark_lost(FIRST + 1, LossCause::FastRetransmit);
    let others = [path(1)].into_iter().collect();
    sending.transmission.copies = Some(PendingCopies { first: FIRST, after: FIRST + 1, others });
    assert_eq!((sending.next(), sending.rig.in_flight(path(1))), (Some(path(1)), 1));
    assert_eq!((sending.next(), sending.rig.sender.lost().is_empty()), (Some(path(0)), true));
}

#[test]
fn tail_probe_repeats_latest_chunk_of_its_path() {
    let mut sending = Sending::new(Profile::rfc9260());
    assert_eq!(sending.drain(), 0);
    sending.rig.send(path(1), 3);
    sending.transmission.add_tail_probe(path(1));
    assert_eq!((sending.next(), sending.next()), (Some(path(1)), None));
    assert_eq!((sending.rig.in_flight(path(1)), sending.rig.outputs.statistics.tail_probes), (4, 1));
    assert_eq!(sending.rig.sender.outstanding().get(FIRST + 2).map(|chunk| chunk.transmissions), Some(2));
}

#[test]
fn armed_burst_limit_ends_the_packets_of_each_path() {
    let profile = Profile { burst_arming: BurstArming::Always, max_burst: 2, ..Profile::rfc9260() };
    let mut sending = Sending::new(profile);
    (0..100).for_each(|_| sending.rig.push());
    let outcome =
        SackOutcome { overtaken: false, acknowledged: true, recovered_loss: false, losses: Losses::None };
    sending.transmission.on_sack(&outcome, BurstArming::Always);
    assert_eq!(sending.drain(), 4, "two on each path");
    sending.transmission.open(OpportunityCause::Sack, true);
    assert!(sending.drain() > 0, "the next opportunity has bursts of its own");
}

#[test]
fn closed_peer_window_is_a_block_until_it_opens() {
    let mut sending = Sending::new(Profile::rfc9260());
    sending.rig.send(path(0), 1);
    sending.rig.push();
    sending.rig.dispatcher().update_sender(|sender| {
        sender.advertise_window(WindowBytes::ZERO);
        sender.estimate_window();
    });
    assert_eq!((sending.next(), sending.transmission.blocked_since()), (None, Some(sending.rig.now)));
    sending.rig.dispatcher().update_sender(|sender| sender.advertise_window(WindowBytes::new(1 << 20)));
    sending.rig.dispatcher().update_sender(Sender::estimate_window);
    sending.transmission.open(OpportunityCause::Sack, true);
    assert_eq!((sending.drain(), sending.transmission.blocked_since()), (1, None));
}

#[test]
fn closed_window_with_nothing_in_flight_is_probed_by_one_chunk() {
    let mut sending = Sending::new(Profile::rfc9260());
    (0..3).for_each(|_| sending.rig.push());
    sending.rig.dispatcher().update_sender(|sender| sender.begin_window(WindowBytes::ZERO));
    sending.rig.dispatcher().update_sender(Sender::estimate_window);
    assert_eq!(sending.drain(), 1);
    assert_eq!((sending.rig.sender.window_probe(), sending.rig.in_flight(path(0))), (Some(FIRST), 1));
}

#[test]
fn path_that_leaves_service_gives_back_its_bound_chunks() {
    let mut sending = Sending::new(Profile::rfc9260());
    sending.rig.push();
    let draft = sending.rig.sender.cut(PAYLOAD).expect("a message waits");
    sending.rig.dispatcher().update_sender(|sender| {
        let admitted = sender.admit(draft, path(1));
        sender.bind(path(1), admitted.tsn);
    });
    let cause = StateCause::Errors(Reason::rule("a test"));
    sending.rig.dispatcher().set_state(path(1), PathState::Inactive, cause);
    assert!(sending.rig.paths.facts(path(1)).bound.is_zero());
    assert_eq!((sending.next(), sending.rig.in_flight(path(0))), (Some(path(0)), 1));
}

#[test]
fn earlier_opportunity_keeps_later_wait() {
    let mut opportunity = Transmission::closed();
    assert!(opportunity.resume_at(at(20), at(10)));
    opportunity.on_sack(&SackOutcome::OVERTAKEN, BurstArming::Always);
    opportunity.end();
    opportunity.open(OpportunityCause::Sack, true);
    opportunity.end();
    assert_eq!(opportunity.next_at, Some(at(20)));
}

#[test]
fn freed_paths_join_resumed_opportunity_and_not_one_open_for_all() {
    let only = |index| [PathId::new(index)].into_iter().collect::<PathSet>();
    let mut opportunity = Transmission::closed();
    opportunity.paced.hold_resend(PathId::new(0), 7);
    opportunity.paced.hold_resend(PathId::new(1), 5);
    opportunity.resume(only(0));
    assert_eq!((opportunity.released(), opportunity.resend_from), (Some(only(0)), Some(7)));
    opportunity.resume(only(1));
    assert_eq!(opportunity.released(), Some([0, 1].map(PathId::new).into_iter().collect()));
    assert_eq!(opportunity.resend_from, Some(5));
    opportunity.open(OpportunityCause::Sack, true);
    opportunity.resume(only(1));
    assert_eq!(opportunity.released(), None);
}

#[test]
fn repairs_are_released_for_path_that_is_free_already() {
    let (a, b, c) = (PathId::new(0), PathId::new(1), PathId::new(2));
    let mut paced = Paced::default();
    paced.hold_resend(a, 7);
    paced.probes.insert(b);
    for path in [a, b] {
        assert_eq!(paced.release(path, Some(at(20)), false, at(10)), Some(at(20)));
        assert_eq!(paced.release(path, None, false, at(10)), Some(at(10)));
    }
    assert_eq!(paced.release(c, Some(at(20)), true, at(10)), Some(at(20)));
    assert_eq!(paced.release(c, Some(at(20)), false, at(10)), None);
    assert_eq!(paced.release(c, None, true, at(10)), None, "no timer that is always due");
}

#[test]
fn shorter_of_two_waits_counts_and_past_one_does_not() {
    let mut opportunity = Transmission::closed();
    assert!(!opportunity.resume_at(at(10), at(10)));
    assert_eq!(opportunity.next_at, None);
    assert!(opportunity.resume_at(at(30), at(10)) && opportunity.resume_at(at(20), at(10)));
    assert!(opportunity.resume_at(at(40), at(10)));
    assert_eq!(opportunity.next_at, Some(at(20)));
}
