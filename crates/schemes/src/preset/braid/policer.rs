//! Detection of policers: losses that grow with the rate.
//!
//! A policer drops packets above its rate and has no queue. Unlike the losses of a link, its losses vanish at a lower rate. So if
//! losses are frequent without a queue, the path is repeatedly slowed down for a short time, and the losses at both rates are
//! compared. If they grow with the rate, the rate of the path is its delivery rate.

use anabranch_core::time::{Rate, Span, Time};

use crate::definition::{Equation, text};
use crate::preset::braid::mode::TARGET_PACKETS;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "losses that grow with the rate",
    rule: text!(
        "congestion control limits the path, and of {} packets sent since the latest reduction and \
         within the window that it left, more are lost (a burst counts as one) than {} %, noise and {} \
         standard deviations; r = their delivery rate from the first loss on; test: paced at {} r for \
         {} phases and at {} r for one, {} times (up to {} while undecided), phase = max({} packets at \
         {} r, base); h of n_h and l of n_l packets are lost at the high and low rate; losses grow if l \
         / n_l < h / (2 n_h) and h - (h + l) n_h / n > {} sqrt((h + l) n_h n_l) / n, n = n_h + n_l: \
         cwnd = min(cwnd, {} rate base + {} M), and for {} the path is paced at the delivery rate of \
         the test; then at {} of it for {} packets, and after too many losses for {} again; noise = the \
         share lost at the low rate, in the {}, or in a test without growth, after which there is no \
         test for {}; T3, or {} base and {} without a \
         delivery, restart the count with packets sent after it",
        WATCHED,
        100.0 * MANY,
        DEVIATIONS,
        HIGH,
        PHASES - 1,
        LOW,
        PAIRS,
        MOST_PAIRS,
        PACKETS_A_PHASE,
        LOW,
        DEVIATIONS,
        HIGH,
        TARGET_PACKETS,
        PAUSE,
        HIGH,
        WATCHED,
        PAUSE,
        PAUSE,
        PAUSE,
        SILENT_ROUNDS,
        LEAST_SILENCE,
    ),
    file: file!(),
}];

/// Number of packets whose losses are evaluated together: of this many, three losses exceed [`MANY`].
const WATCHED: f64 = 128.0;
/// BBRLossThresh (draft-ietf-ccwg-bbr section 2.7): loss rate that BBR tolerates without slowing down.
const MANY: f64 = 0.02;
/// Number of pairs of phases: bursts of losses do not coincide with four.
const PAIRS: u64 = 4;
/// Maximum number of pairs, after which losses hardly grow.
const MOST_PAIRS: u64 = 16;
/// Packets per phase: with [`PAIRS`] 64 packets at the low rate, of which 4 are lost at one and a half times [`MANY`] and more.
const PACKETS_A_PHASE: f64 = 16.0;
/// Minimum phase: the lateness of a driver's timer.
const LEAST_PHASE: Span = Span::from_millis(1);
/// Low and high rate as factors of the path's rate. The high one is that of BBR's probes (draft-ietf-ccwg-bbr section 2.4,
/// ProbeBW_UP).
const LOW: f64 = 0.8;
pub(super) const HIGH: f64 = 1.25;
/// Two phases at the high rate and one at the low one, in which a token bucket gathers less than the high phases consume.
const PHASES: u64 = 3;
/// Number of standard deviations: exceeded by chance once in 700 tests.
const DEVIATIONS: f64 = 3.0;
/// Pause between probes. BBR probes for bandwidth every 2 to 3 s (draft-ietf-ccwg-bbr section 5.3.3.5.3). A probe at a policer with
/// a small bucket loses some tens of packets; every 10 s that does not exceed BBR's tolerance.
const PAUSE: Span = Span::from_secs(10);

/// Time without a delivery, in round trips and at least, after which packets were lost to an outage. A policer passes some packets.
const SILENT_ROUNDS: u64 = 2;
const LEAST_SILENCE: Span = Span::from_millis(500);

/// Outcomes of packets.
#[derive(Clone, Copy, Debug, Default)]
struct LossStatistics {
    all: f64,
    /// Number of bursts of losses. On a link with burst losses, single packets lost at one rate but not at the other are chance.
    lost: f64,
}

impl LossStatistics {
    fn add(&mut self, outcome: Outcome) {
        self.all += 1.0;
        self.lost += f64::from(u8::from(outcome == Outcome::Lost));
    }

    fn share_of_lost(self) -> f64 {
        self.lost / self.all.max(1.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    Lost,
    /// Lost together with the packet before it.
    LostInBurst,
}

/// Outcome of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) sent_at: Time,
    pub(super) bytes: f64,
    pub(super) outcome: Outcome,
}

impl Fate {
    fn delivered_bytes(&self) -> f64 {
        if self.outcome == Outcome::Delivered { self.bytes } else { 0.0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    began: Time,
    phase: Span,
    pairs: u64,
    /// Delivery rate before the trial, in bytes per second.
    rate: f64,
    delivered_bytes: f64,
    high: LossStatistics,
    low: LossStatistics,
}

impl Trial {
    fn new(began: Time, rate: f64, packet: f64, base: Span) -> Self {
        let seconds = PACKETS_A_PHASE * packet / (LOW * rate);
        let phase =
            Span::from_nanos((seconds.min(PAUSE.as_secs_f64()) * 1e9) as u64).max(base).max(LEAST_PHASE);
        let (high, low) = (LossStatistics::default(), LossStatistics::default());
        Trial { began, phase, pairs: PAIRS, rate, delivered_bytes: 0.0, high, low }
    }

    fn rate_at(&self, at: Time) -> f64 {
        if self.is_low(at) { LOW * self.rate } else { HIGH * self.rate }
    }

    fn ends(&self) -> Time {
        self.began + self.phase.times(PHASES * self.pairs)
    }

    fn is_low(&self, at: Time) -> bool {
        (at.since(self.began).as_nanos() / self.phase.as_nanos()) % PHASES == PHASES - 1
    }

    fn take(&mut self, fate: &Fate) {
        if fate.sent_at < self.began {
            return;
        }
        self.delivered_bytes += fate.delivered_bytes();
        let side = if self.is_low(fate.sent_at) { &mut self.low } else { &mut self.high };
        side.add(fate.outcome);
    }

    /// Returns `true` if losses at the high rate are twice as frequent, and significantly so.
    fn losses_grow(&self) -> bool {
        let (high, low) = (self.high.all, self.low.all);
        let (n, lost) = (high + low, self.high.lost + self.low.lost);
        let chance = DEVIATIONS * (lost * high * low).sqrt() / n;
        self.is_loss_growing() && self.high.lost - lost * high / n > chance
    }

    fn is_loss_growing(&self) -> bool {
        2.0 * self.low.lost * self.high.all < self.high.lost * self.low.all
    }

    /// Returns `true` if losses seem to grow, but not significantly yet.
    fn is_undecided(&self) -> bool {
        self.pairs < MOST_PAIRS && self.is_loss_growing() && !self.losses_grow()
    }

    /// Returns the loss rate that is independent of the rate.
    fn noise(&self) -> f64 {
        let all = LossStatistics { all: self.low.all + self.high.all, lost: self.low.lost + self.high.lost };
        if self.losses_grow() { self.low.share_of_lost() } else { all.share_of_lost() }
    }

    /// Returns the delivery rate during the trial, in bytes per second.
    fn delivered_rate(&self) -> f64 {
        self.delivered_bytes / self.phase.times(PHASES * self.pairs).as_secs_f64()
    }
}

/// Packets since a point in time, until enough are counted.
#[derive(Clone, Copy, Debug)]
struct Watch {
    since: Time,
    /// Time at which the first loss was detected.
    lossy_from: Option<Time>,
    losses: LossStatistics,
    delivered_bytes: f64,
}

impl Watch {
    fn new(since: Time) -> Self {
        Watch { since, lossy_from: None, losses: LossStatistics::default(), delivered_bytes: 0.0 }
    }

    fn take(&mut self, fate: &Fate, now: Time) {
        if fate.sent_at < self.since {
            return;
        }
        if fate.outcome == Outcome::Lost && self.losses.lost == 0.0 {
            (self.lossy_from, self.delivered_bytes) = (Some(now), 0.0);
        }
        self.losses.add(fate.outcome);
        self.delivered_bytes += fate.delivered_bytes();
    }

    fn is_over(&self) -> bool {
        self.losses.all >= WATCHED
    }

    /// Returns `true` if losses exceed this noise, chance, and the tolerated loss rate.
    fn has_excess_loss(&self, noise: f64) -> bool {
        self.losses.lost > (noise + MANY) * WATCHED + DEVIATIONS * (noise * WATCHED).sqrt()
    }

    /// Returns the delivery rate in bytes per second since the first loss, which empties a token bucket; `None` if it is unknown.
    fn rate(&self, now: Time) -> Option<f64> {
        let seconds = now.since(self.lossy_from?).as_secs_f64();
        (self.delivered_bytes > 0.0 && seconds > 0.0).then(|| self.delivered_bytes / seconds)
    }
}

/// State of the test. Rates are in bytes per second.
#[derive(Clone, Copy, Debug)]
enum State {
    Watching(Watch),
    Trial(Trial),
    /// Losses do not grow with the rate.
    Pause {
        until: Time,
    },
    /// Losses grow above this rate.
    Held {
        until: Time,
        rate: f64,
        losses: LossStatistics,
    },
    /// The rate is raised to check whether losses still grow.
    Probe {
        rate: f64,
        watch: Watch,
    },
}

/// Policer test of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicerTest {
    state: State,
    /// Known loss rate that is independent of the rate.
    noise: f64,
    /// Time of the latest delivery.
    delivered_at: Option<Time>,
}

impl PolicerTest {
    pub(super) fn new(now: Time) -> Self {
        PolicerTest { state: State::Watching(Watch::new(now)), noise: 0.0, delivered_at: None }
    }

    /// Restarts the measurement, because congestion control does not limit the path or the path was silent.
    pub(super) fn restart(&mut self, now: Time) {
        if matches!(self.state, State::Watching(_) | State::Trial(_) | State::Probe { .. }) {
            self.state = State::Watching(Watch::new(now));
        }
    }

    /// Processes the outcome of a packet. Returns the rate of the path in bytes per second once the test has determined it.
    pub(super) fn take(&mut self, fate: &Fate, base: Span, now: Time) -> Option<f64> {
        self.note_delivery(fate, base, now);
        let noise = self.noise;
        match &mut self.state {
            State::Watching(watch) => {
                watch.take(fate, now);
                if watch.is_over() {
                    let trial = watch.rate(now).filter(|_| watch.has_excess_loss(noise));
                    self.state = trial.map_or(State::Watching(Watch::new(now)), |rate| {
                        State::Trial(Trial::new(now, rate, fate.bytes, base))
                    });
                }
            }
            State::Trial(trial) => {
                trial.take(fate);
                if fate.sent_at >= trial.ends() {
                    return self.end_trial(now);
                }
            }
            State::Pause { until } if now >= *until => self.state = State::Watching(Watch::new(now)),
            State::Held { until, rate, losses } => {
                losses.add(fate.outcome);
                if now >= *until {
                    self.noise = losses.share_of_lost();
                    self.state = State::Probe { rate: *rate, watch: Watch::new(now) };
                }
            }
            State::Probe { rate, watch } => {
                watch.take(fate, now);
                if watch.has_excess_loss(noise) {
                    self.state =
                        State::Held { until: now + PAUSE, rate: *rate, losses: LossStatistics::default() };
                } else if watch.is_over() {
                    self.state = State::Watching(Watch::new(now));
                }
            }
            State::Pause { .. } => {}
        }
        None
    }

    /// Restarts the measurement at the first delivery after an outage, with packets sent from then on.
    fn note_delivery(&mut self, fate: &Fate, base: Span, now: Time) {
        if fate.outcome != Outcome::Delivered {
            return;
        }
        let silence = base.times(SILENT_ROUNDS).max(LEAST_SILENCE);
        if self.delivered_at.is_some_and(|at| now.since(at) > silence) {
            self.restart(now);
        }
        self.delivered_at = Some(now);
    }

    fn end_trial(&mut self, now: Time) -> Option<f64> {
        let State::Trial(trial) = &mut self.state else { return None };
        if trial.is_undecided() {
            trial.pairs += 1;
            return None;
        }
        let until = now + PAUSE;
        self.noise = trial.noise();
        let rate = trial.losses_grow().then(|| trial.delivered_rate());
        self.state = rate.map_or(State::Pause { until }, |rate| State::Held {
            until,
            rate,
            losses: LossStatistics::default(),
        });
        rate
    }

    /// Returns the maximum sending rate now.
    pub(super) fn ceiling(&self, now: Time) -> Option<Rate> {
        let bytes = match self.state {
            State::Trial(trial) => trial.rate_at(now),
            State::Held { rate, .. } => rate,
            State::Probe { rate, .. } => HIGH * rate,
            State::Watching(_) | State::Pause { .. } => return None,
        };
        Some(Rate::from_bps((8.0 * bytes) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: f64 = 1000.0;
    const BASE: Span = Span::from_millis(20);

    fn at(seconds: f64) -> Time {
        Time::from_nanos((seconds * 1e9) as u64)
    }

    /// Path that is used at the rate that the test permits, at most this many bytes per second.
    struct Link {
        test: PolicerTest,
        now: f64,
        most: f64,
        found: Vec<f64>,
        sent: f64,
        lost: f64,
        in_burst: bool,
    }

    impl Link {
        fn new(most: f64) -> Self {
            let (test, found) = (PolicerTest::new(at(0.0)), Vec::new());
            Link { test, now: 0.0, most, found, sent: 0.0, lost: 0.0, in_burst: false }
        }

        /// Sends until this time. `loses` receives the rate in bytes per second and returns `true` if a packet is lost.
        fn run(&mut self, until: f64, mut loses: impl FnMut(f64) -> bool) {
            while self.now < until {
                let ceiling =
                    self.test.ceiling(at(self.now)).map_or(self.most, |rate| rate.as_bps() as f64 / 8.0);
                let rate = ceiling.min(self.most);
                self.now += PACKET / rate;
                let lost = loses(rate);
                let outcome = match (lost, self.in_burst) {
                    (false, _) => Outcome::Delivered,
                    (true, false) => Outcome::Lost,
                    (true, true) => Outcome::LostInBurst,
                };
                self.in_burst = lost;
                let fate = Fate { sent_at: at(self.now), bytes: PACKET, outcome };
                self.found.extend(self.test.take(&fate, BASE, at(self.now + 0.02)));
                (self.sent, self.lost) = (self.sent + 1.0, self.lost + f64::from(u8::from(lost)));
            }
        }
    }

    /// Loses packets above the rate, after a bucket of 20 packets is empty.
    fn policer(rate: f64) -> impl FnMut(f64) -> bool {
        let mut tokens = 20.0;
        move |sent: f64| {
            tokens = (tokens + rate / sent).min(20.0);
            let passes = tokens >= 1.0;
            tokens -= if passes { 1.0 } else { 0.0 };
            !passes
        }
    }

    /// Loses every n-th packet at any rate.
    fn every(n: u64) -> impl FnMut(f64) -> bool {
        let mut count = 0;
        move |_| {
            count += 1;
            count % n == 0
        }
    }

    #[test]
    fn detected_policer_causes_few_further_losses() {
        let mut link = Link::new(500_000.0);
        let mut policer = policer(200_000.0);
        link.run(3.0, &mut policer);
        assert!((link.found[0] / 200_000.0 - 1.0).abs() < 0.05, "{:?}", link.found);
        (link.sent, link.lost) = (0.0, 0.0);
        link.run(60.0, &mut policer);
        assert!(link.lost / link.sent < 0.03, "{} of {}", link.lost, link.sent);
        assert!(link.sent * PACKET / 57.0 > 0.97 * 200_000.0);
    }

    #[test]
    fn losses_at_any_rate_are_no_ceiling() {
        for n in [10, 25, 45] {
            let mut link = Link::new(500_000.0);
            link.run(60.0, every(n));
            assert!(link.found.is_empty(), "{n}");
            assert!(link.sent * PACKET / 60.0 > 0.98 * 500_000.0, "a test costs little: {n}");
        }
    }

    #[test]
    fn losses_in_bursts_at_any_rate_are_no_ceiling() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut lost = false;
            // Gilbert-Elliott: 5 % are lost, five in a row on average.
            let mut burst = |_: f64| {
                lost = random.f64() < if lost { 0.8 } else { 0.0105 };
                lost
            };
            let mut link = Link::new(500_000.0);
            link.run(60.0, &mut burst);
            assert!(link.found.is_empty(), "seed {seed}");
        }
    }

    #[test]
    fn first_delivery_after_silence_restarts_the_count() {
        // With 100 packets per second, a tenth of them lost, the test begins after 128 packets.
        for (silence, is_tested) in [(0.4, true), (0.6, false)] {
            let mut link = Link::new(100.0 * PACKET);
            link.run(1.0, every(10));
            link.now += silence;
            link.run(1.5 + silence, every(10));
            assert_eq!(link.test.ceiling(at(link.now)).is_some(), is_tested, "{silence}");
        }
    }

    #[test]
    fn few_losses_are_not_tested() {
        let mut link = Link::new(500_000.0);
        link.run(20.0, every(100));
        assert!(matches!(link.test.state, State::Watching(_)));
        assert!(link.test.ceiling(at(20.0)).is_none());
    }

    #[test]
    fn ceiling_is_removed_when_more_is_delivered() {
        let mut link = Link::new(500_000.0);
        link.run(5.0, policer(200_000.0));
        assert!(link.test.ceiling(at(5.0)).is_some());
        link.run(20.0, |_| false);
        assert!(link.test.ceiling(at(20.0)).is_none());
    }

    #[test]
    fn a_path_that_something_else_limits_is_not_tested() {
        let mut link = Link::new(500_000.0);
        let mut policer = policer(200_000.0);
        for step in 1..100 {
            link.run(0.05 * f64::from(step), &mut policer);
            link.test.restart(at(link.now));
        }
        assert!(link.found.is_empty());
    }

    #[test]
    fn total_loss_is_no_policer_rate() {
        let mut link = Link::new(500_000.0);
        link.run(5.0, |_| true);
        assert!(link.found.is_empty() && link.test.ceiling(at(5.0)).is_none());
    }
}
