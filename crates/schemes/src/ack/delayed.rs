//! Delayed acknowledgements (RFC 9260 section 6.2), with or without CMT's rule for gaps.

use anabranch_core::policy::{AckPolicy, AckTiming, Arrival, Context, Decision, Event, Reason, Slot, View};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};

/// A SACK for every n-th packet or after a delay.
#[derive(Clone, Copy, Debug)]
pub struct DelayedAcks {
    /// Packets per SACK.
    pub every: u32,
    /// The longest delay.
    pub delay: Span,
    /// CMT's delayed acks (Iyengar 2006, algorithm DAC): gaps do not hurry a SACK, and its flags say how many packets it answers.
    pub for_cmt: bool,
}

impl DelayedAcks {
    /// Why this packet is acknowledged at once; `None` if it is not.
    fn hurry(&self, arrival: &Arrival) -> Option<&'static str> {
        if arrival.immediate {
            // RFC 7053 section 4.2.
            return Some("the sender asked for it");
        }
        if arrival.duplicate {
            // RFC 9260 section 6.7.
            return Some("a duplicate arrived");
        }
        if arrival.first {
            // RFC 9260 section 5.1.
            return Some("the first DATA");
        }
        if arrival.gap && !self.for_cmt {
            // RFC 9260 section 6.7.
            return Some("a TSN is missing");
        }
        (arrival.packets >= self.every).then_some("enough packets")
    }
}

impl Slot for DelayedAcks {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl AckPolicy for DelayedAcks {
    fn timing(&mut self, arrival: &Arrival, _: &View<'_>) -> Decision<AckTiming> {
        match self.hurry(arrival) {
            Some(rule) => Decision::new(AckTiming::Now, Reason::rule(rule)),
            None => Decision::new(AckTiming::Within(self.delay), Reason::rule("delayed")),
        }
    }

    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8 {
        if !self.for_cmt || (by_timer && profile.timer_sack_counts_zero) {
            return 0;
        }
        u8::try_from(packets).unwrap_or(u8::MAX)
    }
}
