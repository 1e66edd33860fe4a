//! Tail loss probe of one path (RFC 8985 section 7).

use anabranch_core::policy::PathFacts;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::rack::RackSettings;
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "RFC 8985 section 7.2",
    rule: text!("PTO = 2 srtt (+ ack-delay for a single chunk), or {} without srtt", WITHOUT_SRTT),
    file: file!(),
}];

/// Rules that apply if the switch for repeated probes is set.
pub(super) const REPEATED: &[Equation] = &[Equation {
    name: "repeated tail probes",
    rule: text!(
        "with `repeated-probes`, another probe follows one without an answer after max(PTO, t / {}, {}), \
         t = the time since the first one, until T3 expires, which counts from the first one",
        PART_OF_SILENCE,
        LEAST_REPEATED,
    ),
    file: file!(),
}];

/// Divisor: the interval of repeated probes grows with the time without an answer, so that one second takes about 15 of them.
const PART_OF_SILENCE: u64 = 4;
/// Minimum interval of repeated probes: several times the clock granularity of current machines (RFC 9260).
const LEAST_REPEATED: Span = Span::from_millis(10);

/// Section 7.2: probe timeout without a smoothed round-trip time.
const WITHOUT_SRTT: Span = Span::from_secs(1);
/// Minimum probe timeout, however short the round trip: a timer due at once would stop time from advancing.
const LEAST_WAIT: Span = Span::from_millis(1);

/// State of a path's tail: its timer, and its probe in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// Expiry of the probe timer.
    due: Option<Time>,
    /// TLP.end_seq: TSN of the unanswered probe.
    probe: Option<u64>,
    /// TSN of the latest probe.
    latest_probe: Option<u64>,
    /// Send time of the first unanswered probe.
    unanswered_since: Option<Time>,
}

impl Tail {
    /// Section 7.2: arms the probe timer, or cancels it if there is nothing to probe for.
    pub(super) fn arm(
        &mut self,
        in_flight: ChunkBytes,
        watched: bool,
        facts: &PathFacts,
        settings: &RackSettings,
        now: Time,
    ) {
        let wanted = settings.tail_probe
            // Section 7.3: one probe for a tail.
            && (self.probe.is_none() || settings.repeated_probes)
            && is_quiet(watched, facts)
            && !in_flight.is_zero();
        self.due = wanted.then(|| now + self.wait(in_flight, facts, settings, now));
    }

    fn wait(&self, in_flight: ChunkBytes, facts: &PathFacts, settings: &RackSettings, now: Time) -> Span {
        let wait = probe_timeout(in_flight, facts, settings);
        self.unanswered_since
            .map_or(wait, |first| wait.max(now.since(first).over(PART_OF_SILENCE)).max(LEAST_REPEATED))
    }

    pub(super) fn disarm(&mut self) {
        self.due = None;
    }

    /// Records a sent probe.
    pub(super) fn probed(&mut self, tsn: u64, now: Time) {
        let unanswered_since = self.unanswered_since.or(Some(now));
        *self = Tail { due: None, probe: Some(tsn), latest_probe: Some(tsn), unanswered_since };
    }

    /// Ends the probing if the probe, or a higher TSN on its path, was acknowledged.
    pub(super) fn acked(&mut self, tsn: u64, on_this_path: bool) {
        if self.probe.is_some_and(|probe| tsn == probe || (on_this_path && tsn > probe)) {
            self.ended();
        }
    }

    pub(super) fn lost(&mut self, tsn: u64) {
        if self.probe == Some(tsn) {
            self.ended();
        }
    }

    pub(super) fn recovery_begins(&mut self) {
        self.due = None;
        self.ended();
    }

    fn ended(&mut self) {
        self.probe = None;
        self.unanswered_since = None;
    }

    /// Returns `true` if the next probe follows an unanswered one.
    pub(super) fn repeats(&self) -> bool {
        self.unanswered_since.is_some()
    }

    pub(super) fn was_probed_with(&self, tsn: u64) -> bool {
        self.latest_probe == Some(tsn)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// Returns `true` if the path must be probed now. An expired timer is cleared in any case.
    pub(super) fn is_due(&mut self, watched: bool, facts: &PathFacts, now: Time) -> bool {
        let due = self.due.take_if(|at| *at <= now).is_some();
        due && is_quiet(watched, facts) && !facts.in_flight.is_zero()
    }
}

/// Section 7.2: returns `true` without recovery and without acknowledgements beyond a hole, which another timer covers.
fn is_quiet(watched: bool, facts: &PathFacts) -> bool {
    !watched && facts.is_active() && facts.lost_unsent.is_zero()
}

/// Returns PTO (section 7.2). T3 may expire earlier, which the view does not show; then T3 ends the wait.
fn probe_timeout(in_flight: ChunkBytes, facts: &PathFacts, settings: &RackSettings) -> Span {
    let Some(smoothed) = facts.rtt.smoothed else { return WITHOUT_SRTT };
    // The receiver may delay the acknowledgement of a single chunk until a second one arrives.
    let alone = in_flight <= facts.largest_chunk;
    (smoothed.times(2) + if alone { settings.ack_delay } else { Span::ZERO }).max(LEAST_WAIT)
}
