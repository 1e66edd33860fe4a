//! RACK state of one path (RFC 8985 section 5.3) and its loss detection (section 6).

use anabranch_core::policy::{AckedTransmission, Missing, PathFacts, View};
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::rack::RackSettings;
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "RFC 8985 section 6.2 step 2",
        rule: "RACK.rtt = now - sent; ignores a retransmission acknowledged in less than min_RTT",
        file: file!(),
    },
    Equation {
        name: "RFC 8985 section 6.2 step 3",
        rule: "reordering seen: a chunk sent once arrives after one with a higher TSN",
        file: file!(),
    },
    Equation {
        name: "RFC 8985 section 6.2 step 4",
        rule: "reo_wnd = min(mult min_RTT / 4, srtt); 0 in recovery or after enough reports without reordering",
        file: file!(),
    },
    Equation {
        name: "RFC 8985 section 6.2 step 5",
        rule: "lost if sent before the latest delivered and sent + RACK.rtt + reo_wnd <= now",
        file: file!(),
    },
];

/// Number of recoveries for which a widened window lasts without another spurious retransmission (section 6.2 step 4).
const PERSISTENCE: u32 = 16;

/// Variables of section 5.3, one set per path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// RACK.xmit_ts and RACK.end_seq: send time and TSN of the latest delivered transmission.
    latest: Option<(Time, u64)>,
    /// RACK.rtt: round-trip time of the most recently delivered transmission.
    rtt: Span,
    /// RACK.fack and its send time: the highest TSN delivered.
    highest: Option<(u64, Time)>,
    /// RACK.reordering_seen.
    reordering_seen: bool,
    /// RACK.dsack_round: start of the round in which no second spurious retransmission widens the window.
    round: Option<Time>,
    /// RACK.reo_wnd_mult.
    multiplier: u32,
    /// RACK.reo_wnd_persist.
    pub(super) persistence: u32,
    /// Highest TSN sent before a time-out.
    timed_out_below: Option<u64>,
    /// Set if the path was in recovery after the latest SACK.
    recovered_before: bool,
    /// Set if a chunk sent before the latest delivered one is still in flight.
    hole: bool,
    /// Reordering timer.
    timer: Option<Time>,
}

impl Default for Record {
    fn default() -> Self {
        Record {
            latest: None,
            rtt: Span::ZERO,
            highest: None,
            reordering_seen: false,
            round: None,
            multiplier: 1,
            persistence: PERSISTENCE,
            timed_out_below: None,
            recovered_before: false,
            hole: false,
            timer: None,
        }
    }
}

impl Record {
    /// Section 6.2 steps 2 and 3, for one delivered transmission.
    pub(super) fn acked(&mut self, acked: &AckedTransmission, facts: &PathFacts, now: Time) {
        // The round ends when a chunk sent after its start arrives. On several paths, this condition corresponds to SND.UNA >=
        // RACK.dsack_round.
        self.round.take_if(|began| acked.stamps.sent_at >= *began);
        self.detect_reordering(acked);
        let rtt = now.since(acked.stamps.sent_at);
        // Step 2: an acknowledgement this early answers an earlier transmission. If no minimum round-trip time is known,
        // acknowledgements of retransmitted chunks are not used.
        if !acked.sent_once && facts.rtt.min.is_none_or(|least| rtt < least) {
            return;
        }
        self.rtt = rtt;
        let transmission = (acked.stamps.sent_at, acked.tsn);
        if self.latest.is_none_or(|latest| transmission > latest) {
            self.latest = Some(transmission);
        }
    }

    /// Step 3. A bound chunk may be sent after one with a higher TSN, which is no reordering in the network.
    fn detect_reordering(&mut self, acked: &AckedTransmission) {
        match self.highest {
            Some((tsn, sent_at)) if acked.tsn < tsn => {
                self.reordering_seen |= acked.sent_once && acked.stamps.sent_at <= sent_at;
            }
            _ => self.highest = Some((acked.tsn, acked.stamps.sent_at)),
        }
    }

    /// Step 4, for a spurious retransmission: widens the window, once per round.
    pub(super) fn spurious(&mut self, now: Time) {
        if self.round.is_none() {
            self.round = Some(now);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persistence = PERSISTENCE;
        }
    }

    /// Starts a recovery after a time-out. It lasts until all chunks sent before are acknowledged.
    pub(super) fn timed_out(&mut self, highest_sent: u64) {
        self.timed_out_below = Some(highest_sent);
        self.timer = None;
    }

    /// Returns `true` if the path needs no probe: it is in recovery, or a chunk beyond a hole was acknowledged (section 7.2).
    pub(super) fn is_watched(&self, facts: &PathFacts) -> bool {
        self.in_recovery(facts) || self.hole
    }

    /// Step 4, second half: the end of a recovery.
    pub(super) fn sack_done(&mut self, in_flight: ChunkBytes, cumulative: u64, facts: &PathFacts, now: Time) {
        let nothing_left = in_flight.is_zero() && facts.lost_unsent.is_zero();
        self.timed_out_below.take_if(|highest| cumulative >= *highest || nothing_left);
        let recovers = self.in_recovery(facts);
        // A SACK that widens the window does not count as the end of a recovery as well.
        if self.recovered_before && !recovers && self.round != Some(now) {
            self.persistence = self.persistence.saturating_sub(1);
            if self.persistence == 0 {
                self.multiplier = 1;
            }
        }
        self.recovered_before = recovers;
    }

    fn in_recovery(&self, facts: &PathFacts) -> bool {
        facts.recovery_point.is_some() || self.timed_out_below.is_some()
    }

    /// Returns RACK.reo_wnd (section 6.2 step 4): the allowed delay of an acknowledgement beyond the latest round-trip time.
    fn reordering_window(&self, enough_reports: bool, settings: &RackSettings, facts: &PathFacts) -> Span {
        if !self.reordering_seen && (self.in_recovery(facts) || enough_reports) {
            return Span::ZERO;
        }
        let least = facts.rtt.min.unwrap_or(self.rtt);
        let window = least.times(u64::from(self.multiplier)).over(u64::from(settings.divisor.max(1)));
        facts.rtt.smoothed.map_or(window, |smoothed| window.min(smoothed))
    }

    /// Returns send time and TSN of the latest delivered transmission.
    pub(super) fn latest(&self) -> Option<(Time, u64)> {
        self.latest
    }

    pub(super) fn begin_judging(&mut self) {
        self.timer = None;
        self.hole = false;
    }

    pub(super) fn no_hole(&mut self) {
        self.hole = false;
    }

    /// Section 6.2 step 5 for one chunk: returns `true` if it is lost, and otherwise arms the timer if it will be lost with time.
    pub(super) fn is_lost(
        &mut self,
        chunk: &Missing,
        enough_reports: bool,
        settings: &RackSettings,
        view: &View<'_>,
    ) -> bool {
        let sent_before = self.latest.is_some_and(|latest| (chunk.sent_at, chunk.tsn) < latest);
        if chunk.waits || !sent_before {
            return false;
        }
        self.hole = true;
        let window = self.reordering_window(enough_reports, settings, view.path(chunk.path));
        // A chunk cannot be overdue at its own send time. With a zero round-trip time, each acknowledgement of a copy would
        // otherwise request the next copy.
        let at = chunk.sent_at + (self.rtt + window).max(Span::from_nanos(1));
        if at <= view.now {
            return true;
        }
        // One timer for all chunks: when it expires, the last of them is overdue as well.
        self.timer = self.timer.max(Some(at));
        false
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.timer
    }

    pub(super) fn timer_is_due(&mut self, now: Time) -> bool {
        self.timer.take_if(|at| *at <= now).is_some()
    }
}
