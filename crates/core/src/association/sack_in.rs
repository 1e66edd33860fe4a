//! Processing a SACK: what it acknowledges, what it leaves missing, and what follows for windows and timers.
//!
//! One SACK is worked through in this order, which decides ties: acknowledgements in TSN order, missing reports and losses,
//! window growth, T3, window cuts, retransmissions, new data.

use anabranch_wire::Tsn;

use crate::association::acknowledgement::Acknowledgement;
use crate::association::gap_blocks::{SackBlocks, repeated};
use crate::association::{Association, AssociationEvent};
use crate::error::AbortReason;
use crate::intervals::{self, Interval};
use crate::path_id::{MAX_PATHS, PathId};
use crate::policy::{
    AckedTransmission, Event, LossCause, OpportunityCause, PathAck, PathSack, ProofOfLife, SackDone,
    SendStamps,
};
use crate::profile::{BurstArming, T3Restart};
use crate::send::{ChunkState, Delivered, LIST_ROOM, Sender, Transmission};
use crate::stats::Discard;
use crate::time::Time;
use crate::units::{ChunkBytes, WindowBytes};

/// The processing of the present SACK, and what it leaves for the next ones. Memory is reused, so that no SACK allocates.
#[derive(Debug)]
pub(crate) struct SackProcessing {
    /// They stay until the next SACK, which repeats most of them.
    pub(super) blocks: SackBlocks,
    /// What one list of intervals holds and another does not.
    pub(super) difference: Vec<Interval>,
    /// A block named a chunk that has not left, so that what was covered before does not count as acknowledged.
    pub(super) names_unsent: bool,
    /// The holes that the loss policy judges.
    pub(super) holes: Vec<u64>,
    /// The path that the SACK came in on.
    pub(super) source: Option<PathId>,
    /// Of each path that there is, as are those that follow: an idle association holds no room for eight.
    pub(super) acks: Vec<PathAck>,
    pub(super) sacks: Vec<PathSack>,
    /// The path's earliest chunk has been seen in this walk.
    pub(super) earliest_seen: [bool; MAX_PATHS],
    /// Where on the path the search for a pseudo-cumulative TSN goes on in this walk.
    pub(super) pseudo_from: [u64; MAX_PATHS],
    /// T3 is to be restarted.
    pub(super) restart_t3: [bool; MAX_PATHS],
    /// Chunks that this SACK showed to be lost.
    pub(super) newly_lost: Vec<u64>,
    /// On each path, the highest TSN that was abandoned in flight and that this SACK showed to be lost; 0 if none.
    pub(super) lost_abandoned: [u64; MAX_PATHS],
    /// The highest TSN newly acknowledged; of the present SACK, or of the latest that acknowledged something.
    pub(super) highest_newly_acked: u64,
    /// When uncovered gap acknowledgements are taken as reneging.
    pub(super) reneging_at: Option<Time>,
    /// What the latest SACK covered, for that moment, while there is one.
    pub(super) latest_blocks: Vec<Interval>,
}

impl SackProcessing {
    pub(crate) fn new(initial_tsn: u64, paths: usize) -> Self {
        SackProcessing {
            highest_newly_acked: initial_tsn - 1,
            reneging_at: None,
            latest_blocks: Vec::new(),
            blocks: SackBlocks::new(),
            difference: Vec::new(),
            names_unsent: false,
            holes: Vec::new(),
            source: None,
            acks: vec![PathAck::default(); paths],
            sacks: vec![PathSack::default(); paths],
            earliest_seen: [false; MAX_PATHS],
            pseudo_from: [0; MAX_PATHS],
            restart_t3: [false; MAX_PATHS],
            newly_lost: Vec::new(),
            lost_abandoned: [0; MAX_PATHS],
        }
    }

    fn reset(&mut self) {
        self.acks.fill(PathAck::default());
        self.sacks.fill(PathSack::default());
        self.earliest_seen = [false; MAX_PATHS];
        self.pseudo_from = [0; MAX_PATHS];
        self.restart_t3 = [false; MAX_PATHS];
        self.newly_lost.clear();
        self.lost_abandoned = [0; MAX_PATHS];
    }

    /// A path was added.
    pub(super) fn add_path(&mut self) {
        self.acks.reserve_exact(1);
        self.sacks.reserve_exact(1);
        self.acks.push(PathAck::default());
        self.sacks.push(PathSack::default());
    }

    /// The first SACK with gap blocks has come.
    pub(super) fn make_room(&mut self) {
        self.blocks.reserve(LIST_ROOM);
        self.difference.reserve(LIST_ROOM);
        self.latest_blocks.reserve(LIST_ROOM);
        self.holes.reserve(LIST_ROOM);
        self.newly_lost.reserve(LIST_ROOM);
    }

    /// A chunk that was abandoned in flight is lost.
    pub(super) fn note_abandoned_loss(&mut self, path: PathId, tsn: u64) {
        let highest = &mut self.lost_abandoned[path.index()];
        *highest = tsn.max(*highest);
    }
}

impl Association {
    /// Processes a SACK.
    pub(crate) fn handle_sack(&mut self, source: PathId, sack: &Acknowledgement<'_>) -> Result<(), Discard> {
        self.outputs.statistics.sacks_received += 1;
        let cumulative = sack.cum_tsn().unwrap_near(self.sender.outstanding().cumulative());
        if cumulative < self.sender.outstanding().cumulative() {
            // Overtaken by a later SACK: nothing in it is news (RFC 9260 section 6.2.1 D i). It is a send opportunity all
            // the same: SACKs that come back on a slow path may all be late, and the burst limit would otherwise let
            // that path send only as often as the fast one's arrive. ns-2 does so too.
            self.outputs.statistics.sacks_ignored += 1;
            if self.sender.has_orphans() {
                self.take_late_reports(source, sack);
            }
            self.paths.reset_bursts();
            self.opportunity.open_for_new_data(OpportunityCause::Sack);
            return Ok(());
        }
        //= docs/rfc9260.txt#section-12.4
        //# An SCTP implementation MUST abort the association if it receives a SACK chunk acknowledging a TSN that has not
        //# been sent.
        if cumulative >= self.sender.lowest_unsent() {
            self.send_abort("SACK for a TSN that was never sent");
            self.abort_with(AbortReason::Protocol("SACK for a TSN that was never sent"));
            return Err(Discard::BadSack);
        }
        self.sack.source = Some(source);
        self.read_blocks(cumulative, sack);
        let new_cumulative = cumulative > self.sender.outstanding().cumulative();
        self.begin_sack();
        if new_cumulative {
            self.liveness.errors = 0;
            self.ack_cumulative(cumulative);
            self.pop_acked(cumulative);
        }
        self.ack_gaps();
        self.release_kept(cumulative, sack);
        self.check_reneging();
        self.note_duplicates(sack);
        self.count_missing(
            cumulative,
            new_cumulative,
            self.understood_flags(sack),
            WindowBytes::new(u64::from(sack.a_rwnd())),
        );
        //= docs/rfc9260.txt#section-7.2.4
        //# Note: Before the above adjustments, if the received SACK chunk also acknowledges new DATA chunks and advances
        //# the Cumulative TSN Ack Point, the cwnd adjustment rules defined in Sections 7.2.1 and 7.2.2 MUST be applied
        //# first.
        self.settle_windows(cumulative, new_cumulative);
        self.settle_t3();
        if self.sack.reneging_at.is_none() {
            // A SACK that covers less than is known was overtaken: what it says of the window is as old as the rest of it.
            let window = WindowBytes::new(u64::from(sack.a_rwnd()));
            self.update_sender(|sender| sender.advertise_window(window));
        }
        self.update_sender(Sender::estimate_window);
        self.note_probe_answer(cumulative);
        self.follow_up();
        self.consider_forward_tsn();
        Ok(())
    }

    /// What a peer of another kind writes there is not the number that CMT's delayed acks read.
    fn understood_flags(&self, sack: &Acknowledgement<'_>) -> u8 {
        if self.sender.facts().foreign_sack_flags { 0 } else { sack.flags() }
    }

    /// The cumulative TSN that a SHUTDOWN carries (RFC 9260 section 9.2); it says nothing about gaps or the window.
    //= docs/rfc9260.txt#section-3.3.8
    //# Since the SHUTDOWN chunk does not contain Gap Ack Blocks, the receiver of the SHUTDOWN chunk MUST NOT interpret
    //# the lack of a Gap Ack Block as a renege.
    pub(crate) fn handle_shutdown_cumulative(&mut self, cumulative: Tsn) {
        let cumulative = cumulative.unwrap_near(self.sender.outstanding().cumulative());
        if cumulative <= self.sender.outstanding().cumulative() || cumulative >= self.sender.lowest_unsent() {
            return;
        }
        self.acknowledge_up_to(cumulative);
    }

    /// All that has left so far is known to have arrived, although no SACK has said so.
    pub(crate) fn acknowledge_all_sent(&mut self) {
        let last = self.sender.lowest_unsent() - 1;
        if last > self.sender.outstanding().cumulative() {
            self.acknowledge_up_to(last);
        }
    }

    /// Takes a cumulative TSN, ahead of what is acknowledged and behind what was not sent, that comes without gap blocks and window.
    pub(crate) fn acknowledge_up_to(&mut self, cumulative: u64) {
        self.sack.source = None;
        self.begin_sack();
        self.ack_cumulative(cumulative);
        self.pop_acked(cumulative);
        self.settle_windows(cumulative, true);
        self.settle_t3();
        self.note_probe_answer(cumulative);
        self.consider_forward_tsn();
    }

    /// What a SACK that was overtaken still tells: which copies came as duplicates.
    fn take_late_reports(&mut self, source: PathId, sack: &Acknowledgement<'_>) {
        let cumulative = self.sender.outstanding().cumulative();
        self.sack.source = Some(source);
        self.begin_sack();
        self.note_duplicates(sack);
        self.settle_windows(cumulative, false);
        self.settle_t3();
    }

    fn begin_sack(&mut self) {
        self.sack.reset();
        if !self.profile.highest_newly_acked_persists {
            self.sack.highest_newly_acked = self.sender.outstanding().cumulative();
        }
        for (index, facts) in self.paths.all_facts().iter().enumerate() {
            self.sack.acks[index].outstanding_at_start = facts.in_flight + facts.lost_unsent;
        }
        self.paths.reset_bursts();
    }

    /// Credits every chunk up to `cumulative` that was not acknowledged before.
    fn ack_cumulative(&mut self, cumulative: u64) {
        while let Some(tsn) = self.sender.outstanding().first_unacked().filter(|&t| t <= cumulative) {
            self.see_earliest(tsn);
            self.credit(tsn, true);
        }
    }

    /// Releases chunks up to `cumulative`, all of them acknowledged by now.
    fn pop_acked(&mut self, cumulative: u64) {
        while self.sender.outstanding().cumulative() < cumulative {
            let Some(discarded) = self.update_sender(Sender::discard) else { break };
            if discarded.recovered_before {
                // RFC 9260 section 7.2.4 lets a burst follow; the limit is armed from here on in some profiles.
                self.opportunity.burst_armed = true;
            }
            if self.profile.t3_restart == T3Restart::OwnEarliestOrCumulative {
                let pseudo = &self.paths[discarded.path].pseudo;
                if pseudo.expected <= discarded.tsn || pseudo.expected_retransmitted <= discarded.tsn {
                    self.sack.restart_t3[discarded.path.index()] = true;
                }
            }
        }
        self.forward_tsn_acked(cumulative);
        self.consider_writable();
    }

    pub(crate) fn consider_writable(&mut self) {
        self.consider_send_growth();
        let is_proved = self.admits_user_messages();
        if self.sender.take_writable() | self.protection.boundary.take_proof(is_proved) {
            self.outputs.report(AssociationEvent::Writable);
        }
    }

    /// NR-SACK: what the receiver keeps for good need not be held here any more.
    fn release_kept(&mut self, cumulative: u64, sack: &Acknowledgement<'_>) {
        let mut blocks = sack.kept();
        let known = intervals::above(self.sender.outstanding().kept(), cumulative);
        let repeated = repeated(blocks.as_wire(), known, cumulative);
        if repeated > 0 {
            blocks.nth(repeated - 1);
        }
        let mut at = self.sender.outstanding().kept().len() - known.len() + repeated;
        for block in blocks {
            let (start, end) = (cumulative + u64::from(block.start), cumulative + u64::from(block.end));
            // Behind a hole that was filled all blocks are known, but stand one place further up.
            if !intervals::holds_from(self.sender.outstanding().kept(), &mut at, (start, end)) {
                self.update_sender(|sender| sender.keep(start, end));
                let kept = self.sender.outstanding().kept();
                at = kept.len() - intervals::above(kept, start - 1).len();
            }
        }
        self.consider_writable();
    }

    /// Credits one chunk to its latest transmission: the rule by which copies are told apart.
    pub(super) fn credit(&mut self, tsn: u64, cumulative: bool) {
        let Some(chunk) = self.sender.outstanding().get(tsn) else { return };
        let Some(credited) = self.sender.credited_copy(tsn, self.sack.source) else { return };
        let (path, bytes, once) = (credited.path, chunk.bytes(), chunk.transmissions == 1);
        let timed_out = chunk.state == ChunkState::Lost(LossCause::Timeout);
        let was_lost = matches!(chunk.state, ChunkState::Lost(_));
        self.update_sender(|sender| {
            if was_lost {
                sender.revoke_loss(tsn);
            }
            sender.acknowledge(tsn, &credited);
            if !was_lost {
                sender.end_overtaken_orphans(path, credited.stamps.sent_at);
            }
        });
        self.note_ack(tsn, &credited, cumulative);
        self.measure(tsn, path, once && !timed_out, once);
        if once && !timed_out {
            self.note_least_rtt(path, credited.stamps.sent_at);
        }
        let sampled = self.deliver(path, bytes, credited.stamps, once);
        self.path_spoke(path);
        self.paths.note_delivered_size(path, bytes);
        let event = AckedTransmission { tsn, cumulative, sent_once: once, ..sampled };
        self.dispatch_event(&Event::Acked(&event));
        if !timed_out {
            let proof = if once { ProofOfLife::Unambiguous } else { ProofOfLife::Ambiguous };
            //= docs/rfc9260.txt#section-8.1
            //# The counter used for endpoint failure detection MUST be reset each time a DATA chunk sent to that peer
            //# endpoint is acknowledged (by the reception of a SACK chunk).
            self.path_proved(path, proof);
        }
        self.liveness.errors = 0;
    }

    fn note_ack(&mut self, tsn: u64, credited: &Transmission, cumulative: bool) {
        let (path, bytes, sent_at) = (credited.path, credited.bytes, credited.stamps.sent_at);
        let facts = self.paths.facts(path);
        let in_avoidance = facts.cwnd > facts.ssthresh;
        let ack = &mut self.sack.acks[path.index()];
        let sack = &mut self.sack.sacks[path.index()];
        sack.lowest_newly_acked.get_or_insert(tsn);
        sack.latest_sent_at = sack.latest_sent_at.max(Some(sent_at));
        if cumulative {
            self.paths.search_pseudo_again(path);
            ack.new_pseudo_cumulative = true;
            ack.cumulative += bytes;
            sack.new_cumulative_ack = true;
            self.sack.highest_newly_acked = tsn;
            return;
        }
        if self.paths.advance_pseudo(path, tsn) {
            ack.new_pseudo_cumulative = true;
            self.sack.pseudo_from[path.index()] = tsn + 1;
        }
        ack.gap += bytes;
        // Slow start counts newly acknowledged bytes, congestion avoidance each chunk once.
        if ack.new_pseudo_cumulative && (!in_avoidance || self.sender.count_toward_increment(tsn)) {
            ack.gap_after_pseudo += bytes;
        }
        sack.new_gap_ack = true;
        sack.highest_gap_acked = Some(tsn);
        self.sack.highest_newly_acked = self.sack.highest_newly_acked.max(tsn);
    }

    /// Takes a round-trip sample if this chunk carried the path's measurement and nothing makes it ambiguous (Karn).
    fn measure(&mut self, tsn: u64, path: PathId, usable: bool, once: bool) {
        //= docs/rfc9260.txt#section-6.3.1
        //# C5)  Karn's algorithm: RTT measurements MUST NOT be made using chunks that were retransmitted (and thus for
        //# which it is ambiguous whether the reply was for the first instance of the chunk or for a later instance).
        if !once || !self.paths.end_measurement_of(path, tsn) {
            return;
        }
        if usable && let Some(sent_at) = self.sender.outstanding().latest_of(tsn).map(|t| t.stamps.sent_at) {
            self.take_rtt(path, self.now.since(sent_at), false);
        }
    }

    /// The least round-trip time of a path counts chunks that were sent once and acknowledged on the path itself.
    fn note_least_rtt(&mut self, path: PathId, sent_at: Time) {
        if self.sack.source == Some(path) {
            self.paths.note_least_rtt(path, sent_at, self.now);
        }
    }

    /// Delivery accounting of the credited transmission; `certain` says that it is the chunk's only one.
    pub(crate) fn deliver(
        &mut self,
        path: PathId,
        bytes: ChunkBytes,
        stamps: SendStamps,
        certain: bool,
    ) -> AckedTransmission {
        let now = self.now;
        let sack_path = self.sack.source;
        let delivered = Delivered { stamps, certain, same_way: sack_path == Some(path) };
        self.update_sender(|sender| sender.deliver(path, bytes, delivered, now));
        AckedTransmission { path, tsn: 0, bytes, stamps, sent_once: false, cumulative: false, sack_path }
    }

    /// What the acknowledgements of this SACK tell of the rates of their paths.
    fn take_delivery_samples(&mut self) {
        for id in self.paths.ids() {
            let least_rtt = self.paths.facts(id).rtt.recent_min;
            let sample = self.sender.delivery_sample(id, least_rtt, self.now);
            self.sack.acks[id.index()].sample = sample;
            self.paths.note_delivery(id, sample);
        }
    }

    fn note_duplicates(&mut self, sack: &Acknowledgement<'_>) {
        for duplicate in sack.dups() {
            self.outputs.statistics.duplicates_reported += 1;
            let tsn = Tsn::unwrap_near(duplicate, self.sender.outstanding().cumulative());
            if self.credit_orphan(tsn) {
                continue;
            }
            let mut latest = self.sender.outstanding().transmissions_of(tsn).map(|sent| sent.path);
            let (needless, before) = (latest.next(), latest.next());
            drop(latest);
            if let Some(path) = needless {
                let misjudged = before.unwrap_or(path);
                self.dispatch_event(&Event::Spurious { path, misjudged, tsn });
            }
        }
    }

    /// Window growth is decided with what was outstanding before this SACK; then the acknowledged bytes leave the flight.
    fn settle_windows(&mut self, cumulative: u64, new_cumulative: bool) {
        self.take_delivery_samples();
        let own = self.profile.recovery_ends_per_path;
        for id in self.paths.ids() {
            let facts = self.paths.facts(id);
            let ack = &mut self.sack.acks[id.index()];
            ack.in_flight_before = facts.in_flight;
            ack.in_flight_after = facts.in_flight - ack.newly_acked();
            if facts.recovery_point.is_some_and(|point| {
                cumulative >= point || (own && self.sender.outstanding().earliest_on(id, point + 1).is_none())
            }) {
                self.paths.end_recovery(id);
            }
        }
        let acks = std::mem::take(&mut self.sack.acks);
        let done = SackDone { paths: &acks, new_cumulative, cumulative };
        self.dispatch_event(&Event::SackDone(&done));
        self.update_sender(|sender| {
            for (index, ack) in acks.iter().enumerate() {
                sender.settle(PathId::new(index), ack.newly_acked());
            }
        });
        self.sack.acks = acks;
    }

    /// RFC 9260 section 6.3.2 R2 and R3.
    fn settle_t3(&mut self) {
        for id in self.paths.ids() {
            let index = id.index();
            let answered = !self.sack.acks[index].newly_acked().is_zero();
            if self.paths.facts(id).in_flight.is_zero() {
                if !self.control.forward.waits_on(id) {
                    self.paths.stop_t3(id);
                }
                if answered {
                    self.paths.end_silence(id);
                }
            } else if self.sack.restart_t3[index]
                || self.paths[id].timers.t3.is_none()
                || (self.profile.t3_restart == T3Restart::Any && answered)
            {
                self.paths.start_t3(id, self.now);
            }
        }
    }

    fn note_probe_answer(&mut self, cumulative: u64) {
        let Some(probe) = &mut self.peer_window_block.probe else { return };
        let bytes = self.sender.outstanding().get(probe.tsn).map_or(0, |c| c.draft.payload.len() as u64);
        // Once the window would take it, it is a chunk like any other, and its time-outs are errors again.
        let open = self.profile.window_cost(bytes, 1) <= self.sender.facts().peer_window_advertised;
        if cumulative >= probe.tsn || open {
            self.peer_window_block.probe = None;
        } else {
            probe.answered_at = Some(self.now);
        }
    }

    /// Cuts, retransmissions and new data.
    fn follow_up(&mut self) {
        let lost_something = !self.sack.newly_lost.is_empty();
        if matches!(self.profile.burst_arming, BurstArming::Always) {
            self.opportunity.burst_armed = true;
        }
        if lost_something {
            self.after_losses();
        } else if self.sack.lost_abandoned.iter().any(|&tsn| tsn > 0) {
            self.cut_windows();
            self.opportunity.after_loss_event = false;
        } else {
            self.paths.grant_exemptions(false);
            self.opportunity.after_loss_event = false;
        }
        self.open_opportunity(OpportunityCause::Sack, true);
        self.advance_shutdown();
    }

    /// Chunks were found lost: windows are cut, and each path that lost something may send one packet whatever its window says.
    pub(crate) fn after_losses(&mut self) {
        self.outputs.statistics.fast_retransmit_events += 1;
        self.cut_windows();
        self.opportunity.after_loss_event = true;
        self.paths.grant_exemptions(true);
    }
}
