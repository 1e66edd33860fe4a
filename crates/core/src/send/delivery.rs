//! Delivery accounts of a path: stamps of sent packets, and the samples that acknowledgements make of them (draft-ietf-ccwg-bbr
//! section 4.1, whose names the comments give).

use crate::policy::{DeliverySample, Limiter, SendStamps};
use crate::send::PathBytes;
use crate::time::{Rate, Span, Time};
use crate::units::ChunkBytes;

/// Transmission that a SACK acknowledges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) stamps: SendStamps,
    /// `true` if the chunk was sent once, so that the acknowledgement is not ambiguous.
    pub(crate) certain: bool,
    /// `true` if the SACK arrived on the path of the transmission.
    pub(crate) same_way: bool,
}

/// State from which a path's samples are computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// Time of the latest delivery, or of the first transmission after an idle period (C.delivered_time).
    delivered_at: Time,
    /// Send time of the latest delivered packet: start of the current flight (C.first_send_time).
    first_sent_at: Time,
    /// Limit of the path's sending at the end of the latest send opportunity.
    limiter: Limiter,
    /// Limit other than congestion control, which stamps show until this many bytes have been delivered (C.app_limited).
    limited_until: Option<(Limiter, ChunkBytes)>,
    /// Newest transmission that the current SACK acknowledges unambiguously.
    newest: Option<Delivered>,
}

impl Delivery {
    pub(super) fn begin(now: Time) -> Self {
        Delivery { delivered_at: now, first_sent_at: now, ..Delivery::default() }
    }

    /// Returns the stamps of a transmission of this size. `counts` do not include it yet.
    pub(super) fn stamp(&mut self, bytes: ChunkBytes, counts: &PathBytes, now: Time) -> SendStamps {
        if counts.in_flight.is_zero() {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        SendStamps {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered: counts.delivered,
            delivered_at: self.delivered_at,
            in_flight: counts.in_flight + bytes,
            lost: counts.lost,
            limiter: self.limited_until.map_or(self.limiter, |(limiter, _)| limiter),
        }
    }

    /// Records a delivered transmission, which `counts` include.
    pub(super) fn deliver(&mut self, delivered: Delivered, counts: &PathBytes, now: Time) {
        let sent_at = delivered.stamps.sent_at;
        self.delivered_at = now;
        self.first_sent_at = self.first_sent_at.max(sent_at);
        self.limited_until.take_if(|(_, until)| counts.delivered > *until);
        if delivered.certain && self.newest.is_none_or(|newest| newest.stamps.sent_at <= sent_at) {
            self.newest = Some(delivered);
        }
    }

    /// Takes the sample of the SACK that was processed. `least_rtt` is the minimum RTT of the path.
    pub(super) fn sample(
        &mut self,
        counts: &PathBytes,
        least_rtt: Option<Span>,
        now: Time,
    ) -> Option<DeliverySample> {
        let Delivered { stamps, same_way, .. } = self.newest.take()?;
        let delivered = counts.delivered - stamps.delivered;
        let send_elapsed = stamps.sent_at.since(stamps.first_sent_at);
        let ack_elapsed = now.since(stamps.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let plausible = !interval.is_zero() && least_rtt.is_none_or(|least| interval >= least);
        Some(DeliverySample {
            stamps,
            delivered,
            send_elapsed,
            ack_elapsed,
            lost: counts.lost - stamps.lost,
            rtt: same_way.then(|| now.since(stamps.sent_at)),
            rate: plausible.then(|| rate(delivered, interval)),
        })
    }

    /// Records the path's limit at the end of a send opportunity.
    pub(super) fn limit(&mut self, limiter: Limiter, counts: &PathBytes) {
        self.limiter = limiter;
        if !limiter.is_congestion_control() {
            self.limited_until = Some((limiter, counts.delivered + counts.in_flight));
        }
    }
}

fn rate(bytes: ChunkBytes, interval: Span) -> Rate {
    let bps = u128::from(bytes.get()) * 8_000_000_000 / u128::from(interval.as_nanos().max(1));
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: ChunkBytes = ChunkBytes::new(1_250);

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// Path on which a test sends and acknowledges at given times.
    #[derive(Default)]
    struct Script {
        delivery: Delivery,
        counts: PathBytes,
    }

    impl Script {
        fn send(&mut self, at: u64) -> SendStamps {
            let stamps = self.delivery.stamp(CHUNK, &self.counts, ms(at));
            self.counts.in_flight += CHUNK;
            stamps
        }

        fn acknowledge(&mut self, stamps: &[SendStamps], at: u64) -> Option<DeliverySample> {
            for &stamps in stamps {
                self.counts.delivered += CHUNK;
                self.counts.in_flight -= CHUNK;
                let delivered = Delivered { stamps, certain: true, same_way: true };
                self.delivery.deliver(delivered, &self.counts, ms(at));
            }
            self.delivery.sample(&self.counts, None, ms(at))
        }
    }

    fn kbps(sample: Option<DeliverySample>) -> Option<u64> {
        sample.and_then(|sample| sample.rate).map(|rate| rate.as_bps() / 1_000)
    }

    /// One packet every 10 ms at 1 Mbit/s; the round-trip time is 100 ms.
    #[test]
    fn a_steady_path_is_measured_at_its_rate() {
        let (mut path, mut sent, mut rates) = (Script::default(), Vec::new(), Vec::new());
        for n in 0..40_usize {
            if let Some(answered) = n.checked_sub(10) {
                rates.extend(kbps(path.acknowledge(&sent[answered..=answered], 10 * n as u64)));
            }
            sent.push(path.send(10 * n as u64));
        }
        assert!(rates[..10].iter().all(|rate| *rate < 1_000), "not a whole round trip: {rates:?}");
        assert!(rates[10..].iter().all(|rate| *rate == 1_000), "{rates:?}");
    }

    #[test]
    fn acknowledgements_that_come_together_do_not_raise_the_rate() {
        let mut path = Script::default();
        let sent: Vec<SendStamps> = (0..20).map(|n| path.send(10 * n)).collect();
        assert_eq!(kbps(path.acknowledge(&sent[..10], 190)), Some(10 * 10_000 / 190));
        // The second ten are acknowledged together, one packet interval after the first ten.
        let sample = path.acknowledge(&sent[10..], 200).expect("they were sent once");
        assert_eq!((sample.delivered, sample.send_elapsed), (CHUNK.times(20), Span::from_millis(190)));
        assert!(kbps(Some(sample)) <= Some(1_052), "{sample:?}");
    }

    #[test]
    fn an_idle_time_is_in_no_sample() {
        let mut path = Script::default();
        let first = path.send(0);
        assert_eq!(kbps(path.acknowledge(&[first], 100)), Some(100));
        let late = path.send(60_000);
        let sample = path.acknowledge(&[late], 60_100).expect("it was sent once");
        assert_eq!((sample.ack_elapsed, kbps(Some(sample))), (Span::from_millis(100), Some(100)));
        assert_eq!(sample.rtt, Some(Span::from_millis(100)));
    }

    #[test]
    fn limiter_of_a_path_marks_all_chunks_sent_until_delivery() {
        let mut path = Script::default();
        let [first, second] = [path.send(0), path.send(10)];
        assert_eq!(first.limiter, Limiter::Window);
        path.delivery.limit(Limiter::Application, &path.counts);
        path.delivery.limit(Limiter::Pacing, &path.counts);
        let third = path.send(50);
        assert_eq!(third.limiter, Limiter::Application, "the gap before it is in its sample");
        path.acknowledge(&[first, second], 100);
        assert_eq!(path.send(101).limiter, Limiter::Application);
        path.acknowledge(&[third], 150);
        assert_eq!(path.send(151).limiter, Limiter::Pacing);
    }

    #[test]
    fn a_copy_gives_no_sample_and_a_time_shorter_than_any_round_trip_no_rate() {
        let mut path = Script::default();
        let [once, twice] = [path.send(0), path.send(0)];
        path.counts.delivered += CHUNK;
        path.delivery.deliver(
            Delivered { stamps: twice, certain: false, same_way: true },
            &path.counts,
            ms(20),
        );
        assert_eq!(path.delivery.sample(&path.counts, None, ms(20)), None);
        path.counts.delivered += CHUNK;
        path.delivery.deliver(
            Delivered { stamps: once, certain: true, same_way: false },
            &path.counts,
            ms(30),
        );
        let sample =
            path.delivery.sample(&path.counts, Some(Span::from_millis(40)), ms(30)).expect("sent once");
        assert_eq!((sample.rate, sample.rtt, sample.delivered), (None, None, CHUNK.times(2)));
    }

    #[test]
    fn sample_has_bytes_lost_since_and_bytes_in_flight() {
        let mut path = Script::default();
        let sent: Vec<SendStamps> = (0..4).map(|n| path.send(n)).collect();
        path.counts.lost += CHUNK;
        let sample = path.acknowledge(&sent[3..], 100).expect("it was sent once");
        assert_eq!((sample.lost, sample.stamps.in_flight), (CHUNK, CHUNK.times(4)));
    }
}
