//! Counters of the relayed traffic.

use anabranch_core::time::Span;
use anabranch_core::units::WireBytes;
use anabranch_sim::{Counters, Tally};

/// Number of datagrams and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Amount {
    /// Number of datagrams.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Bytes of payload and headers on the link.
    pub wire: WireBytes,
}

impl Amount {
    pub(crate) fn count(&mut self, payload: usize, overhead: WireBytes) {
        self.packets += 1;
        self.bytes += payload as u64;
        self.wire += overhead + WireBytes::new(payload as u64);
    }

    fn of(tally: Tally, overhead: WireBytes) -> Amount {
        let headers = overhead.get().saturating_mul(tally.packets);
        Amount { packets: tally.packets, bytes: tally.bytes.get().saturating_sub(headers), wire: tally.bytes }
    }
}

/// Counters of the datagrams of one direction, by outcome.
///
/// `offered` plus `duplicated` equals the sum of `delivered`, `lost`, `policed`, `overflowed`, `outage` and the datagrams still on
/// the link. `unsent` is a part of `delivered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Offered to the link.
    pub offered: Amount,
    /// Arrived at the far end of the link.
    pub delivered: Amount,
    /// Lost at random.
    pub lost: Amount,
    /// Dropped by a policer.
    pub policed: Amount,
    /// Dropped by a full queue.
    pub overflowed: Amount,
    /// Dropped because the link was down.
    pub outage: Amount,
    /// Copies made by the link.
    pub duplicated: Amount,
    /// Number of datagrams that are queued, in transmission, or propagating.
    pub on_the_way: u64,
    /// Delivered by the link, but refused by the system or addressed to a removed client.
    pub unsent: Amount,
    /// From clients for which there was no place; not offered to a link.
    pub refused: Amount,
    /// Larger than the MTU; not offered to a link.
    pub too_large: Amount,
    /// Delay between delivery by the link and transmission.
    pub lateness: Lateness,
}

impl Totals {
    pub(crate) fn of_link(counters: Counters, on_the_way: usize, overhead: WireBytes) -> Totals {
        let amount = |tally| Amount::of(tally, overhead);
        Totals {
            offered: amount(counters.entered),
            delivered: amount(counters.delivered),
            lost: amount(counters.lost),
            policed: amount(counters.policed),
            overflowed: amount(counters.overflowed),
            outage: amount(counters.outage),
            duplicated: amount(counters.duplicated),
            on_the_way: on_the_way as u64,
            ..Totals::default()
        }
    }
}

/// Delay of datagrams after the link delivered them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lateness {
    packets: u64,
    sum: Span,
    /// Maximum delay.
    pub most: Span,
}

impl Lateness {
    pub(crate) fn count(&mut self, late: Span) {
        self.packets += 1;
        self.sum += late;
        self.most = self.most.max(late);
    }

    /// Returns the mean delay, or zero if no datagram was sent.
    pub fn mean(&self) -> Span {
        self.sum.over(self.packets.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_what_headers_leave_of_the_wire_bytes() {
        let overhead = WireBytes::new(28);
        let tally = Tally { packets: 3, bytes: WireBytes::new(3 * 28 + 1000) };
        let mut counted = Amount::default();
        for payload in [0, 1, 999] {
            counted.count(payload, overhead);
        }
        assert_eq!(Amount::of(tally, overhead), counted);
        assert_eq!(counted.bytes, 1000);
    }

    #[test]
    fn lateness_has_a_mean_and_a_worst() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.mean(), Span::ZERO);
        lateness.count(Span::from_micros(10));
        lateness.count(Span::from_micros(30));
        assert_eq!((lateness.mean(), lateness.most), (Span::from_micros(20), Span::from_micros(30)));
    }
}
