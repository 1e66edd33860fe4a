//! Tests of windows with worked numbers. M, the largest chunk, is 1468 B.

use super::*;
use crate::congestion::Change;
use crate::testing::{World, bytes, path};
use anabranch_core::profile::Profile;
use anabranch_core::units::WindowBytes;

use GrowthGate::{Cumulative, PseudoCumulative};

/// Congestion control and the facts that it sees.
struct Rig {
    world: World,
    control: WindowControl,
}

impl Rig {
    fn new(profile: Profile, gate: GrowthGate) -> Self {
        let mut rig = Rig { world: World::new(profile, 2), control: WindowControl::new(gate) };
        [0, 1].into_iter().for_each(|index| rig.note_transmission(index));
        rig
    }

    fn set(&mut self, cwnd: u64, ssthresh: u64, partial: u64) {
        self.control.windows[0] =
            Window { cwnd: bytes(cwnd), ssthresh: bytes(ssthresh), partial_bytes_acked: bytes(partial) };
    }

    /// Returns the first path's cwnd, ssthresh and partial_bytes_acked.
    fn window(&self) -> (u64, u64, u64) {
        let window = self.control.window(path(0));
        (window.cwnd.get(), window.ssthresh.get(), window.partial_bytes_acked.get())
    }

    fn dispatch(&mut self, event: &Event<'_>) {
        self.world.dispatch(&mut self.control, event);
    }

    /// Processes a SACK with `ack` for the first path and nothing for the second.
    fn sack(&mut self, ack: PathAck) {
        self.sack_with(ack, ack.cumulative > ChunkBytes::ZERO);
    }

    fn sack_with(&mut self, ack: PathAck, new_cumulative: bool) {
        let paths = [ack, PathAck::default()];
        self.dispatch(&Event::SackDone(&SackDone { paths: &paths, new_cumulative, cumulative: 100 }));
    }

    fn cut(&mut self, cause: LossCause) {
        self.dispatch(&Event::LossEvent { path: path(0), cause });
    }

    fn note_transmission(&mut self, index: usize) {
        self.world.now += anabranch_core::time::Span::from_millis(1);
        self.world.paths[index].last_sent_at = Some(self.world.now);
    }

    fn active_again(&mut self, from: PathState, cause: StateCause) {
        self.dispatch(&Event::PathState { path: path(0), from, to: PathState::Active, cause });
    }
}

/// Acknowledges `cumulative` of `before` bytes in flight by the cumulative TSN, which is also the path's pseudo-cumulative TSN.
fn acked(cumulative: u64, before: u64) -> PathAck {
    PathAck {
        cumulative: bytes(cumulative),
        new_pseudo_cumulative: cumulative > 0,
        in_flight_before: bytes(before),
        outstanding_at_start: bytes(before),
        in_flight_after: bytes(before - cumulative),
        ..PathAck::default()
    }
}

/// Like [`acked`], with `gap` more bytes in gap ack blocks. `after` of them are at or after the path's pseudo-cumulative TSN.
fn acked_with_gap(cumulative: u64, gap: u64, after: u64, before: u64) -> PathAck {
    PathAck {
        gap: bytes(gap),
        gap_after_pseudo: bytes(after),
        new_pseudo_cumulative: cumulative > 0 || after > 0,
        in_flight_after: bytes(before - cumulative - gap),
        ..acked(cumulative, before)
    }
}

fn every_profile() -> [Profile; 4] {
    [Profile::rfc9260(), Profile::rfc9260_multipath(), Profile::ns2(), Profile::ns2_multipath()]
}

#[test]
fn a_new_paths_window_follows_the_profile() {
    for (profile, cwnd) in every_profile().into_iter().zip([4404, 4404, 4380, 4380]) {
        let mut rig = Rig::new(profile, Cumulative);
        rig.dispatch(&Event::PathAdded(path(0)));
        assert_eq!(rig.window().0, cwnd);
        assert_eq!(rig.control.last_reason(path(0)).rule, "initial window");
    }
}

#[test]
fn the_first_window_is_four_small_chunks_or_two_large_ones() {
    for (largest, cwnd) in [(500, 2000), (1095, 4380), (1468, 4380), (2190, 4380), (9000, 18_000)] {
        let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
        rig.world.paths[0].largest_chunk = bytes(largest);
        rig.dispatch(&Event::PathAdded(path(0)));
        assert_eq!(rig.window().0, cwnd, "largest chunk {largest}");
    }
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# *  The initial cwnd before data transmission MUST be set to min(4 * PMDCS, max(2 * PMDCS, 4404)) bytes if the peer
//# address is an IPv4 address and to min(4 * PMDCS, max(2 * PMDCS, 4344)) bytes if the peer address is an IPv6 address.
#[test]
fn the_first_window_of_an_ipv6_path_is_three_of_its_smaller_chunks() {
    for (ipv6, cwnd) in [(false, 4404), (true, 4344)] {
        let mut rig = Rig::new(Profile::rfc9260(), Cumulative);
        rig.world.paths[0].largest_chunk = bytes(1448);
        rig.world.paths[0].ipv6 = ipv6;
        rig.dispatch(&Event::PathAdded(path(0)));
        assert_eq!(rig.window().0, cwnd);
    }
}

#[test]
fn a_shared_first_window_is_a_part_of_four_chunks_but_at_least_one() {
    // 5872 B and the profile's 4380 B; 5872/2, 5872/3 rounded up; 5872/5 = 1174.4 is below one chunk.
    for (paths, cwnd) in [(1, 4380), (2, 2936), (3, 1958), (4, 1468), (5, 1468)] {
        let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
        rig.world = World::new(Profile::ns2_multipath(), paths);
        rig.control = WindowControl::new(Cumulative).with_first_window(FirstWindow::Shared);
        rig.dispatch(&Event::Established);
        assert_eq!(rig.window().0, cwnd, "{paths} paths");
    }
}

#[test]
fn inactive_paths_share_no_first_window() {
    let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
    rig.control = WindowControl::new(Cumulative).with_first_window(FirstWindow::Shared);
    rig.world.paths[1].state = PathState::Inactive;
    rig.dispatch(&Event::Established);
    assert_eq!(rig.window().0, 4380);
    rig.world.paths[0].state = PathState::Inactive;
    rig.dispatch(&Event::Established);
    assert_eq!(rig.window().0, 4380, "with no path left there is nobody to share with");
}

#[test]
fn set_window_keeps_reason_and_at_least_one_chunk() {
    let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
    let window = Window { cwnd: bytes(700), ssthresh: bytes(9000), partial_bytes_acked: bytes(5) };
    rig.control.set_window(path(0), window, Reason::rule("test"), &rig.world.view());
    assert_eq!((rig.window(), rig.control.last_reason(path(0))), ((1468, 9000, 5), Reason::rule("test")));
}

/// Reduction rule that records its calls.
#[derive(Debug, Default)]
struct Noting(Vec<&'static str>);

impl Cut for Noting {
    fn on_event(&mut self, event: &Event<'_>, _: &View<'_>) {
        self.0.push(if matches!(event, Event::LossEvent { .. }) { "loss" } else { "other" });
    }

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        assert_eq!(self.0, ["other", "loss"], "it hears the event before it is asked");
        Change { window: Window { cwnd: bytes(1), ..loss.window() }, reason: Reason::rule("noted") }
    }
}

#[test]
fn rule_gets_an_event_first_and_keeps_one_chunk() {
    let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
    rig.control = WindowControl::new(Cumulative).with_cut(Noting::default());
    rig.dispatch(&Event::Established);
    rig.cut(LossCause::FastRetransmit);
    assert_eq!((rig.window(), rig.control.last_reason(path(0)).rule), ((1468, 65_536, 0), "noted"));
}

#[test]
fn a_chunk_taken_off_a_path_cuts_its_window_like_a_fast_retransmit() {
    for profile in every_profile() {
        let after = |cause| {
            let mut rig = Rig::new(profile.clone(), Cumulative);
            rig.set(20_001, 65_536, 700);
            rig.cut(cause);
            rig.window()
        };
        assert_eq!(after(LossCause::Rescheduled), after(LossCause::FastRetransmit));
    }
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# *  The initial value of ssthresh SHOULD be arbitrarily high (e.g., the size of the largest-possible advertised
//# window).
#[test]
fn the_first_threshold_is_fixed_or_the_peers_window() {
    for (profile, early, late) in
        [(Profile::ns2_multipath(), 65_536, 65_536), (Profile::rfc9260_multipath(), 0, 131_072)]
    {
        let mut rig = Rig::new(profile, Cumulative);
        rig.dispatch(&Event::PathAdded(path(0)));
        assert_eq!(rig.window().1, early, "before the peer has advertised a window");
        rig.world.association.peer_window_initial = WindowBytes::new(131_072);
        rig.dispatch(&Event::Established);
        assert_eq!(rig.window().1, late);
    }
}

#[test]
fn establishment_begins_every_path_and_a_path_that_is_added_only_itself() {
    let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
    rig.dispatch(&Event::Established);
    assert_eq!([0, 1].map(|index| rig.control.window(path(index)).cwnd.get()), [4380, 4380]);
    rig.set(20_000, 9000, 77);
    rig.dispatch(&Event::PathAdded(path(1)));
    assert_eq!(rig.window(), (20_000, 9000, 77));
    rig.dispatch(&Event::PathAdded(path(0)));
    assert_eq!(rig.window(), (4380, 65_536, 0));
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# If these conditions are met, then cwnd MUST be increased by, at most, the lesser of
#[test]
fn slow_start_adds_what_was_acked_but_no_more_than_one_chunk() {
    for profile in every_profile() {
        for (acked_bytes, cwnd) in [(500, 4880), (1468, 5848), (1469, 5848), (2936, 5848), (4404, 5848)] {
            let mut rig = Rig::new(profile.clone(), Cumulative);
            rig.set(4380, 65_536, 0);
            rig.sack(acked(acked_bytes, 4404));
            assert_eq!(rig.window(), (cwnd, 65_536, 0), "{acked_bytes} B acked");
        }
    }
}

#[test]
fn slow_start_counts_gap_acks_too() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.set(4380, 65_536, 0);
    rig.sack(acked_with_gap(0, 700, 700, 4404));
    assert_eq!(rig.window().0, 5080);
    rig.sack(acked_with_gap(500, 400, 0, 5872));
    assert_eq!(rig.window().0, 5980);
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# *  When cwnd is less than or equal to ssthresh, an SCTP endpoint MUST use the slow-start algorithm to increase cwnd
//# only if the current congestion window is being fully utilized and the data sender is not in Fast Recovery.
#[test]
fn a_window_that_was_not_full_does_not_grow() {
    for profile in every_profile() {
        for (before, cwnd) in [(2936, 4380), (4379, 4380), (4380, 5848), (5872, 5848)] {
            let mut rig = Rig::new(profile.clone(), Cumulative);
            rig.set(4380, 65_536, 0);
            rig.sack(acked(1468, before));
            assert_eq!(rig.window().0, cwnd, "{before} B in flight");
        }
    }
}

#[test]
fn chunks_lost_by_this_sack_do_not_fill_the_window() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.set(4380, 65_536, 0);
    rig.sack(PathAck { outstanding_at_start: bytes(5872), ..acked(1468, 2936) });
    assert_eq!(rig.window().0, 4380);
}

#[test]
fn a_window_equal_to_its_threshold_is_in_slow_start() {
    for profile in every_profile() {
        let mut rig = Rig::new(profile, Cumulative);
        rig.set(10_000, 10_000, 0);
        rig.sack(acked(2936, 11_744));
        assert_eq!(rig.window(), (11_468, 10_000, 0));
    }
}

//= docs/rfc9260.txt#section-7.2.2
//= type=test
//# When cwnd is greater than ssthresh, cwnd SHOULD be incremented by PMDCS per RTT if the sender has cwnd or more bytes
//# of data outstanding for the corresponding transport address.
#[test]
fn avoidance_adds_one_chunk_per_acked_window_and_keeps_the_remainder() {
    for profile in every_profile() {
        let mut rig = Rig::new(profile, Cumulative);
        rig.set(10_000, 5000, 0);
        let mut seen = Vec::new();
        for _ in 0..5 {
            rig.sack(acked(2936, 11_744));
            seen.push((rig.window().0, rig.window().2));
        }
        // Four times 2936 B are 11,744 B: a window of 10,000 B and 1744 B toward the next.
        assert_eq!(seen, [(10_000, 2936), (10_000, 5872), (10_000, 8808), (11_468, 1744), (11_468, 4680)]);
        assert_eq!(rig.control.last_reason(path(0)).rule, "a window of data was acknowledged");
    }
}

#[test]
fn exactly_a_window_acked_is_enough() {
    let mut rig = Rig::new(Profile::rfc9260(), Cumulative);
    rig.set(10_000, 5000, 8532);
    rig.sack(acked(1468, 11_744));
    assert_eq!(rig.window(), (11_468, 5000, 0));
}

#[test]
fn standard_counts_all_acks_and_caps_the_sum_of_an_unfilled_window() {
    let mut rig = Rig::new(Profile::rfc9260(), Cumulative);
    rig.set(10_000, 5000, 6000);
    rig.sack(acked_with_gap(1468, 1468, 0, 8808));
    assert_eq!(rig.window(), (10_000, 5000, 8936));
    rig.sack(acked_with_gap(1468, 1468, 0, 8808));
    assert_eq!(rig.window(), (10_000, 5000, 10_000), "11,872 B held at the window");
    rig.sack(acked(1468, 11_744));
    assert_eq!(rig.window(), (11_468, 5000, 1468));
}

#[test]
fn standard_counts_gap_acks_without_cumulative_advance() {
    let mut rig = Rig::new(Profile::rfc9260(), Cumulative);
    rig.set(10_000, 5000, 9000);
    rig.sack(acked_with_gap(0, 2936, 0, 11_744));
    assert_eq!(rig.window(), (10_000, 5000, 11_936), "counted, but no growth without a new cumulative TSN");
    rig.sack(acked(1468, 11_744));
    assert_eq!(rig.window(), (11_468, 5000, 3404));
}

#[test]
fn ns2_counts_cumulative_acks_only_when_the_window_was_full() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.set(10_000, 5000, 1000);
    rig.sack(acked(2936, 8808));
    assert_eq!(rig.window(), (10_000, 5000, 1000));
    rig.sack(acked(2936, 10_000));
    assert_eq!(rig.window(), (10_000, 5000, 3936));
}

#[test]
fn ns2_counts_acks_from_the_pseudo_cumulative_tsn_without_a_cap() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.set(10_000, 5000, 8000);
    rig.sack(acked_with_gap(1468, 2936, 1468, 8808));
    assert_eq!(rig.window(), (10_000, 5000, 9468), "1468 of 4404 B");
    rig.sack(acked_with_gap(0, 2936, 2936, 8808));
    assert_eq!(rig.window(), (10_000, 5000, 12_404), "more than the window");
    rig.sack(acked_with_gap(0, 1468, 0, 11_744));
    assert_eq!(rig.window(), (10_000, 5000, 12_404), "before the pseudo-cumulative TSN: no growth either");
    rig.sack(acked(1468, 11_744));
    assert_eq!(rig.window(), (11_468, 5000, 3872));
}

#[test]
fn ns2_without_cuc_counts_gap_acks_when_the_cumulative_tsn_advances() {
    let mut rig = Rig::new(Profile::ns2(), Cumulative);
    rig.set(10_000, 5000, 1000);
    rig.sack_with(acked_with_gap(0, 2936, 2936, 8808), false);
    assert_eq!(rig.window(), (10_000, 5000, 1000));
    rig.sack_with(acked_with_gap(1468, 2936, 0, 8808), true);
    assert_eq!(
        rig.window(),
        (10_000, 5000, 3936),
        "the gap acks, and not the cumulative ones of a window not full"
    );
    rig.sack_with(acked_with_gap(0, 1468, 0, 8808), true);
    assert_eq!(rig.window(), (10_000, 5000, 5404), "the cumulative TSN may have moved on another path");
}

#[test]
fn slow_start_does_not_count_acked_bytes() {
    for profile in every_profile() {
        let mut rig = Rig::new(profile, Cumulative);
        rig.set(4380, 65_536, 0);
        rig.sack(acked_with_gap(1468, 1468, 1468, 5872));
        assert_eq!(rig.window().2, 0);
    }
}

//= docs/rfc9260.txt#section-7.2.2
//= type=test
//# *  SCTP MUST NOT increment cwnd by more than PMDCS per RTT.
#[test]
fn an_increment_takes_one_window_even_if_more_was_acked() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.set(4404, 2936, 20_000);
    rig.sack(acked(1468, 5872));
    assert_eq!(rig.window(), (5872, 2936, 17_064));
}

#[test]
fn the_gate_decides_whose_cumulative_tsn_lets_a_window_grow() {
    let own = PathAck { new_pseudo_cumulative: true, ..acked_with_gap(0, 1468, 1468, 4404) };
    let foreign = PathAck { new_pseudo_cumulative: false, ..acked_with_gap(0, 1468, 0, 4404) };
    let cases = [
        (Cumulative, own, false, 4380),
        (Cumulative, foreign, true, 5848),
        (PseudoCumulative, own, false, 5848),
        (PseudoCumulative, foreign, true, 4380),
    ];
    for profile in every_profile() {
        for (gate, ack, new_cumulative, cwnd) in cases {
            let mut rig = Rig::new(profile.clone(), gate);
            rig.set(4380, 65_536, 0);
            rig.sack_with(ack, new_cumulative);
            assert_eq!(rig.window().0, cwnd, "{gate:?}, new cumulative TSN: {new_cumulative}");
        }
    }
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# In instances where its peer endpoint is multi-homed, if an endpoint receives a SACK chunk that results in updating the
//# cwnd, then it SHOULD update its cwnd (or cwnds) apportioned to the destination addresses to which it transmitted the
//# acknowledged data.
#[test]
fn path_without_acked_data_does_not_grow() {
    for (ssthresh, partial) in [(65_536, 0), (2936, 9000)] {
        let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
        rig.set(4380, ssthresh, partial);
        rig.sack_with(acked(0, 4404), true);
        assert_eq!(rig.window(), (4380, ssthresh, partial));
    }
}

//= docs/rfc9260.txt#section-7.2
//= type=test
//# Unlike TCP, an SCTP sender MUST keep a set of the control variables cwnd, ssthresh, and partial_bytes_acked for EACH
//# destination address of its peer (when its peer is multi-homed).
#[test]
fn paths_grow_independently() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.dispatch(&Event::Established);
    let paths = [acked(1468, 2936), acked(1000, 4404)];
    rig.dispatch(&Event::SackDone(&SackDone { paths: &paths, new_cumulative: true, cumulative: 100 }));
    assert_eq!([0, 1].map(|index| rig.control.window(path(index)).cwnd.get()), [4380, 5380]);
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# Only when these two conditions are met can the cwnd be increased; otherwise, the cwnd MUST NOT be increased.
#[test]
fn only_ns2s_cmt_agent_lets_a_window_grow_in_recovery() {
    for (profile, cwnd) in every_profile().into_iter().zip([4380, 4380, 4380, 5848]) {
        let mut rig = Rig::new(profile, Cumulative);
        rig.set(4380, 65_536, 0);
        rig.world.paths[0].recovery_point = Some(120);
        rig.sack(acked(1468, 4404));
        assert_eq!(rig.window().0, cwnd);
        rig.world.paths[0].recovery_point = None;
        rig.sack(acked(1468, 5872));
        assert_eq!(rig.window().0, cwnd + 1468, "after recovery");
    }
}

#[test]
fn a_path_in_recovery_does_not_hold_up_another() {
    let mut rig = Rig::new(Profile::rfc9260_multipath(), Cumulative);
    rig.set(4380, 65_536, 0);
    rig.world.paths[1].recovery_point = Some(120);
    rig.sack(acked(1468, 4404));
    assert_eq!(rig.window().0, 5848);
}

#[test]
fn the_sum_begins_again_when_nothing_is_in_flight() {
    for profile in every_profile() {
        let mut rig = Rig::new(profile, Cumulative);
        rig.set(10_000, 5000, 4000);
        rig.sack(acked(2936, 2936));
        assert_eq!(rig.window(), (10_000, 5000, 0));
        rig.set(10_000, 5000, 4000);
        rig.sack_with(acked(0, 0), false);
        assert_eq!(rig.window(), (10_000, 5000, 0));
    }
}

//= docs/rfc9260.txt#section-7.2.3
//= type=test
//# Upon detection of packet losses from SACK chunks (see Section 7.2.4), an endpoint SHOULD do the following:
#[test]
fn a_fast_retransmit_halves_the_window_down_to_the_floor() {
    // Half the window, or 4 M = 5872 B; in ns-2's CMT agent 2 M = 2936 B. The floor may exceed the window.
    let cases = [
        (20_000, 10_000, 10_000),
        (11_745, 5872, 5872),
        (8808, 5872, 4404),
        (4404, 5872, 2936),
        (1468, 5872, 2936),
    ];
    for (cwnd, standard, cmt) in cases {
        for (profile, half) in every_profile().into_iter().zip([standard, standard, standard, cmt]) {
            let mut rig = Rig::new(profile, Cumulative);
            rig.set(cwnd, 65_536, 700);
            rig.cut(LossCause::FastRetransmit);
            assert_eq!(rig.window(), (half, half, 0), "window {cwnd}");
        }
    }
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# *  The initial cwnd after a retransmission timeout MUST be no more than PMDCS, and only one packet is allowed to be in
//# flight until successful acknowledgement.
//= docs/rfc9260.txt#section-7.2.3
//= type=test
//# When the T3-rtx timer expires on an address, SCTP SHOULD perform slow start by:
#[test]
fn a_time_out_leaves_one_chunk_and_half_the_window_as_threshold() {
    let cases = [(20_000, 10_000, 10_000), (8808, 5872, 4404), (4404, 5872, 2936), (1469, 5872, 2936)];
    for (cwnd, standard, cmt) in cases {
        for (profile, ssthresh) in every_profile().into_iter().zip([standard, standard, standard, cmt]) {
            let mut rig = Rig::new(profile, Cumulative);
            rig.set(cwnd, 65_536, 700);
            rig.cut(LossCause::Timeout);
            assert_eq!(rig.window(), (1468, ssthresh, 0), "window {cwnd}");
        }
    }
}

#[test]
fn a_time_out_at_one_chunk_keeps_the_threshold_only_in_ns2s_base_agent() {
    for (profile, ssthresh) in every_profile().into_iter().zip([5872, 5872, 30_000, 2936]) {
        let mut rig = Rig::new(profile, Cumulative);
        rig.set(1468, 30_000, 700);
        rig.cut(LossCause::Timeout);
        assert_eq!(rig.window(), (1468, ssthresh, 0));
    }
}

#[test]
fn a_cut_names_half_the_window_and_leaves_other_paths_alone() {
    for (cause, rule) in
        [(LossCause::FastRetransmit, "halved by fast retransmit"), (LossCause::Timeout, "T3 expired")]
    {
        let mut rig = Rig::new(Profile::ns2_multipath(), Cumulative);
        rig.dispatch(&Event::Established);
        rig.set(20_001, 65_536, 0);
        rig.cut(cause);
        assert_eq!(rig.control.last_reason(path(0)), Reason::figure(rule, "half_bytes", 10_000.0));
        assert_eq!(rig.control.window(path(1)).cwnd, bytes(4380));
        assert_eq!(rig.control.last_reason(path(1)).rule, "initial window");
    }
}

#[test]
fn window_after_timeout_doubles_to_ssthresh_then_grows_slowly() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.set(11_744, 65_536, 0);
    rig.cut(LossCause::Timeout);
    let mut seen = vec![rig.window().0];
    for _ in 0..9 {
        rig.sack(acked(1468, rig.window().0 + 1468));
        seen.push(rig.window().0);
    }
    // The threshold is 5872 B; from 7340 B on, growth by one chunk requires five acknowledged chunks.
    assert_eq!(seen, [1468, 2936, 4404, 5872, 7340, 7340, 7340, 7340, 7340, 8808]);
}

//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# *  While the endpoint does not transmit data on a given transport address, the cwnd of the transport address SHOULD be
//# adjusted to max(cwnd / 2, 4 * PMDCS) once per RTO.
//= docs/rfc9260.txt#section-7.2.1
//= type=test
//# Before the first cwnd adjustment, the ssthresh of the transport address SHOULD be set to the cwnd.
//= docs/rfc9260.txt#section-7.2.2
//= type=test
//# *  Same as in the slow start, when the sender does not transmit DATA chunks on a given transport address, the cwnd of
//# the transport address SHOULD be adjusted to max(cwnd / 2, 4 * PMDCS) per RTO.
#[test]
fn standard_halves_an_idle_window_to_four_chunks_and_saves_it_once() {
    let mut rig = Rig::new(Profile::rfc9260(), Cumulative);
    rig.set(20_000, 12_000, 0);
    let mut seen = Vec::new();
    for _ in 0..3 {
        rig.dispatch(&Event::Idle(path(0)));
        seen.push((rig.window().0, rig.window().1));
    }
    assert_eq!(seen, [(10_000, 20_000), (5872, 20_000), (5872, 20_000)]);
    assert_eq!(rig.control.last_reason(path(0)), Reason::rule("idle for an RTO"));
}

#[test]
fn saved_window_of_an_idle_path_is_renewed_by_a_transmission() {
    let mut rig = Rig::new(Profile::rfc9260(), Cumulative);
    rig.set(20_000, 12_000, 0);
    rig.dispatch(&Event::Idle(path(0)));
    rig.set(30_000, 12_000, 0);
    rig.note_transmission(1);
    rig.dispatch(&Event::Idle(path(0)));
    assert_eq!(rig.window(), (15_000, 12_000, 0), "sent on another path");
    rig.set(30_000, 12_000, 0);
    rig.note_transmission(0);
    rig.dispatch(&Event::Idle(path(0)));
    assert_eq!(rig.window(), (15_000, 30_000, 0));
}

#[test]
fn the_standard_neither_raises_an_idle_window_nor_lowers_a_threshold() {
    for cwnd in [1468, 2936, 4404, 5872] {
        let mut rig = Rig::new(Profile::rfc9260_multipath(), Cumulative);
        rig.set(cwnd, 30_000, 0);
        rig.dispatch(&Event::Idle(path(0)));
        assert_eq!(rig.window(), (cwnd, 30_000, 0));
    }
}

#[test]
fn ns2_sets_an_idle_window_above_two_chunks_to_half_but_at_least_four() {
    let cases = [
        (1468, 1468),
        (2936, 2936),
        (2937, 5872),
        (4380, 5872),
        (5872, 5872),
        (11_744, 5872),
        (20_000, 10_000),
    ];
    for profile in [Profile::ns2(), Profile::ns2_multipath()] {
        for (cwnd, decayed) in cases {
            let mut rig = Rig::new(profile.clone(), Cumulative);
            rig.set(cwnd, 3000, 0);
            rig.dispatch(&Event::Idle(path(0)));
            assert_eq!(rig.window(), (decayed, 3000, 0), "window {cwnd}");
        }
    }
}

#[test]
fn answered_probe_gives_one_chunk_in_pf1_two_in_pf2_else_old_window() {
    for (after_probe, cwnd) in [(Some(1), 1468), (Some(2), 2936), (None, 7000)] {
        let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
        rig.control =
            WindowControl { window_after_probe: after_probe, ..WindowControl::new(PseudoCumulative) };
        rig.set(7000, 3500, 0);
        rig.world.paths[0].error_count = 1;
        rig.active_again(PathState::PotentiallyFailed, StateCause::Proof(LivenessProof::Heartbeat));
        assert_eq!(rig.window(), (cwnd, 3500, 0));
    }
}

#[test]
fn answered_probe_after_silence_without_an_error_keeps_the_window() {
    let mut rig = Rig::new(Profile::net().multipath(), PseudoCumulative);
    rig.control = WindowControl::new(PseudoCumulative).with_window_after_probe(2);
    rig.set(7000, 3500, 0);
    rig.active_again(PathState::PotentiallyFailed, StateCause::Proof(LivenessProof::Heartbeat));
    assert_eq!(rig.window(), (7000, 3500, 0));
}

#[test]
fn an_ack_that_revives_a_path_leaves_its_window() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.control = WindowControl::new(PseudoCumulative).with_window_after_probe(2);
    rig.set(1468, 3500, 0);
    for proof in [LivenessProof::Unambiguous, LivenessProof::Ambiguous] {
        for from in [PathState::PotentiallyFailed, PathState::Inactive] {
            rig.active_again(from, StateCause::Proof(proof));
            assert_eq!(rig.window(), (1468, 3500, 0));
        }
    }
}

#[test]
fn heartbeat_ack_of_an_active_path_keeps_its_window() {
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.control = WindowControl::new(PseudoCumulative).with_window_after_probe(2);
    rig.set(4380, 65_536, 0);
    for from in [PathState::Unconfirmed, PathState::Inactive] {
        rig.active_again(from, StateCause::Proof(LivenessProof::Heartbeat));
        assert_eq!(rig.window(), (4380, 65_536, 0));
    }
}

#[test]
fn a_promoted_path_has_one_chunk() {
    for after_probe in [None, Some(2)] {
        let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
        rig.control =
            WindowControl { window_after_probe: after_probe, ..WindowControl::new(PseudoCumulative) };
        rig.set(7000, 3500, 0);
        rig.active_again(PathState::PotentiallyFailed, StateCause::Promoted(Reason::rule("fewest errors")));
        assert_eq!(rig.window(), (1468, 3500, 0));
    }
}

#[test]
fn a_path_that_leaves_service_keeps_its_window() {
    let rule = Reason::rule("whatever it is");
    let causes =
        [StateCause::Errors(rule), StateCause::Proof(LivenessProof::Heartbeat), StateCause::Promoted(rule)];
    let mut rig = Rig::new(Profile::ns2_multipath(), PseudoCumulative);
    rig.control = WindowControl::new(PseudoCumulative).with_window_after_probe(2);
    rig.set(7000, 3500, 900);
    for cause in causes {
        for (from, to) in [
            (PathState::Active, PathState::PotentiallyFailed),
            (PathState::PotentiallyFailed, PathState::Inactive),
        ] {
            rig.dispatch(&Event::PathState { path: path(0), from, to, cause });
            assert_eq!(rig.window(), (7000, 3500, 900));
        }
    }
}
