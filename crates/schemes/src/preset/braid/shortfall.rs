//! Periods of the [`Supervisor`]: goodput in order, and the expected goodput of each path alone.

use anabranch_core::MAX_PATHS;
use anabranch_core::PathSet;
use anabranch_core::policy::{Event, PathFacts, SendKind, View};
use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};
use crate::preset::braid::in_order::{buffer, rounds_per_window, seconds};
use crate::preset::braid::round_trips::MEMORY;
use crate::preset::braid::supervisor::{Period, Supervisor};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "shortfall",
    rule: text!(
        "goodput: the larger of the bytes that the cumulative TSN passed and the bytes delivered in a period; \
         expected of a path alone: min(rate of {}, bytes delivered in the period / time in which its congestion control limited it, N / (base (2 - (1 - loss rate)^n))); \
         a period is max({} SRTT of the path with the highest, {}), and is not judged if no data waited, \
         the reader kept more than {} of the peer's buffer, or a path changed state",
        MEMORY,
        PERIOD_ROUNDS,
        SHORTEST_PERIOD,
        KEPT_BY_READER,
    ),
    file: file!(),
}];

/// Duration of a period, in round trips of the path with the highest expected goodput alone.
const PERIOD_ROUNDS: u64 = 10;
/// Minimum duration of a period.
const SHORTEST_PERIOD: Span = Span::from_millis(500);
/// Share of the peer's first window above which its application limits the goodput.
const KEPT_BY_READER: f64 = 0.5;

/// Figures of a path at the start of the period, and the time in which congestion control limited it since.
#[derive(Clone, Copy, Debug, Default)]
struct PathUse {
    delivered: u64,
    limited: Span,
}

/// Observer of the association, which passes each period to its supervisor.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortfall {
    supervisor: Supervisor,
    /// New bytes sent since the association began.
    sent: u64,
    /// Bytes in order at the start of the period; `None` if no period has begun.
    began: Option<(Time, u64)>,
    updated: Time,
    paths: [PathUse; MAX_PATHS],
}

impl Shortfall {
    /// Returns the paths that get no data.
    pub(super) fn withdrawn(&self) -> PathSet {
        self.supervisor.withdrawn()
    }

    /// Processes an event.
    pub(super) fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match event {
            Event::Sent(sent) if sent.kind == SendKind::New => self.sent += sent.bytes.get(),
            Event::PathAdded(path) | Event::PathRebound(path) => {
                self.supervisor.forget(*path);
                self.began = None;
            }
            Event::PathState { .. } => {
                self.began = None;
                self.supervisor.readmit_all();
            }
            Event::SackDone(_) => self.observe(view),
            _ => {}
        }
    }

    fn observe(&mut self, view: &View<'_>) {
        let in_order = self.in_order(view);
        let Some((began, before)) = self.began.filter(|_| !is_limited_by_application(view)) else {
            return self.begin(in_order, view);
        };
        let passed = view.now.since(self.updated);
        self.updated = view.now;
        for (facts, used) in view.paths.iter().zip(&mut self.paths) {
            if facts.limiter.is_congestion_control() {
                used.limited += passed;
            }
        }
        let elapsed = view.now.since(began);
        if elapsed < SHORTEST_PERIOD {
            return;
        }
        let alone = self.alone(elapsed.as_secs_f64(), view);
        let best = view.active().max_by(|a, b| alone[a.id.index()].total_cmp(&alone[b.id.index()]));
        let Some(round_trip) = best.and_then(|path| path.rtt.smoothed) else { return };
        if elapsed < round_trip.times(PERIOD_ROUNDS) {
            return;
        }
        let progress = in_order.saturating_sub(before).max(self.delivered(view));
        let goodput = progress as f64 / elapsed.as_secs_f64();
        let mut period = Period { now: view.now, goodput, alone: [None; MAX_PATHS] };
        view.active().for_each(|path| period.alone[path.id.index()] = Some(alone[path.id.index()]));
        self.supervisor.judge(&period);
        self.begin(in_order, view);
    }

    fn begin(&mut self, in_order: u64, view: &View<'_>) {
        (self.began, self.updated) = (Some((view.now, in_order)), view.now);
        for (facts, used) in view.paths.iter().zip(&mut self.paths) {
            *used = PathUse { delivered: facts.delivered.get(), limited: Span::ZERO };
        }
    }

    /// Returns the bytes that the cumulative TSN has passed.
    fn in_order(&self, view: &View<'_>) -> u64 {
        let held: u64 = view.paths.iter().map(|path| (path.held - path.bound).get()).sum();
        self.sent.saturating_sub(held)
    }

    /// Returns the bytes delivered in the period, in any order. Their excess over those in order is bounded by the receive buffer, so
    /// that it hides no lasting shortfall, and it keeps data that waits for a slow path from counting as one.
    fn delivered(&self, view: &View<'_>) -> u64 {
        let by_path = view.paths.iter().zip(&self.paths);
        by_path.map(|(facts, used)| facts.delivered.get().saturating_sub(used.delivered)).sum()
    }

    /// Returns the expected goodput of each path alone, in bytes per second.
    fn alone(&self, elapsed_s: f64, view: &View<'_>) -> [f64; MAX_PATHS] {
        let mut alone = [0.0; MAX_PATHS];
        for (facts, used) in view.paths.iter().zip(&self.paths) {
            alone[facts.id.index()] = used.alone(elapsed_s, facts, view);
        }
        alone
    }
}

impl PathUse {
    fn alone(&self, elapsed_s: f64, facts: &PathFacts, view: &View<'_>) -> f64 {
        let (Some(rate), Some(base)) = (facts.estimates.largest_rate, facts.estimates.propagation) else {
            return 0.0;
        };
        let mut alone = rate.as_bps() as f64 / 8.0;
        let limited_s = self.limited.as_secs_f64().min(elapsed_s);
        if limited_s > 0.0 {
            alone = alone.min(facts.delivered.get().saturating_sub(self.delivered) as f64 / limited_s);
        }
        let window = buffer(view);
        alone.min(window / (seconds(base) * rounds_per_window(facts, window)))
    }
}

/// Returns `true` if the application of either side limits the goodput.
fn is_limited_by_application(view: &View<'_>) -> bool {
    let first = view.association.peer_window_initial.get() as f64;
    view.association.queued_bytes == 0 || buffer(view) < (1.0 - KEPT_BY_READER) * first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{Limiter, LivenessProof, SackDone, SentTransmission, StateCause};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Rate;
    use anabranch_core::units::WindowBytes;

    const TICK_MS: u64 = 20;

    /// Association of two paths with round trips of 50 ms that carry 1,000 and 100 kB/s, and a buffer of 1 MB.
    struct Supervised {
        world: World,
        shortfall: Shortfall,
    }

    impl Supervised {
        fn new() -> Self {
            let mut world = World::new(Profile::net().multipath(), 2);
            for (facts, kbyte_per_s) in world.paths.iter_mut().zip([1000, 100]) {
                facts.rtt.smoothed = Some(Span::from_millis(50));
                facts.estimates.propagation = facts.rtt.smoothed;
                facts.estimates.largest_rate = Some(Rate::from_bps(8000 * kbyte_per_s));
                facts.limiter = Limiter::PeerWindow;
            }
            world.association.queued_bytes = 1 << 20;
            world.association.peer_window = WindowBytes::new(1_000_000);
            world.association.peer_window_initial = WindowBytes::new(1_000_000);
            Supervised { world, shortfall: Shortfall::default() }
        }

        /// Lets this time pass while each path delivers these kB/s, all of it in order, and returns the number of withdrawn paths.
        fn pass(&mut self, ms: u64, kbyte_per_s: [u64; 2]) -> usize {
            for _ in 0..ms / TICK_MS {
                self.world.now += Span::from_millis(TICK_MS);
                for (at, rate) in kbyte_per_s.into_iter().enumerate() {
                    let new = bytes(rate * TICK_MS);
                    let sent = SentTransmission {
                        path: path(at),
                        previous_path: None,
                        tsn: 7,
                        bytes: new,
                        kind: SendKind::New,
                    };
                    self.event(&Event::Sent(&sent));
                    self.world.paths[at].delivered += new;
                }
                self.event(&Event::SackDone(&SackDone { paths: &[], new_cumulative: true, cumulative: 9 }));
            }
            self.shortfall.withdrawn().len()
        }

        fn event(&mut self, event: &Event<'_>) {
            self.shortfall.on_event(event, &self.world.view());
        }
    }

    #[test]
    fn one_period_below_nine_tenths_of_the_best_path_withdraws_the_other() {
        for (kbyte_per_s, withdrawn) in [([850, 40], 1), ([860, 60], 0)] {
            let mut association = Supervised::new();
            assert_eq!(association.pass(500, kbyte_per_s), 0);
            assert_eq!(association.pass(40, kbyte_per_s), withdrawn, "{kbyte_per_s:?}");
        }
    }

    #[test]
    fn period_lasts_ten_round_trips_of_the_best_path() {
        let mut association = Supervised::new();
        association.world.paths[0].rtt.smoothed = Some(Span::from_millis(200));
        assert_eq!(association.pass(2000, [10, 10]), 0);
        assert_eq!(association.pass(40, [10, 10]), 1);
    }

    #[test]
    fn data_that_waits_for_earlier_data_counts_until_the_buffer_is_full() {
        for (kbyte_per_s, withdrawn) in [([900, 100], 0), ([10, 10], 1)] {
            let mut association = Supervised::new();
            association.pass(40, kbyte_per_s);
            association.world.paths[1].held = bytes(500_000);
            association.world.association.peer_window = WindowBytes::new(500_000);
            assert_eq!(association.pass(500, kbyte_per_s), withdrawn, "{kbyte_per_s:?}");
        }
    }

    #[test]
    fn application_without_data_causes_no_shortfall() {
        let mut association = Supervised::new();
        for _ in 0..20 {
            association.world.association.queued_bytes = 0;
            assert_eq!(association.pass(20, [10, 0]), 0);
            association.world.association.queued_bytes = 1;
            assert_eq!(association.pass(400, [10, 0]), 0);
        }
    }

    #[test]
    fn reader_that_keeps_half_of_the_buffer_causes_no_shortfall() {
        for (free, withdrawn) in [(499_999, 0), (500_000, 1)] {
            let mut association = Supervised::new();
            association.world.association.peer_window = WindowBytes::new(free);
            assert_eq!(association.pass(540, [10, 10]), withdrawn, "{free}");
        }
    }

    #[test]
    fn small_buffer_limits_the_expectation() {
        // 10 kB in 50 ms are 200 kB/s.
        for (kbyte_per_s, withdrawn) in [([190, 0], 0), ([170, 0], 1)] {
            let mut association = Supervised::new();
            association.world.association.peer_window = WindowBytes::new(10_000);
            association.world.association.peer_window_initial = WindowBytes::new(10_000);
            assert_eq!(association.pass(540, kbyte_per_s), withdrawn, "{kbyte_per_s:?}");
        }
    }

    #[test]
    fn lower_rate_of_a_path_in_full_use_causes_no_shortfall() {
        for (limiter, withdrawn) in [(Limiter::Window, 0), (Limiter::Pacing, 0), (Limiter::Scheduler, 1)] {
            let mut association = Supervised::new();
            association.world.paths[0].limiter = limiter;
            assert_eq!(association.pass(540, [300, 0]), withdrawn, "{limiter:?}");
        }
    }

    #[test]
    fn change_of_state_restarts_the_period_and_readmits_all_paths() {
        let mut association = Supervised::new();
        association.pass(500, [10, 10]);
        let cause = StateCause::Proof(LivenessProof::Heartbeat);
        let (from, to) = (PathState::Active, PathState::PotentiallyFailed);
        association.event(&Event::PathState { path: path(1), from, to, cause });
        assert_eq!(association.pass(500, [10, 10]), 0);
        assert_eq!(association.pass(40, [10, 10]), 1);
        association.world.paths[0].state = to;
        association.event(&Event::PathState { path: path(0), from, to, cause });
        assert_eq!(association.shortfall.withdrawn().len(), 0);
    }
}
