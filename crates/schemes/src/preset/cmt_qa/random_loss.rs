//! Window part of CMT-QA's optimal retransmission policy, ORP (Xu et al. 2013, Algorithm 3): a loss that looks random leaves the
//! window unchanged, "until loss happens consecutively".
//!
//! It wraps a control instead of being a reduction rule of it. A control receives one loss event per window, and the second loss of
//! a window reveals that the first was not random.

use anabranch_core::policy::{
    CongestionControl, Context, Event, EventKind, EventSet, LossCause, PathFacts, Reason, View,
};
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::congestion::Wrapper;
use crate::congestion::cut::halving;
use crate::definition::{ChoiceParameter, Equation, Values};

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "Algorithm 3, lines 2 to 5",
        rule: "rtt_i / cwnd_i >= Q_i and not consecutive: cwnd stays",
        file: file!(),
    },
    Equation {
        name: "Algorithm 3, lines 6 to 9",
        rule: "T3: ssthresh = max(cwnd / 2, 4 MTU), cwnd = MTU",
        file: halving::FILE,
    },
    Equation {
        name: "Algorithm 3, lines 10 to 13",
        rule: "missing reports: ssthresh = max(cwnd / 2, 4 MTU), cwnd = ssthresh",
        file: halving::FILE,
    },
];

pub(super) const ALGORITHM_3: ChoiceParameter<Reading> = ChoiceParameter {
    name: "algorithm-3",
    options: &[("else", Reading::Else), ("printed", Reading::Printed)],
    default: "else",
    about: "orp: windows are reduced only by losses that do not count as random, or, as printed, by all",
    source: "Xu 2013, section 6 and Algorithm 3",
};

pub(super) const CONSECUTIVE: ChoiceParameter<Consecutive> = ChoiceParameter {
    name: "consecutive",
    options: &[
        ("rtt", Consecutive::RoundTrip),
        ("window", Consecutive::Window),
        ("never", Consecutive::Never),
    ],
    default: "rtt",
    about: "orp: two losses are consecutive within SRTT, or with less than an acknowledged window between them, or never",
    source: "Xu 2013, section 6",
};

pub(super) const LOSS_RTT: ChoiceParameter<RoundTrip> = ChoiceParameter {
    name: "loss-rtt",
    options: &[("srtt", RoundTrip::Smoothed), ("latest", RoundTrip::Latest)],
    default: "srtt",
    about: "orp: round-trip time that is compared with Q",
    source: "Xu 2013, Algorithm 3, line 2",
};

/// Condition under which a loss is consecutive to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consecutive {
    /// At most SRTT lies between them.
    RoundTrip,
    /// Less than a window was acknowledged on the path between them.
    Window,
    /// No two losses are consecutive.
    Never,
}

/// Reading of Algorithm 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Rule of the text: the reductions apply to losses that do not look random.
    Else,
    /// Printed algorithm: the reductions apply regardless of the test, which then has no effect.
    Printed,
}

/// Round-trip time that is compared with Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// Smoothed round-trip time.
    Smoothed,
    /// Latest sample.
    Latest,
}

/// Choices where the publication is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomLossRules {
    /// Condition for consecutive losses.
    pub consecutive: Consecutive,
    /// Reading of the reductions.
    pub reading: Reading,
    /// Round-trip time rtt_i.
    pub rtt: RoundTrip,
    /// Set if a T3 expiry may count as random too.
    pub timeouts_may_be_random: bool,
}

impl RandomLossRules {
    pub(super) fn from_values(values: &Values) -> Self {
        RandomLossRules {
            consecutive: CONSECUTIVE.get(values),
            reading: ALGORITHM_3.get(values),
            rtt: LOSS_RTT.get(values),
            timeouts_may_be_random: values.switch("excuse-t3"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// Time at which the latest loss was detected.
    latest: Option<Time>,
    acked_since: ChunkBytes,
    /// Set if it was consecutive to another loss.
    consecutive: bool,
    /// Set while the inner control has not received the loss event of the current window.
    deemed_random: bool,
    /// Time of the latest loss event passed to the inner control.
    forwarded_at: Option<Time>,
}

/// Withholds losses that look random from the inner control.
#[derive(Clone)]
pub struct RandomLoss {
    rules: RandomLossRules,
    paths: [History; MAX_PATHS],
}

/// Algorithm 3, line 2: returns `true` if rtt_i / cwnd_i >= Q_i, both in seconds per byte. The window is then within the measured
/// capacity of the path, so it did not cause the loss.
pub(crate) fn passes_random_test(rtt: Option<Span>, cwnd: ChunkBytes, q: Option<f64>) -> bool {
    let (Some(rtt), Some(q)) = (rtt, q) else { return false };
    !cwnd.is_zero() && rtt.as_secs_f64() / cwnd.get() as f64 >= q
}

/// Returns the reason for which a loss does not count as random.
fn why(consecutive: bool, path: &PathFacts) -> Reason {
    match path.estimates.seconds_per_byte {
        _ if consecutive => Reason::rule("reduced: losses are consecutive"),
        Some(q) => Reason::figure("reduced: rtt / cwnd is below Q", "q_seconds_per_byte", q),
        None => Reason::rule("reduced: Q is unknown"),
    }
}

impl RandomLoss {
    /// Creates the wrapper before any loss.
    pub fn new(rules: RandomLossRules) -> Self {
        RandomLoss { rules, paths: [History::default(); MAX_PATHS] }
    }

    fn note(&mut self, id: PathId, inner: &dyn CongestionControl, view: &View<'_>) {
        let (facts, cwnd) = (view.path(id), inner.window(id).cwnd);
        let before = self.paths[id.index()];
        let consecutive = before.latest.is_some_and(|latest| match self.rules.consecutive {
            Consecutive::RoundTrip => view.now.since(latest) <= facts.rtt.smoothed.unwrap_or(facts.rto),
            Consecutive::Window => before.acked_since < cwnd,
            Consecutive::Never => false,
        });
        let latest = Some(view.now);
        self.paths[id.index()] = History { latest, acked_since: ChunkBytes::ZERO, consecutive, ..before };
    }

    fn is_random(&self, inner: &dyn CongestionControl, facts: &PathFacts) -> bool {
        let rtt = match self.rules.rtt {
            RoundTrip::Smoothed => facts.rtt.smoothed,
            RoundTrip::Latest => facts.rtt.latest,
        };
        let cwnd = inner.window(facts.id).cwnd;
        self.rules.reading == Reading::Else
            && !self.paths[facts.id.index()].consecutive
            && passes_random_test(rtt, cwnd, facts.estimates.seconds_per_byte)
    }

    /// Handles a lost chunk. If the loss of its window counted as random and this one does not, the window is reduced now.
    fn lost(
        &mut self,
        id: PathId,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) {
        self.note(id, inner, view);
        if self.paths[id.index()].deemed_random && !self.is_random(inner, view.path(id)) {
            self.forward_loss(id, LossCause::FastRetransmit, inner, view, context);
        }
    }

    fn loss_event(
        &mut self,
        id: PathId,
        cause: LossCause,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) {
        let history = self.paths[id.index()];
        if cause == LossCause::FastRetransmit && history.forwarded_at == Some(view.now) {
            // The inner control received the event when the chunk was declared lost.
            return;
        }
        // For T3 the event precedes the losses of chunks.
        if cause == LossCause::Timeout || history.latest != Some(view.now) {
            self.note(id, inner, view);
        }
        let excusable = cause == LossCause::FastRetransmit || self.rules.timeouts_may_be_random;
        if excusable && self.is_random(inner, view.path(id)) {
            self.paths[id.index()].deemed_random = true;
        } else {
            self.forward_loss(id, cause, inner, view, context);
        }
    }

    fn forward_loss(
        &mut self,
        path: PathId,
        cause: LossCause,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) {
        let history = &mut self.paths[path.index()];
        history.deemed_random = false;
        history.forwarded_at = Some(view.now);
        let consecutive = history.consecutive;
        inner.on_event(&Event::LossEvent { path, cause }, view, context);
        if cause == LossCause::FastRetransmit && self.rules.reading == Reading::Else {
            let window = inner.window(path);
            inner.set_window(path, window, why(consecutive, view.path(path)), view);
        }
    }
}

impl Wrapper for RandomLoss {
    fn copied(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn events(&self) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::Acked, EventKind::Lost, EventKind::LossEvent])
    }

    fn on_event(
        &mut self,
        event: &Event<'_>,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) {
        match *event {
            // A chunk that was only moved is not a loss, so Algorithm 3 does not apply.
            Event::LossEvent { path, cause: cause @ (LossCause::FastRetransmit | LossCause::Timeout) } => {
                return self.loss_event(path, cause, inner, view, context);
            }
            Event::PathAdded(path) => self.paths[path.index()] = History::default(),
            Event::Acked(acked) => self.paths[acked.path.index()].acked_since += acked.bytes,
            _ => {}
        }
        inner.on_event(event, view, context);
        if let Event::Lost { path, cause: LossCause::FastRetransmit, .. } = *event {
            self.lost(path, inner, view, context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{GrowthGate, WindowControl, Wrapped};
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::{AckedTransmission, SendStamps};
    use anabranch_core::profile::Profile;

    const RULES: RandomLossRules = RandomLossRules {
        consecutive: Consecutive::RoundTrip,
        reading: Reading::Else,
        rtt: RoundTrip::Smoothed,
        timeouts_may_be_random: false,
    };

    /// Window of the tests: ten times the initial window, so that its half exceeds four chunks.
    const CWND: u64 = 30 * M;

    struct Scene {
        world: World,
        control: Wrapped<RandomLoss>,
        sent: u64,
    }

    impl Scene {
        /// Creates a path with a window of 30 chunks, an SRTT of 100 ms, and a Q at which a loss counts as random.
        fn new(rules: RandomLossRules) -> Self {
            let profile = Profile {
                initial_window: anabranch_core::profile::InitialWindow {
                    chunks: 4,
                    target: bytes(CWND),
                    target_ipv6: bytes(CWND),
                },
                ..Profile::rfc9260_multipath()
            };
            let mut world = World::new(profile, 2);
            let inner = Box::new(WindowControl::new(GrowthGate::PseudoCumulative));
            let mut control = Wrapped::new(RandomLoss::new(rules), inner);
            for facts in &mut world.paths {
                facts.largest_chunk = bytes(CWND / 4);
                facts.rtt.smoothed = Some(Span::from_millis(100));
                facts.rtt.latest = Some(Span::from_millis(100));
                facts.estimates.seconds_per_byte = Some(0.1 / CWND as f64);
            }
            world.dispatch(&mut control, &Event::Established);
            world.paths.iter_mut().for_each(|facts| facts.largest_chunk = bytes(M));
            let scene = Scene { world, control, sent: 0 };
            assert_eq!(scene.cwnd(), CWND);
            scene
        }

        fn cwnd(&self) -> u64 {
            self.control.window(path(0)).cwnd.get()
        }

        fn set_q(&mut self, q: f64) {
            self.world.paths[0].estimates.seconds_per_byte = Some(q);
        }

        fn after_ms(&mut self, ms: u64) -> &mut Self {
            self.world.now += Span::from_millis(ms);
            self
        }

        fn chunk(&mut self, cause: LossCause) -> &mut Self {
            self.sent += 1;
            let lost = Event::Lost {
                path: path(0),
                tsn: self.sent,
                bytes: bytes(M),
                sent_at: Time::default(),
                cause,
            };
            self.world.dispatch(&mut self.control, &lost);
            self
        }

        fn event(&mut self, cause: LossCause) -> &mut Self {
            self.world.dispatch(&mut self.control, &Event::LossEvent { path: path(0), cause });
            self
        }

        /// Loses one chunk by fast retransmit, the first of its window.
        fn lose(&mut self) -> u64 {
            self.chunk(LossCause::FastRetransmit).event(LossCause::FastRetransmit).cwnd()
        }

        /// Expires T3: the event precedes the chunks.
        fn time_out(&mut self) -> u64 {
            self.event(LossCause::Timeout).chunk(LossCause::Timeout).chunk(LossCause::Timeout).cwnd()
        }

        fn ack(&mut self, size: u64) {
            let acked = AckedTransmission {
                path: path(0),
                tsn: 900,
                bytes: bytes(size),
                stamps: SendStamps::default(),
                sent_once: true,
                certain: true,
                cumulative: true,
                sack_path: Some(path(0)),
            };
            self.world.dispatch(&mut self.control, &Event::Acked(&acked));
        }
    }

    #[test]
    fn the_test_of_line_2_on_both_sides_and_at_equality() {
        // 100 ms / 10,000 B = 10 us per byte.
        let rtt = Some(Span::from_millis(100));
        let random = |q| passes_random_test(rtt, bytes(10_000), Some(q));
        assert!(random(9.9e-6) && random(0.1 / 10_000.0) && !random(10.1e-6));
        assert!(random(0.0));
    }

    #[test]
    fn untestable_loss_is_not_random() {
        let rtt = Some(Span::from_millis(100));
        assert!(!passes_random_test(None, bytes(10_000), Some(1e-6)));
        assert!(!passes_random_test(rtt, bytes(10_000), None));
        assert!(!passes_random_test(rtt, bytes(0), Some(1e-6)));
    }

    #[test]
    fn a_random_loss_leaves_the_window() {
        assert_eq!(Scene::new(RULES).lose(), CWND);
    }

    #[test]
    fn a_loss_to_congestion_halves_it() {
        // Lines 10 to 13: ssthresh = max(cwnd / 2, 4 MTU), cwnd = ssthresh.
        let mut scene = Scene::new(RULES);
        scene.set_q(0.11 / CWND as f64);
        assert_eq!(scene.lose(), CWND / 2);
        assert_eq!(scene.control.window(path(0)).ssthresh, bytes(CWND / 2));
        for _ in 0..5 {
            scene.after_ms(1000).set_q(1.0);
            scene.lose();
        }
        assert_eq!(scene.cwnd(), 4 * M);
    }

    #[test]
    fn the_reason_says_why_it_was_not_random() {
        let reason = |scene: &Scene| scene.control.last_reason(path(0));
        let mut scene = Scene::new(RULES);
        scene.set_q(1.0);
        scene.lose();
        let below = Reason::figure("reduced: rtt / cwnd is below Q", "q_seconds_per_byte", 1.0);
        assert_eq!(reason(&scene), below);
        scene.lose();
        assert_eq!(reason(&scene), below, "a second event at one moment is the first");
        scene.after_ms(1).lose();
        assert_eq!(reason(&scene).rule, "reduced: losses are consecutive");
        let mut scene = Scene::new(RULES);
        scene.world.paths[0].estimates.seconds_per_byte = None;
        scene.lose();
        assert_eq!(reason(&scene).rule, "reduced: Q is unknown");
        let mut scene = Scene::new(RULES);
        scene.time_out();
        assert_eq!(reason(&scene).rule, "T3 expired");
    }

    #[test]
    fn timeout_leaves_one_chunk_despite_random_loss() {
        // Lines 6 to 9: ssthresh = max(cwnd / 2, 4 MTU), cwnd = MTU.
        let mut scene = Scene::new(RULES);
        assert_eq!(scene.time_out(), M);
        assert_eq!(scene.control.window(path(0)).ssthresh, bytes(CWND / 2));
    }

    #[test]
    fn random_timeout_keeps_the_window_if_configured() {
        let mut scene = Scene::new(RandomLossRules { timeouts_may_be_random: true, ..RULES });
        assert_eq!(scene.time_out(), CWND);
        assert_eq!(scene.after_ms(99).time_out(), M, "consecutive");
        let mut scene = Scene::new(RandomLossRules { timeouts_may_be_random: true, ..RULES });
        scene.set_q(1.0);
        assert_eq!(scene.time_out(), M);
    }

    #[test]
    fn literal_reading_reduces_the_window_at_every_loss() {
        let mut scene = Scene::new(RandomLossRules { reading: Reading::Printed, ..RULES });
        assert_eq!(scene.lose(), CWND / 2);
    }

    #[test]
    fn two_losses_within_a_round_trip_are_consecutive() {
        // SRTT is 100 ms.
        for (ms, cwnd) in [(100, CWND / 2), (101, CWND)] {
            let mut scene = Scene::new(RULES);
            assert_eq!(scene.lose(), CWND);
            assert_eq!(scene.after_ms(ms).lose(), cwnd, "{ms} ms later");
        }
    }

    #[test]
    fn a_second_loss_in_the_same_window_which_is_no_event_is_consecutive_too() {
        let mut scene = Scene::new(RULES);
        scene.lose();
        scene.after_ms(40).chunk(LossCause::FastRetransmit);
        assert_eq!(scene.cwnd(), CWND / 2);
        scene.after_ms(10).chunk(LossCause::FastRetransmit);
        assert_eq!(scene.cwnd(), CWND / 2, "once for one window");
    }

    #[test]
    fn two_chunks_that_one_sack_reports_are_consecutive() {
        let mut scene = Scene::new(RULES);
        scene.chunk(LossCause::FastRetransmit);
        assert_eq!(scene.lose(), CWND / 2);
    }

    #[test]
    fn a_window_that_answered_a_late_loss_does_not_answer_it_as_event_again() {
        let mut scene = Scene::new(RULES);
        scene.lose();
        // First loss of the next window: consecutive as a chunk, then reported as an event.
        assert_eq!(scene.after_ms(90).lose(), CWND / 2);
    }

    #[test]
    fn a_later_loss_in_an_excused_window_is_tested_again() {
        let mut scene = Scene::new(RULES);
        scene.lose();
        scene.after_ms(101).chunk(LossCause::FastRetransmit);
        assert_eq!(scene.cwnd(), CWND);
        scene.after_ms(101).set_q(1.0);
        scene.chunk(LossCause::FastRetransmit);
        assert_eq!(scene.cwnd(), CWND / 2);
    }

    #[test]
    fn a_loss_after_a_time_out_is_consecutive() {
        let mut scene = Scene::new(RULES);
        scene.time_out();
        scene.set_q(0.0);
        assert_eq!(
            scene.after_ms(50).lose(),
            4 * M,
            "the standard's floor for ssthresh, and cwnd = ssthresh"
        );
    }

    #[test]
    fn losses_less_than_a_window_apart_may_be_consecutive() {
        for (acked, cwnd) in [(CWND - 1, CWND / 2), (CWND, CWND)] {
            let mut scene = Scene::new(RandomLossRules { consecutive: Consecutive::Window, ..RULES });
            assert_eq!(scene.lose(), CWND);
            scene.ack(acked);
            assert_eq!(scene.after_ms(5000).lose(), cwnd, "{acked} B");
        }
    }

    #[test]
    fn no_losses_are_consecutive_if_configured() {
        let mut scene = Scene::new(RandomLossRules { consecutive: Consecutive::Never, ..RULES });
        assert_eq!([scene.lose(), scene.lose(), scene.after_ms(1).lose()], [CWND; 3]);
    }

    #[test]
    fn the_latest_round_trip_time_may_be_held_against_q() {
        for (rtt, cwnd) in [(RoundTrip::Smoothed, CWND), (RoundTrip::Latest, CWND / 2)] {
            let mut scene = Scene::new(RandomLossRules { rtt, ..RULES });
            scene.world.paths[0].rtt.latest = Some(Span::from_millis(99));
            assert_eq!(scene.lose(), cwnd, "{rtt:?}");
        }
    }

    #[test]
    fn without_a_round_trip_time_losses_within_an_rto_are_consecutive() {
        let mut scene = Scene::new(RandomLossRules { rtt: RoundTrip::Latest, ..RULES });
        scene.world.paths[0].rtt.smoothed = None;
        scene.world.paths[0].rto = Span::from_secs(1);
        scene.lose();
        assert_eq!(scene.after_ms(1001).lose(), CWND);
        assert_eq!(scene.after_ms(1000).lose(), CWND / 2);
    }

    #[test]
    fn moved_chunk_is_answered_by_the_control_and_not_stored() {
        let mut scene = Scene::new(RULES);
        scene.chunk(LossCause::Rescheduled).event(LossCause::Rescheduled);
        assert_eq!(scene.cwnd(), CWND / 2);
        let mut scene = Scene::new(RULES);
        scene.chunk(LossCause::Rescheduled);
        assert_eq!(scene.lose(), CWND);
    }

    #[test]
    fn paths_are_judged_each_for_itself() {
        let mut scene = Scene::new(RULES);
        scene.lose();
        let other = Event::LossEvent { path: path(1), cause: LossCause::FastRetransmit };
        scene.world.dispatch(&mut scene.control, &other);
        assert_eq!(scene.control.window(path(1)).cwnd, bytes(CWND));
    }

    #[test]
    fn new_path_with_a_reused_id_has_no_losses() {
        let mut scene = Scene::new(RULES);
        scene.lose();
        scene.world.dispatch(&mut scene.control, &Event::PathAdded(path(0)));
        let cwnd = scene.cwnd();
        scene.set_q(0.0);
        assert_eq!(scene.lose(), cwnd);
    }
}
