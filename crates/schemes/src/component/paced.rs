//! `paced`: the packets of a window are spaced over the round trip.
//!
//! What a window admits leaves at a multiple of cwnd / srtt instead of in bursts (RFC 9002 section 7.7; Linux paces TCP so).

use anabranch_core::policy::{
    CongestionControl, Context, Event, Pacing, PathFacts, Policies, Reason, Slot, View, Window,
};
use anabranch_core::time::{Rate, Time};
use anabranch_core::{MAX_PATHS, PathId};

use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values};

const fn percent(name: &'static str, default: u32, about: &'static str, source: &'static str) -> Parameter {
    let kind = Kind::Count { min: 100, max: 1_000 };
    Parameter { name, kind, unit: "%", default: Value::Number(default), about, source }
}

const CARD: Card = Card {
    summary: &[
        "The packets of a path leave at a multiple of its window per smoothed round-trip time, and no longer",
        "as fast as SACKs let them. Windows grow and shrink as they do without it. Until a round trip was",
        "measured nothing is paced.",
    ],
    equations: &[&[Equation {
        name: "RFC 9002 section 7.7",
        rule: "rate = N * cwnd / srtt, with N = slow-start / 100 below ssthresh and avoidance / 100 from there on",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "What does a multiple of 100 % do?",
            answer: "The window is never quite used up, because the rate is no more than what acknowledgements \
                     give back; RFC 9002 therefore asks for a little more.",
            parameter: "avoidance",
        },
        Choice {
            question: "Does Max.Burst (RFC 9260 section 6.1 D) still hold?",
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
        percent("avoidance", 120, "rate after it, of cwnd per srtt", "Linux, tcp_pacing_ca_ratio: 120"),
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

/// Paces the windows of the control inside.
pub struct Paced {
    inner: Box<dyn CongestionControl>,
    slow_start_percent: u32,
    avoidance_percent: u32,
    rates: [Option<Rate>; MAX_PATHS],
}

impl Paced {
    fn rate(&self, window: Window, facts: &PathFacts) -> Option<Rate> {
        let round = facts.rtt.smoothed?.as_nanos().max(1);
        let percent =
            if window.cwnd < window.ssthresh { self.slow_start_percent } else { self.avoidance_percent };
        let bits = u128::from(window.cwnd.get()) * 8 * u128::from(percent) / 100;
        let bps = bits * 1_000_000_000 / u128::from(round);
        Some(Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))
    }
}

impl Slot for Paced {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match event {
            Event::SackDone(_) | Event::RttSample { .. } | Event::LossEvent { .. } | Event::PathState { .. } => {
                for facts in view.paths {
                    self.rates[facts.id.index()] = self.rate(self.inner.window(facts.id), facts);
                }
            }
            Event::PathAdded(path) => self.rates[path.index()] = None,
            _ => {}
        }
    }

    forward! { inner:
        fn deadline(&self) -> Option<Time>;
    }
}

impl CongestionControl for Paced {
    fn pacing(&self, path: PathId) -> Pacing {
        Pacing { rate: self.rates[path.index()], in_flight_cap: self.inner.pacing(path).in_flight_cap }
    }

    forward! { inner:
        fn window(&self, path: PathId) -> Window;
        fn last_reason(&self, path: PathId) -> Reason;
        fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) -> ();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{GrowthGate, WindowControl};
    use crate::testing::{World, bytes, path};
    use anabranch_core::policy::LossCause;
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

    /// The rate of the first path with this window and threshold and a round trip of 100 ms.
    fn rate_kbps(cwnd: u64, ssthresh: u64) -> Option<u64> {
        let mut world = World::new(Profile::rfc9260(), 1);
        let mut control = paced();
        world.dispatch(&mut control, &Event::PathAdded(path(0)));
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        let window = Window { cwnd: bytes(cwnd), ssthresh: bytes(ssthresh), ..Window::default() };
        control.set_window(path(0), window, Reason::rule("set"), &world.view());
        let rtt = Span::from_millis(100);
        world.dispatch(&mut control, &Event::RttSample { path: path(0), rtt, heartbeat: false });
        control.pacing(path(0)).rate.map(|rate| rate.as_bps() / 1_000)
    }

    #[test]
    fn a_window_leaves_faster_than_once_a_round_trip_and_twice_as_fast_in_slow_start() {
        assert_eq!(rate_kbps(125_000, 1_000_000), Some(20_000));
        assert_eq!(rate_kbps(125_000, 125_000), Some(12_000));
    }

    #[test]
    fn nothing_is_paced_before_a_round_trip_was_measured() {
        let mut world = World::new(Profile::rfc9260(), 1);
        let mut control = paced();
        world.dispatch(&mut control, &Event::PathAdded(path(0)));
        world.dispatch(&mut control, &Event::LossEvent { path: path(0), cause: LossCause::Timeout });
        assert_eq!(control.pacing(path(0)), Pacing::OFF);
    }
}
