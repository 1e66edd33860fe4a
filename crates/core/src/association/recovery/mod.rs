//! Loss recovery: processing of SACKs.
//!
//! The steps of one SACK have this order, which decides ties: acknowledgements in TSN order, missing reports and losses, window
//! growth, T3, window cuts. Then the association opens a send opportunity, in which retransmissions are sent before new data.
//!
//! [`LossRecovery`] keeps state between SACKs, and reused memory for processing one.

mod acknowledgement;
mod blocks;
mod copies;
mod credit;
mod gaps;
mod kept;
mod known;
mod losses;
mod missing;
mod reneging;

use anabranch_wire::Tsn;

use crate::association::dispatch::Dispatcher;
use crate::intervals::Interval;
use crate::path_id::{MAX_PATHS, PathId};
use crate::policy::{Event, PathAck, PathSack, SackDone};
use crate::profile::T3Restart;
use crate::send::{LIST_ROOM, LatestDelivered, Sender};
use crate::time::Time;

pub(crate) use acknowledgement::Acknowledgement;
use blocks::SackBlocks;
use known::KnownBlocks;

/// State of the current SACK while it is processed, and state for the next ones. Memory is reused, so that SACKs do not allocate.
#[derive(Clone, Debug)]
pub(crate) struct LossRecovery {
    /// Gap blocks, kept until the next SACK, which repeats most of them.
    blocks: SackBlocks,
    /// Chunks that gap blocks have acknowledged.
    known: KnownBlocks,
    /// TSNs that the receiver never drops (NR-SACK), as disjoint inclusive intervals in order. Some may be below the cumulative TSN.
    kept: Vec<Interval>,
    /// Intervals that one list contains and another does not.
    difference: Vec<Interval>,
    /// `true` if a block named a chunk that was never sent, so that known blocks do not imply acknowledged chunks.
    names_unsent: bool,
    /// Holes that the loss policy judges.
    holes: Vec<u64>,
    /// Path on which the SACK arrived.
    source: Option<PathId>,
    /// `true` if the SACK has acknowledged a chunk.
    acknowledges: bool,
    /// One entry for each existing path, as in the next list, to save the memory of eight in idle associations.
    acks: Vec<PathAck>,
    sacks: Vec<PathSack>,
    /// `true` if the path's earliest chunk has been visited in this walk.
    earliest_seen: [bool; MAX_PATHS],
    /// TSN at which the search for a pseudo-cumulative TSN continues on each path.
    pseudo_from: [u64; MAX_PATHS],
    /// Paths whose T3 is restarted.
    restart_t3: [bool; MAX_PATHS],
    /// Chunks that this SACK reports as lost.
    newly_lost: Vec<u64>,
    /// For each path, the highest TSN that was abandoned in flight and that this SACK reports as lost; 0 if none.
    lost_abandoned: [u64; MAX_PATHS],
    /// Highest TSN newly acknowledged by this SACK, or by the latest one that acknowledged a chunk.
    highest_newly_acked: u64,
    /// Time at which uncovered gap acknowledgements count as reneged.
    reneging_at: Option<Time>,
    /// Blocks of the latest SACK, kept while such a time is set.
    latest_blocks: Vec<Interval>,
    /// Packets of each path whose delivery the current SACK proves, if copies are judged.
    delivered: [LatestDelivered; MAX_PATHS],
    /// Set if the peer has reported a copy in flight as a duplicate. Such a peer reports the arrival of each duplicate.
    peer_reports_duplicates: bool,
}

/// Error of a SACK that acknowledges a TSN that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsentTsn;

/// Losses that a SACK has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Losses {
    None,
    /// Losses of abandoned chunks only: nothing is retransmitted.
    Abandoned,
    /// Losses of chunks that will be retransmitted.
    Chunks,
}

/// Result of a SACK for other parts of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SackOutcome {
    /// Set if a later SACK overtook this SACK. It then only opens a send opportunity for new data.
    pub(crate) overtaken: bool,
    /// Set if the SACK acknowledged a chunk, so that the peer is reachable.
    pub(crate) acknowledged: bool,
    /// Set if the SACK cumulatively acknowledged a chunk that had been declared lost.
    pub(crate) recovered_loss: bool,
    pub(crate) losses: Losses,
}

impl SackOutcome {
    /// Result of an overtaken SACK.
    pub(crate) const OVERTAKEN: Self =
        SackOutcome { overtaken: true, acknowledged: false, recovered_loss: false, losses: Losses::None };
}

impl LossRecovery {
    pub(crate) fn new(initial_tsn: u64, paths: usize) -> Self {
        LossRecovery {
            blocks: SackBlocks::new(),
            known: KnownBlocks::new(),
            kept: Vec::new(),
            difference: Vec::new(),
            names_unsent: false,
            holes: Vec::new(),
            source: None,
            acknowledges: false,
            acks: vec![PathAck::default(); paths],
            sacks: vec![PathSack::default(); paths],
            earliest_seen: [false; MAX_PATHS],
            pseudo_from: [0; MAX_PATHS],
            restart_t3: [false; MAX_PATHS],
            newly_lost: Vec::new(),
            lost_abandoned: [0; MAX_PATHS],
            highest_newly_acked: initial_tsn - 1,
            reneging_at: None,
            latest_blocks: Vec::new(),
            delivered: [LatestDelivered::default(); MAX_PATHS],
            peer_reports_duplicates: false,
        }
    }

    /// Returns `true` if known blocks do not imply acknowledged chunks.
    pub(crate) fn names_unsent(&self) -> bool {
        self.names_unsent
    }

    /// Returns the TSNs that gap blocks have acknowledged.
    pub(crate) fn known_blocks(&self) -> &[Interval] {
        &self.known
    }

    /// Adds entries for another path.
    pub(crate) fn add_path(&mut self) {
        self.acks.reserve_exact(1);
        self.sacks.reserve_exact(1);
        self.acks.push(PathAck::default());
        self.sacks.push(PathSack::default());
    }

    /// Reserves memory for gap blocks when the first SACK with blocks arrives.
    fn make_room(&mut self) {
        self.blocks.reserve(LIST_ROOM);
        self.known.reserve(LIST_ROOM);
        self.difference.reserve(LIST_ROOM);
        self.latest_blocks.reserve(LIST_ROOM);
        self.holes.reserve(LIST_ROOM);
        self.newly_lost.reserve(LIST_ROOM);
    }

    /// Processes a SACK.
    ///
    /// # Errors
    /// Returns [`UnsentTsn`] if the SACK acknowledges a TSN that was not sent; the caller ends the association.
    pub(crate) fn on_sack(
        &mut self,
        source: PathId,
        sack: &Acknowledgement<'_>,
        d: &mut Dispatcher<'_>,
    ) -> Result<SackOutcome, UnsentTsn> {
        d.outputs.statistics.sacks_received += 1;
        let cumulative = sack.cum_tsn.unwrap_near(d.sender.outstanding().cumulative());
        if cumulative < d.sender.outstanding().cumulative() {
            self.on_overtaken_sack(source, sack, d);
            return Ok(SackOutcome::OVERTAKEN);
        }
        if cumulative >= d.sender.lowest_unsent() {
            return Err(UnsentTsn);
        }
        self.source = Some(source);
        self.read_blocks(cumulative, sack, d.sender);
        let new_cumulative = cumulative > d.sender.outstanding().cumulative();
        self.begin_sack(d);
        let mut recovered_loss = false;
        if new_cumulative {
            self.ack_cumulative(cumulative, d);
            recovered_loss = self.pop_acked(cumulative, d);
        }
        self.ack_gaps(d);
        self.release_kept(cumulative, sack, d);
        self.check_reneging(d);
        self.note_duplicates(sack, d);
        self.judge_duplicates(d);
        self.count_missing(cumulative, new_cumulative, sack, d);
        //= docs/rfc9260.txt#section-7.2.4
        //# Note: Before the above adjustments, if the received SACK chunk also acknowledges new DATA chunks and advances
        //# the Cumulative TSN Ack Point, the cwnd adjustment rules defined in Sections 7.2.1 and 7.2.2 MUST be applied
        //# first.
        self.settle_windows(cumulative, new_cumulative, d);
        self.settle_t3(d);
        if self.reneging_at.is_none() {
            // A SACK that covers less than is known was overtaken, and its window is outdated too.
            d.update_sender(|sender| sender.advertise_window(sack.a_rwnd));
        }
        d.update_sender(Sender::estimate_window);
        d.sender.note_probe_answer(cumulative, d.now);
        let losses = self.answer_losses(d);
        d.consider_forward_tsn();
        let acknowledged = new_cumulative || self.acknowledges;
        Ok(SackOutcome { overtaken: false, acknowledged, recovered_loss, losses })
    }

    /// Processes a SACK that a later one has overtaken: only the copies that it reports as duplicates are new (RFC 9260 section
    /// 6.2.1 D i). It opens a send opportunity nevertheless, as in ns-2: all SACKs of a slow path may be late, and the burst limit
    /// would otherwise let that path send only as often as SACKs of the fast one arrive.
    fn on_overtaken_sack(&mut self, source: PathId, sack: &Acknowledgement<'_>, d: &mut Dispatcher<'_>) {
        d.outputs.statistics.sacks_ignored += 1;
        if d.sender.has_duplicates() {
            let cumulative = d.sender.outstanding().cumulative();
            self.source = Some(source);
            self.begin_sack(d);
            self.note_duplicates(sack, d);
            self.judge_duplicates(d);
            self.settle_windows(cumulative, false, d);
            self.settle_t3(d);
        }
        d.paths.reset_bursts();
    }

    /// Processes a cumulative TSN without gap blocks and window. It is ahead of the known one, and below the first unsent TSN.
    pub(crate) fn on_cumulative(&mut self, cumulative: u64, d: &mut Dispatcher<'_>) -> SackOutcome {
        self.source = None;
        self.begin_sack(d);
        self.ack_cumulative(cumulative, d);
        let recovered_loss = self.pop_acked(cumulative, d);
        self.settle_windows(cumulative, true, d);
        self.settle_t3(d);
        d.sender.note_probe_answer(cumulative, d.now);
        d.consider_forward_tsn();
        let acknowledged = self.acknowledges;
        SackOutcome { overtaken: false, acknowledged, recovered_loss, losses: Losses::None }
    }

    fn begin_sack(&mut self, d: &mut Dispatcher<'_>) {
        self.acknowledges = false;
        self.acks.fill(PathAck::default());
        self.sacks.fill(PathSack::default());
        self.earliest_seen = [false; MAX_PATHS];
        self.pseudo_from = [0; MAX_PATHS];
        self.restart_t3 = [false; MAX_PATHS];
        self.newly_lost.clear();
        self.lost_abandoned = [0; MAX_PATHS];
        if self.judges_copies(d.paths) {
            self.delivered = [LatestDelivered::default(); MAX_PATHS];
        }
        if !d.paths.profile().highest_newly_acked_persists {
            self.highest_newly_acked = d.sender.outstanding().cumulative();
        }
        for (ack, facts) in self.acks.iter_mut().zip(d.paths.all_facts()) {
            ack.outstanding_at_start = facts.in_flight + facts.lost_unsent;
        }
        d.paths.reset_bursts();
    }

    /// Credits every chunk up to `cumulative` that was not acknowledged before.
    fn ack_cumulative(&mut self, cumulative: u64, d: &mut Dispatcher<'_>) {
        while let Some(tsn) = d.sender.outstanding().first_unacked().filter(|&t| t <= cumulative) {
            let Some(credited) = self.credited_copy(tsn, d) else { break };
            self.see_earliest(tsn, credited.path, d.sender);
            self.credit(tsn, &credited, true, d);
        }
    }

    /// Releases chunks up to `cumulative`, all of them acknowledged by now. Returns `true` if one of them had been lost.
    fn pop_acked(&mut self, cumulative: u64, d: &mut Dispatcher<'_>) -> bool {
        let mut recovered_loss = false;
        while d.sender.outstanding().cumulative() < cumulative {
            let Some(discarded) = d.sender.discard() else { break };
            recovered_loss |= discarded.recovered_before;
            if d.paths.profile().t3_restart == T3Restart::OwnEarliestOrCumulative {
                let pseudo = &d.paths[discarded.path].pseudo;
                if pseudo.expected <= discarded.tsn || pseudo.expected_retransmitted <= discarded.tsn {
                    self.restart_t3[discarded.path.index()] = true;
                }
            }
        }
        d.publish_counts();
        d.forward_tsn_acked(cumulative);
        recovered_loss
    }

    /// Credits copies that the peer reports as received twice, and reports spurious retransmissions.
    fn note_duplicates(&mut self, sack: &Acknowledgement<'_>, d: &mut Dispatcher<'_>) {
        for duplicate in sack.duplicates.clone() {
            d.outputs.statistics.duplicates_reported += 1;
            let tsn = Tsn::unwrap_near(duplicate, d.sender.outstanding().cumulative());
            if self.credit_duplicate(tsn, d) {
                continue;
            }
            let mut latest = d.sender.outstanding().transmissions_of(tsn).map(|sent| sent.path);
            let (spurious, before) = (latest.next(), latest.next());
            drop(latest);
            if let Some(path) = spurious {
                let misjudged = before.unwrap_or(path);
                d.dispatch(&Event::Spurious { path, misjudged, tsn });
            }
        }
    }

    /// Updates the delivery rates of the paths from the samples of this SACK.
    fn take_delivery_samples(&mut self, d: &mut Dispatcher<'_>) {
        for id in d.paths.ids() {
            let least_rtt = d.paths.facts(id).rtt.recent_min;
            let Some(sample) = d.sender.delivery_sample(id, least_rtt, d.now) else { continue };
            self.acks[id.index()].sample = Some(sample);
            d.paths.note_delivery(id, sample);
        }
    }

    /// Lets windows grow by the bytes outstanding before this SACK, and then removes the acknowledged bytes from the flight.
    fn settle_windows(&mut self, cumulative: u64, new_cumulative: bool, d: &mut Dispatcher<'_>) {
        self.take_delivery_samples(d);
        let own = d.paths.profile().recovery_ends_per_path;
        for id in d.paths.ids() {
            let facts = d.paths.facts(id);
            let ack = &mut self.acks[id.index()];
            ack.in_flight_before = facts.in_flight;
            ack.in_flight_after = facts.in_flight - ack.newly_acked();
            if facts.recovery_point.is_some_and(|point| {
                cumulative >= point || (own && d.sender.outstanding().earliest_on(id, point + 1).is_none())
            }) {
                d.paths.end_recovery(id);
            }
        }
        let done = SackDone { paths: &self.acks, new_cumulative, cumulative };
        d.dispatch(&Event::SackDone(&done));
        d.update_sender(|sender| {
            for (index, ack) in self.acks.iter().enumerate() {
                sender.settle(PathId::new(index), ack.newly_acked());
            }
        });
    }

    /// Stops or restarts T3 of each path (RFC 9260 section 6.3.2 R2 and R3).
    fn settle_t3(&mut self, d: &mut Dispatcher<'_>) {
        for id in d.paths.ids() {
            let answered = !self.acks[id.index()].newly_acked().is_zero();
            if d.paths.facts(id).in_flight.is_zero() {
                if !d.sender.awaits_forward_tsn(id) {
                    d.paths.stop_t3(id);
                }
                if answered {
                    d.paths.end_silence(id);
                }
            } else if self.restart_t3[id.index()]
                || d.paths[id].timers.t3.is_none()
                || (d.paths.profile().t3_restart == T3Restart::Any && answered)
            {
                d.paths.start_t3(id, d.now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
