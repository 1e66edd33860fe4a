//! Minimum round-trip time, and the time at which it must be measured again (draft-ietf-ccwg-bbr-06 sections 2.14 and 5.3.4.3).

use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.3.4.3, min_rtt",
    rule: text!(
        "minimum round-trip time of {}; if the minimum of {} is that old, ProbeRTT measures it again",
        MEMORY,
        PROBE_INTERVAL,
    ),
    file: file!(),
}];

/// Time for which a minimum round-trip time is used (MinRTTFilterLen).
const MEMORY: Span = Span::from_secs(10);
/// Time between two probes of the minimum round-trip time (ProbeRTTInterval).
const PROBE_INTERVAL: Span = Span::from_secs(5);

/// Minimum round-trip time of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    least: Option<(Span, Time)>,
    /// Minimum since the latest probe.
    recent: Option<(Span, Time)>,
    due: bool,
}

impl MinRtt {
    /// Processes an acknowledgement with the round-trip time that it measured.
    pub(super) fn acknowledge(&mut self, rtt: Option<Span>, now: Time) {
        let older = |of: Option<(Span, Time)>, than: Span| of.is_some_and(|(_, at)| now.since(at) > than);
        self.due = older(self.recent, PROBE_INTERVAL);
        if let Some(rtt) = rtt.filter(|rtt| self.due || self.recent.is_none_or(|(least, _)| *rtt < least)) {
            self.recent = Some((rtt, now));
        }
        let expired = older(self.least, MEMORY);
        let lower = |recent: &(Span, Time)| self.least.is_none_or(|(least, _)| recent.0 < least);
        if let Some(recent) = self.recent.filter(|recent| expired || lower(recent)) {
            self.least = Some(recent);
        }
    }

    /// Records that the path was measured with little in flight.
    pub(super) fn probed(&mut self, now: Time) {
        if let Some((_, at)) = &mut self.recent {
            *at = now;
        }
    }

    /// Returns `true` if the minimum is too old and must be measured again.
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    pub(super) fn get(&self) -> Option<Span> {
        self.least.map(|(least, _)| least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn ms(n: u64) -> Option<Span> {
        Some(Span::from_millis(n))
    }

    #[test]
    fn the_least_counts_for_ten_seconds_and_is_measured_again_after_five() {
        let mut rtt = MinRtt::default();
        rtt.acknowledge(None, at(0));
        assert_eq!((rtt.get(), rtt.is_due()), (None, false));
        rtt.acknowledge(ms(40), at(100));
        rtt.acknowledge(ms(60), at(5_100));
        assert_eq!((rtt.get(), rtt.is_due()), (ms(40), false));
        rtt.acknowledge(ms(60), at(5_101));
        assert_eq!((rtt.get(), rtt.is_due()), (ms(40), true));
        rtt.acknowledge(ms(50), at(10_100));
        assert_eq!(rtt.get(), ms(40));
        rtt.acknowledge(ms(55), at(10_101));
        assert_eq!(rtt.get(), ms(50));
    }

    #[test]
    fn probe_postpones_the_next_one() {
        let mut rtt = MinRtt::default();
        rtt.acknowledge(ms(40), at(0));
        rtt.probed(at(5_000));
        rtt.acknowledge(ms(60), at(9_000));
        assert!(!rtt.is_due());
    }
}
