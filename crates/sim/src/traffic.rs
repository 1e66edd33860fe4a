//! Background traffic: packets with a size but no content that pass a list of links and are then discarded.

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;

use crate::error::{ConfigError, require};
use crate::rng::Stream;

/// Times at which a source sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficKind {
    /// Constant rate. The first packet is sent at the start.
    Cbr {
        /// Rate in bits on the wire.
        rate: Rate,
        /// Largest relative change of a gap, drawn uniformly: 0 keeps gaps equal, 0.5 is `random_` in ns-2.
        jitter: f64,
    },
    /// Exponentially distributed gaps. The first packet is sent one gap after the start.
    Poisson {
        /// Mean rate in bits on the wire.
        rate: Rate,
    },
    /// Bursts at a constant rate. The number of packets of a burst and the pauses between bursts are Pareto distributed as in ns-2.
    /// The first packet is sent one pause and one interval after the start. A burst is rounded to whole packets and has at least
    /// one.
    ParetoOnOff {
        /// Rate within a burst, in bits on the wire.
        rate: Rate,
        /// Mean length of a burst.
        burst: Span,
        /// Mean length of a pause.
        idle: Span,
        /// Shape of both distributions, above 1. Near 1, the mean converges slowly.
        shape: f64,
    },
}

/// A source of background traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficConfig {
    /// Unique name. The source's random stream belongs to it.
    pub name: String,
    /// Times at which the source sends.
    pub kind: TrafficKind,
    /// Bytes sent at a time, on the wire.
    pub packet: WireBytes,
    /// Maximum packet size, on the wire. A larger `packet` is sent as several packets back to back, of which the last is the
    /// remainder. An ns-2 source on its default UDP agent has 1000 bytes here.
    pub fragment: Option<WireBytes>,
    /// Start time. Published ns-2 scripts often use 0.1 s.
    pub start: Time,
    /// End time, at and after which the source does not send.
    pub stop: Option<Time>,
}

impl TrafficConfig {
    /// Returns a source that sends unfragmented packets during the whole run.
    pub fn new(name: impl Into<String>, kind: TrafficKind, packet: WireBytes) -> Self {
        TrafficConfig { name: name.into(), kind, packet, fragment: None, start: Time::ZERO, stop: None }
    }

    /// Sets the maximum packet size.
    pub fn with_fragment(self, fragment: WireBytes) -> Self {
        TrafficConfig { fragment: Some(fragment), ..self }
    }

    /// Sets the start time.
    pub fn starting_at(self, start: Time) -> Self {
        TrafficConfig { start, ..self }
    }

    /// Sets the end time.
    pub fn stopping_at(self, stop: Time) -> Self {
        TrafficConfig { stop: Some(stop), ..self }
    }

    fn check(&self) -> Result<(), ConfigError> {
        require(!self.packet.is_zero(), "packet", "must be more than zero bytes")?;
        require(self.fragment.is_none_or(|f| !f.is_zero()), "fragment", "must be more than zero bytes")?;
        let (TrafficKind::Cbr { rate, .. }
        | TrafficKind::Poisson { rate }
        | TrafficKind::ParetoOnOff { rate, .. }) = self.kind;
        require(rate.as_bps() > 0, "rate", "must be more than zero")?;
        require(interval(self.packet, rate) >= 1.0, "rate", "must leave a nanosecond from packet to packet")?;
        if let TrafficKind::ParetoOnOff { burst, idle, shape, .. } = self.kind {
            require(!burst.is_zero(), "burst", "must be more than zero")?;
            require(!idle.is_zero(), "idle", "must be more than zero")?;
            require(shape > 1.0 && shape.is_finite(), "shape", "must be above 1")?;
        }
        Ok(())
    }
}

/// State of a traffic source.
#[derive(Clone)]
pub(crate) struct Source {
    config: TrafficConfig,
    stream: Stream,
    /// Nanoseconds from one packet to the next at the nominal rate.
    interval: f64,
    carry: u64,
    /// Packets left in the current burst.
    left: u64,
}

impl Source {
    pub(crate) fn new(config: TrafficConfig, stream: Stream) -> Result<Self, ConfigError> {
        config.check()?;
        let (TrafficKind::Cbr { rate, .. }
        | TrafficKind::Poisson { rate }
        | TrafficKind::ParetoOnOff { rate, .. }) = config.kind;
        let interval = interval(config.packet, rate);
        Ok(Source { config, stream, interval, carry: 0, left: 0 })
    }

    /// Returns `true` if each gap is drawn, so that packets of two sources are sent in the same nanosecond only by chance.
    pub(crate) fn draws_gaps(&self) -> bool {
        match self.config.kind {
            TrafficKind::Cbr { jitter, .. } => jitter > 0.0,
            TrafficKind::Poisson { .. } | TrafficKind::ParetoOnOff { .. } => true,
        }
    }

    /// Returns the time of the first packet, unless the source has stopped by then.
    pub(crate) fn first(&mut self) -> Option<Time> {
        let start = self.config.start;
        match self.config.kind {
            TrafficKind::Cbr { .. } => self.before_stop(start),
            TrafficKind::Poisson { .. } | TrafficKind::ParetoOnOff { .. } => self.after(start),
        }
    }

    /// Returns the time of the packet after the one sent at `now`.
    #[inline]
    pub(crate) fn after(&mut self, now: Time) -> Option<Time> {
        let gap = self.gap();
        self.before_stop(now + gap)
    }

    #[inline]
    fn before_stop(&self, time: Time) -> Option<Time> {
        self.config.stop.is_none_or(|stop| time < stop).then_some(time)
    }

    #[inline]
    fn gap(&mut self) -> Span {
        match self.config.kind {
            TrafficKind::Cbr { rate, jitter: 0.0 } => self.equal_gap(rate),
            TrafficKind::Cbr { jitter, .. } => {
                nanos(self.interval * (1.0 + jitter * (2.0 * self.stream.unit() - 1.0)))
            }
            TrafficKind::Poisson { .. } => nanos(self.stream.exponential(self.interval)),
            TrafficKind::ParetoOnOff { burst, idle, shape, .. } => self.pareto_gap(burst, idle, shape),
        }
    }

    #[inline(never)]
    fn equal_gap(&mut self, rate: Rate) -> Span {
        let (span, carry) = rate.serialise(self.config.packet.get(), self.carry);
        self.carry = carry;
        span
    }

    #[inline(never)]
    fn pareto_gap(&mut self, burst: Span, idle: Span, shape: f64) -> Span {
        let scale = (shape - 1.0) / shape;
        let mut gap = self.interval;
        if self.left == 0 {
            let packets = burst.as_nanos() as f64 / self.interval;
            self.left = ((self.stream.pareto(packets * scale, shape) + 0.5) as u64).max(1);
            gap += self.stream.pareto(idle.as_nanos() as f64 * scale, shape);
        }
        self.left -= 1;
        nanos(gap)
    }

    /// Returns the sizes of the packets that are sent together.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = WireBytes> + use<> {
        let whole = self.config.packet;
        let most = self.config.fragment.unwrap_or(whole);
        let mut rest = whole;
        std::iter::from_fn(move || {
            let size = rest.min(most);
            rest -= size;
            (!size.is_zero()).then_some(size)
        })
    }
}

/// Returns the nanoseconds that `packet` takes at `rate`.
fn interval(packet: WireBytes, rate: Rate) -> f64 {
    packet.get() as f64 * 8e9 / rate.as_bps() as f64
}

/// Rounds to the nearest nanosecond, and halves up, as [`f64::round`] does. That would be a function call, since not every
/// processor has an instruction for it.
fn nanos(ns: f64) -> Span {
    // A float-to-integer cast saturates, and numbers beyond its range have no fraction.
    let whole = ns as u64;
    let fraction = ns - whole as f64;
    Span::from_nanos(whole.saturating_add(u64::from(fraction >= 0.5)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seeds;

    fn source(kind: TrafficKind, packet: u64) -> Source {
        let config =
            TrafficConfig::new("t", kind, WireBytes::new(packet)).starting_at(Time::from_nanos(100_000_000));
        Source::new(config, Seeds::new(9, 0).stream(&["traffic", "t"])).unwrap()
    }

    #[test]
    fn nanoseconds_are_rounded_as_floats_are() {
        let mut random = Seeds::new(4, 0).stream(&["nanos"]);
        let edges = [0.0, 0.49999999999999994, 0.5, 1.5, 2.5, 4503599627370495.5, 9007199254740993.0, 1.8e19];
        let odd = [f64::INFINITY, f64::NAN, -0.7, f64::NEG_INFINITY, f64::MAX];
        let drawn = (0..10_000).map(|i| random.unit() * 10_u64.pow(i % 20) as f64);
        for ns in edges.into_iter().chain(odd).chain(drawn) {
            assert_eq!(nanos(ns).as_nanos(), ns.round() as u64, "{ns}");
        }
    }

    fn times(source: &mut Source, n: usize) -> Vec<u64> {
        let first = source.first();
        std::iter::successors(first, |&now| source.after(now)).take(n).map(Time::as_nanos).collect()
    }

    fn rate_of(times: &[u64], packet: u64) -> f64 {
        (times.len() - 1) as f64 * packet as f64 * 8e9 / (times[times.len() - 1] - times[0]) as f64
    }

    #[test]
    fn cbr_starts_at_the_start_and_does_not_drift() {
        let rate = Rate::from_bps(300_000);
        let times = times(&mut source(TrafficKind::Cbr { rate, jitter: 0.0 }, 500), 300_001);
        assert_eq!(times[..3], [100_000_000, 113_333_333, 126_666_666]);
        assert_eq!(times[300_000], 100_000_000 + 4_000_000_000_000);
    }

    #[test]
    fn jitter_keeps_to_its_bounds_and_to_the_rate() {
        let rate = Rate::from_bps(1_000_000);
        let times = times(&mut source(TrafficKind::Cbr { rate, jitter: 0.5 }, 500), 100_000);
        assert_eq!(times[0], 100_000_000);
        assert!(times.windows(2).all(|w| (2_000_000..=6_000_000).contains(&(w[1] - w[0]))));
        assert!((rate_of(&times, 500) / 1e6 - 1.0).abs() < 0.005);
    }

    #[test]
    fn poisson_meets_its_rate_and_variance() {
        let times =
            times(&mut source(TrafficKind::Poisson { rate: Rate::from_bps(8_000_000) }, 1000), 400_000);
        let gaps: Vec<_> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.005 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn pareto_bursts_meet_the_mean_rate() {
        let rate = Rate::from_bps(2_000_000);
        let (burst, idle) = (Span::from_millis(500), Span::from_millis(250));
        let mut source = source(TrafficKind::ParetoOnOff { rate, burst, idle, shape: 2.5 }, 500);
        let times = times(&mut source, 2_000_000);
        // A pause is one interval longer than drawn, and the interval that ends the burst is missing, so the means add up.
        let expected = 2e6 * 500.0 / 750.0;
        let got = rate_of(&times, 500);
        assert!((got / expected - 1.0).abs() < 0.02, "{got}");
        let interval = 2_000_000;
        let idle_scale = 150_000_000;
        assert!(times[0] >= 100_000_000 + interval + idle_scale);
        assert!(times.windows(2).all(|w| w[1] - w[0] == interval || w[1] - w[0] >= interval + idle_scale));
    }

    #[test]
    fn short_bursts_hold_one_packet() {
        let (burst, idle) = (Span::from_nanos(1), Span::from_millis(1));
        let mut source = source(
            TrafficKind::ParetoOnOff { rate: Rate::from_bps(8_000_000), burst, idle, shape: 1.5 },
            1000,
        );
        let times = times(&mut source, 1000);
        assert!(times.windows(2).all(|w| w[1] - w[0] > 1_333_000));
    }

    #[test]
    fn large_packets_go_in_fragments() {
        let rate = Rate::from_bps(1_000_000);
        let sizes = |packet, fragment: Option<u64>| {
            let config = TrafficConfig::new("t", TrafficKind::Poisson { rate }, WireBytes::new(packet));
            let config = TrafficConfig { fragment: fragment.map(WireBytes::new), ..config };
            let source = Source::new(config, Seeds::new(9, 0).stream(&["t"])).unwrap();
            source.sizes().map(WireBytes::get).collect::<Vec<_>>()
        };
        assert_eq!(sizes(1500, Some(1000)), [1000, 500]);
        assert_eq!(sizes(2000, Some(1000)), [1000, 1000]);
        assert_eq!(sizes(900, Some(1000)), [900]);
        assert_eq!(sizes(1500, None), [1500]);
    }

    #[test]
    fn no_packet_is_sent_after_the_stop() {
        let kind = TrafficKind::Cbr { rate: Rate::from_bps(8_000_000), jitter: 0.0 };
        let config =
            TrafficConfig::new("t", kind, WireBytes::new(1000)).stopping_at(Time::from_nanos(3_000_000));
        let mut source = Source::new(config, Seeds::new(9, 0).stream(&["t"])).unwrap();
        assert_eq!(times(&mut source, 100), [0, 1_000_000, 2_000_000]);
    }

    #[test]
    fn impossible_sources_are_refused() {
        let rate = Rate::from_bps(1);
        let (burst, idle) = (Span::from_millis(1), Span::from_millis(1));
        for (kind, packet) in [
            (TrafficKind::Cbr { rate: Rate::from_bps(0), jitter: 0.0 }, 1),
            (TrafficKind::Poisson { rate }, 0),
            (TrafficKind::Poisson { rate: Rate::from_bps(100_000_000_000) }, 1),
            (TrafficKind::ParetoOnOff { rate, burst, idle, shape: 1.0 }, 1),
            (TrafficKind::ParetoOnOff { rate, burst, idle, shape: f64::NAN }, 1),
            (TrafficKind::ParetoOnOff { rate, burst: Span::ZERO, idle, shape: 1.5 }, 1),
        ] {
            let config = TrafficConfig::new("t", kind, WireBytes::new(packet));
            assert!(Source::new(config, Seeds::new(9, 0).stream(&["t"])).is_err(), "{kind:?}");
        }
    }
}
