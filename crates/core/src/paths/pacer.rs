//! Pacer of a path: the generic cell rate algorithm (ITU-T I.371, virtual scheduling), whose cell is a transmission and whose limit
//! is the burst. The only state is the time until which the sent packets occupy the path at its rate. No tokens have to be added
//! while time passes, and in any interval the path sends at most the bytes of its rate and one burst.

use crate::time::{Rate, Span, Time};
use crate::units::ChunkBytes;

/// Largest burst in bytes, so that a driver can pass it to the operating system in one call: UDP segmentation offload takes 64
/// segments and 64 KiB with headers.
const BURST_BYTES: ChunkBytes = ChunkBytes::new(60_000);
const BURST_PACKETS: u64 = 60;

/// Pacing state of one path. It decides about time only, not about windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Pacer {
    rate: Option<Rate>,
    /// Bytes of a full packet; while less of the burst is left, the path waits.
    packet: ChunkBytes,
    burst: ChunkBytes,
    busy_until: Time,
    /// Remainder of the latest division, so that rounding errors do not accumulate.
    carry: u64,
}

impl Pacer {
    /// Sets a rate above zero; `None` ends pacing. `timer` is the largest delay with which the driver wakes the endpoint: the bytes
    /// that the path could have sent in that time may be sent at once.
    pub(crate) fn set(&mut self, rate: Option<Rate>, packet: ChunkBytes, timer: Span, now: Time) {
        if self.rate == rate && self.packet == packet {
            return;
        }
        let Some(rate) = rate else {
            *self = Pacer::default();
            return;
        };
        let late = ChunkBytes::new(carried(rate, timer));
        let burst = (packet + late).min(BURST_BYTES).min(packet.times(BURST_PACKETS)).max(packet);
        // Sent packets occupy the path for their time at the new rate, at most for that of a burst.
        let waits = self.busy_until.since(now);
        let scaled = self.rate.map_or(Span::ZERO, |old| rescaled(waits, old, rate));
        let longest = rate.serialise(burst.get(), 0).0;
        let busy_until = now + scaled.min(longest);
        *self = Pacer { rate: Some(rate), packet, burst, busy_until, carry: 0 };
    }

    /// Occupies the path with a transmission.
    pub(crate) fn occupy(&mut self, bytes: ChunkBytes, now: Time) {
        let Some(rate) = self.rate else { return };
        if self.busy_until < now {
            (self.busy_until, self.carry) = (now, 0);
        }
        let (span, carry) = rate.serialise(bytes.get(), self.carry);
        self.busy_until += span;
        self.carry = carry;
    }

    /// Returns the time at which the next packet may be sent, if it is later than now.
    pub(crate) fn held_until(&self, now: Time) -> Option<Time> {
        let rate = self.rate?;
        let tolerance = rate.serialise((self.burst - self.packet).get(), 0).0;
        let free_at = Time::from_nanos(self.busy_until.as_nanos().saturating_sub(tolerance.as_nanos()));
        (free_at > now).then_some(free_at)
    }
}

/// Returns the bytes that a rate carries in a time span.
fn carried(rate: Rate, span: Span) -> u64 {
    let bytes = u128::from(rate.as_bps()) * u128::from(span.as_nanos()) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn rescaled(span: Span, from: Rate, to: Rate) -> Span {
    let nanos = u128::from(span.as_nanos()) * u128::from(from.as_bps()) / u128::from(to.as_bps().max(1));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: ChunkBytes = ChunkBytes::new(1_250);
    /// Rate at which a packet takes 10 ms.
    const RATE: Rate = Rate::from_bps(1_000_000);

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    fn paced(timer: Span) -> Pacer {
        let mut pacer = Pacer::default();
        pacer.set(Some(RATE), PACKET, timer, ms(0));
        pacer
    }

    #[test]
    fn an_exact_timer_spaces_packets_by_their_time_at_the_rate() {
        let mut pacer = paced(Span::ZERO);
        for n in 0..5 {
            assert_eq!(pacer.held_until(ms(10 * n)), None);
            pacer.occupy(PACKET, ms(10 * n));
            assert_eq!(pacer.held_until(ms(10 * n)), Some(ms(10 * (n + 1))));
        }
    }

    #[test]
    fn half_a_packet_takes_half_the_time() {
        let mut pacer = paced(Span::ZERO);
        pacer.occupy(PACKET.over(2), ms(0));
        assert_eq!(pacer.held_until(ms(0)), Some(ms(5)));
    }

    #[test]
    fn a_pause_saves_no_more_than_a_burst() {
        let mut pacer = paced(Span::from_millis(20));
        let mut burst = |now| {
            let mut packets = 0;
            while pacer.held_until(now).is_none() {
                pacer.occupy(PACKET, now);
                packets += 1;
            }
            packets
        };
        assert_eq!([burst(ms(0)), burst(ms(10)), burst(ms(5_000))], [3, 1, 3]);
    }

    #[test]
    fn a_late_timer_costs_nothing_that_its_lateness_allows() {
        let mut pacer = paced(Span::from_millis(15));
        let mut packets = 0;
        for wake in (0..1_000).step_by(15).map(ms) {
            while pacer.held_until(wake).is_none() {
                pacer.occupy(PACKET, wake);
                packets += 1;
            }
        }
        assert!((99..=102).contains(&packets), "{packets} packets of 10 ms in a second");
    }

    #[test]
    fn another_rate_rescales_the_remaining_wait() {
        let mut pacer = paced(Span::ZERO);
        pacer.occupy(PACKET, ms(0));
        pacer.set(Some(Rate::from_bps(2_000_000)), PACKET, Span::ZERO, ms(2));
        assert_eq!(pacer.held_until(ms(2)), Some(ms(6)));
        pacer.set(Some(Rate::from_bps(500_000)), PACKET, Span::ZERO, ms(2));
        assert_eq!(pacer.held_until(ms(2)), Some(ms(18)));
        pacer.set(None, PACKET, Span::ZERO, ms(2));
        assert_eq!(pacer.held_until(ms(2)), None);
    }

    #[test]
    fn a_burst_at_a_high_rate_is_not_paid_off_at_a_low_one() {
        let mut pacer = Pacer::default();
        pacer.set(Some(Rate::from_bps(1_000_000_000)), PACKET, Span::from_millis(1), ms(0));
        for _ in 0..20 {
            pacer.occupy(PACKET, ms(0));
        }
        pacer.set(Some(RATE), PACKET, Span::ZERO, ms(0));
        assert_eq!(pacer.held_until(ms(0)), Some(ms(10)), "one packet's wait");
    }

    #[test]
    fn a_burst_fits_one_call_to_the_system() {
        for (packet, most) in [(1_250, 60_000), (544, 60 * 544), (8_984, 60_000), (65_000, 65_000)] {
            let mut pacer = Pacer::default();
            pacer.set(Some(Rate::from_bps(u64::MAX / 8)), ChunkBytes::new(packet), Span::from_secs(1), ms(0));
            assert_eq!(pacer.burst.get(), most);
        }
    }

    proptest! {
        /// Checks all intervals from one packet to a later one: the bytes sent are at most those of the rate and one burst.
        #[test]
        fn no_span_of_time_holds_more_than_its_rate_and_a_burst(
            kbps in 10..1_000_000_u64,
            timer_us in 0..3_000_u64,
            steps in prop::collection::vec((0..20_000_u64, 1..=1_250_u64), 1..80),
        ) {
            let rate = Rate::from_bps(kbps * 1_000);
            let mut pacer = Pacer::default();
            pacer.set(Some(rate), PACKET, Span::from_micros(timer_us), Time::ZERO);
            let (mut now, mut sent) = (Time::ZERO, Vec::new());
            for (wait_us, bytes) in steps {
                now += Span::from_micros(wait_us);
                while let Some(at) = pacer.held_until(now) {
                    prop_assert!(at > now);
                    now = at;
                }
                pacer.occupy(ChunkBytes::new(bytes), now);
                sent.push((now, bytes));
            }
            for (index, &(from, _)) in sent.iter().enumerate() {
                let mut total = 0;
                for &(to, bytes) in &sent[index..] {
                    total += bytes;
                    // A nanosecond for rounding.
                    let most = carried(rate, to.since(from) + Span::from_nanos(1)) + pacer.burst.get() + 1;
                    prop_assert!(total <= most, "{total} B of {most} B");
                }
            }
        }
    }
}
