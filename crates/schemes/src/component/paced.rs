//! `paced`: spaces the packets of a window over the round trip.
//!
//! Packets are sent at a multiple of cwnd / srtt instead of in bursts (RFC 9002 section 7.7; Linux paces TCP this way).

use anabranch_core::policy::{
    CongestionControl, Context, Event, EventKind, EventSet, Pacing, PathFacts, Policies, Reason, Slot, View,
    Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Time};
use anabranch_core::{MAX_PATHS, PathId};

use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values};

const fn percent(name: &'static str, default: u32, about: &'static str, source: &'static str) -> Parameter {
    let kind = Kind::Count { min: 100, max: 1_000 };
    Parameter { name, kind, unit: "%", default: Value::Number(default), about, source }
}

const CARD: Card = Card {
    summary: &[
        "The packets of a path are sent at a multiple of its window per smoothed round-trip time, instead of as",
        "fast as SACKs admit. Windows grow and shrink as they do without it. Packets are not paced before the",
        "first round-trip sample.",
    ],
    equations: &[&[Equation {
        name: "RFC 9002 section 7.7",
        rule: "rate = N * cwnd / srtt, with N = slow-start / 100 below half of ssthresh and avoidance / 100 from there on",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "What is the effect of a multiple of 100 %?",
            answer: "The window is never fully used, because the rate does not exceed that of acknowledgements. RFC 9002 \
                     therefore recommends a little more.",
            parameter: "avoidance",
        },
        Choice {
            question: "Does Max.Burst (RFC 9260 section 6.1 D) apply?",
            answer: "No: a paced path has no bursts for it to limit.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "paced",
    about: "Spaces the packets of a window over the round trip",
    source: "RFC 9002 section 7.7; Linux, tcp_update_pacing_rate",
    role: Role::Pacing,
    needs_multipath: false,
    parameters: &[
        percent("slow-start", 200, "rate in slow start, of cwnd per srtt", "Linux, tcp_pacing_ss_ratio: 200"),
        percent(
            "avoidance",
            120,
            "rate after slow start, of cwnd per srtt",
            "Linux, tcp_pacing_ca_ratio: 120",
        ),
    ],
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let paced = Paced {
        inner: policies.congestion,
        slow_start_percent: values.number("slow-start"),
        avoidance_percent: values.number("avoidance"),
        rates: [None; MAX_PATHS],
    };
    Policies { congestion: Box::new(paced), ..policies }
}

/// Paces the windows of the inner control.
pub struct Paced {
    inner: Box<dyn CongestionControl>,
    slow_start_percent: u32,
    avoidance_percent: u32,
    rates: [Option<Rate>; MAX_PATHS],
}

impl Paced {
    fn update(&mut self, path: PathId, view: &View<'_>) {
        self.rates[path.index()] = self.rate(self.inner.window(path), view.path(path));
    }

    fn rate(&self, window: Window, facts: &PathFacts) -> Option<Rate> {
        let round = facts.rtt.smoothed?.as_nanos().max(1);
        // tcp_update_pacing_rate: the last round of slow start uses the lower rate, so that it overshoots by less.
        let in_slow_start = window.cwnd < window.ssthresh.over(2);
        let percent = if in_slow_start { self.slow_start_percent } else { self.avoidance_percent };
        let bits = u128::from(window.cwnd.get()) * 8 * u128::from(percent) / 100;
        let bps = bits * 1_000_000_000 / u128::from(round);
        Some(Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))
    }
}

impl Slot for Paced {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathState,
            EventKind::SackDone,
            EventKind::RttSample,
            EventKind::LossEvent,
            EventKind::Idle,
        ])
        .union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match event {
            Event::SackDone(_)
            | Event::RttSample { .. }
            | Event::LossEvent { .. }
            | Event::PathState { .. } => {
                view.paths.iter().for_each(|facts| self.update(facts.id, view));
            }
            // The window of an idle path decays.
            Event::Idle(path) => self.update(*path, view),
            Event::PathAdded(path) => self.rates[path.index()] = None,
            _ => {}
        }
    }

    forward! { inner:
        fn deadline(&self) -> Option<Time>;
    }
}

impl CongestionControl for Paced {
    fn copied(&self) -> Option<Box<dyn CongestionControl>> {
        Some(Box::new(Paced { inner: self.inner.copied()?, ..*self }))
    }

    fn pacing(&self, path: PathId) -> Pacing {
        Pacing { rate: self.rates[path.index()], in_flight_cap: self.inner.pacing(path).in_flight_cap }
    }

    forward! { inner:
        fn window(&self, path: PathId) -> Window;
        fn last_reason(&self, path: PathId) -> Reason;
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        self.inner.set_window(path, window, reason, view);
        self.update(path, view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{GrowthGate, WindowControl};
    use crate::registry::parse;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::{Limiter, LossCause, PathAck, SackDone, Scheme};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    fn paced() -> Paced {
        Paced {
            inner: Box::new(WindowControl::new(GrowthGate::Cumulative)),
            slow_start_percent: 200,
            avoidance_percent: 120,
            rates: [None; MAX_PATHS],
        }
    }

    /// Creates one path with a round-trip time of 100 ms and this window and threshold.
    fn rig(cwnd: u64, ssthresh: u64) -> (World, Paced) {
        let mut world = World::new(Profile::rfc9260(), 1);
        let mut control = paced();
        world.dispatch(&mut control, &Event::PathAdded(path(0)));
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        let window = Window { cwnd: bytes(cwnd), ssthresh: bytes(ssthresh), ..Window::default() };
        control.set_window(path(0), window, Reason::rule("set"), &world.view());
        (world, control)
    }

    fn rate_kbps(control: &Paced) -> Option<u64> {
        control.pacing(path(0)).rate.map(|rate| rate.as_bps() / 1_000)
    }

    #[test]
    fn pacing_exceeds_one_window_per_rtt_and_doubles_below_half_ssthresh() {
        for (ssthresh, kbps) in [(1_000_000, 20_000), (250_002, 20_000), (250_000, 12_000), (125_000, 12_000)]
        {
            assert_eq!(rate_kbps(&rig(125_000, ssthresh).1), Some(kbps), "{ssthresh}");
        }
    }

    #[test]
    fn the_rate_follows_a_window_that_is_set_and_one_that_decays() {
        let (mut world, mut control) = rig(125_000, 125_000);
        let window = Window { cwnd: bytes(62_500), ssthresh: bytes(62_500), ..Window::default() };
        control.set_window(path(0), window, Reason::rule("set"), &world.view());
        assert_eq!(rate_kbps(&control), Some(6_000));
        world.dispatch(&mut control, &Event::Idle(path(0)));
        assert_eq!(control.window(path(0)).cwnd, bytes(31_250));
        assert_eq!(rate_kbps(&control), Some(3_000));
    }

    /// Returns the window after SACKs for a window of which pacing, or the application, leaves half unused.
    fn grown(expression: &str, limiter: Limiter) -> u64 {
        let mut control = parse(expression).expect("a scheme").policies().congestion;
        let mut world = World::new(Profile::rfc9260_multipath(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        world.paths[0].limiter = limiter;
        world.association.queued_bytes = 1 << 20;
        world.dispatch(&mut *control, &Event::PathAdded(path(0)));
        let window = Window { cwnd: bytes(20 * M), ssthresh: bytes(10 * M), ..Window::default() };
        control.set_window(path(0), window, Reason::rule("set"), &world.view());
        for _ in 0..100 {
            world.now += Span::from_millis(100);
            world.paths[0].cwnd = control.window(path(0)).cwnd;
            let (cumulative, in_flight_before) = (bytes(10 * M), bytes(10 * M));
            let ack = PathAck {
                cumulative,
                in_flight_before,
                outstanding_at_start: in_flight_before,
                in_flight_after: bytes(M),
                new_pseudo_cumulative: true,
                ..PathAck::default()
            };
            let done = SackDone { paths: &[ack], new_cumulative: true, cumulative: 9 };
            world.dispatch(&mut *control, &Event::SackDone(&done));
        }
        control.window(path(0)).cwnd.get() / M
    }

    #[test]
    fn pacing_limited_window_grows_and_application_limited_does_not() {
        for expression in ["cmt+paced", "cmt+cubic+paced"] {
            assert!(grown(expression, Limiter::Pacing) > 30, "{expression}");
            assert_eq!(grown(expression, Limiter::Application), 20, "{expression}");
        }
    }

    #[test]
    fn unmeasured_path_is_not_paced() {
        let mut world = World::new(Profile::rfc9260(), 1);
        let mut control = paced();
        world.dispatch(&mut control, &Event::PathAdded(path(0)));
        world.dispatch(&mut control, &Event::LossEvent { path: path(0), cause: LossCause::Timeout });
        assert_eq!(control.pacing(path(0)), Pacing::OFF);
    }
}
