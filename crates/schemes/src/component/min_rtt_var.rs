//! `min-rtt-var`: the path with the lowest round-trip time including its variation, without changes for small differences.
//!
//! Linux's scheduler uses the smoothed time alone. It therefore alternates neighbouring chunks between two paths of similar speed.

use anabranch_core::PathId;
use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Policies, Reason, Refusal, Refused, Scheduler, SendAsk, View, WaitFor,
};

use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "deviations",
        kind: Kind::Decimal { min: 0.0, max: 10.0 },
        unit: "RTTVAR",
        default: Value::Decimal(4.0),
        about: "weight of the variation of a path's round-trip time",
        source: "RFC 9260 section 6.3.1, K of the time-out",
    },
    Parameter {
        name: "hysteresis",
        kind: Kind::Decimal { min: 0.0, max: 10.0 },
        unit: "",
        default: Value::Decimal(0.25),
        about: "factor by which another path has to be better than the one that carried the latest new data",
        source: "Lim et al. 2017, beta of ECF",
    },
];

const CARD: Card = Card {
    summary: &[
        "Like `min-rtt`, but the rank of a path is a time within which it nearly always answers: its smoothed",
        "round-trip time plus four times its variation. New data stays on the path of the latest new data while",
        "that has room and no other path is better by a quarter.",
    ],
    equations: &[&[
        Equation { name: "rank", rule: "rank = srtt + `deviations` rttvar, lowest first", file: file!() },
        Equation {
            name: "hysteresis",
            rule: "the path of the latest new data, while it has room and its rank <= `hysteresis` times the lowest of those \
                   with room",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "Where is it published?",
            answer: "Nowhere in this form. It is `min-rtt` with the margin of RFC 9260's time-out and the hysteresis of ECF, for comparison.",
            parameter: "deviations, hysteresis",
        },
        Choice {
            question: "What is the rank of a path without a round-trip sample?",
            answer: "The first, as in `min-rtt`, and without hysteresis: only its own data measures it.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "min-rtt-var",
    about: "Lowest round-trip time with its variation; changes the path only for a clear difference",
    source: "this project, from Linux MPTCP v0.9x, RFC 9260 section 6.3.1 and Lim et al. 2017",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let scheduler =
        MinRttVar { deviations: values.decimal("deviations"), hysteresis: values.decimal("hysteresis") };
    Policies { scheduler: Box::new(scheduler), ..policies }
}

/// Scheduler: lowest round-trip time with its variation.
#[derive(Clone, Debug)]
struct MinRttVar {
    deviations: f64,
    hysteresis: f64,
}

/// Path with room and its rank in seconds; zero if it was not measured.
type Ranked = (PathId, f64);

impl MinRttVar {
    fn rank(&self, path: &PathFacts) -> f64 {
        let variation = path.rtt.variance.unwrap_or_default().as_secs_f64();
        path.rtt.smoothed.map_or(0.0, |rtt| rtt.as_secs_f64() + self.deviations * variation)
    }

    /// Keeps the current path, unless the best one is clearly better.
    fn keep(&self, present: Option<Ranked>, best: Ranked) -> (Ranked, &'static str) {
        match present {
            Some(present) if present.1 <= (1.0 + self.hysteresis) * best.1 => {
                (present, "no path with room is clearly faster")
            }
            _ => (best, "lowest round-trip time with its variation"),
        }
    }
}

ignores_events! { MinRttVar }

impl Scheduler for MinRttVar {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        let (mut best, mut present): (Option<Ranked>, Option<Ranked>) = (None, None);
        for path in view.paths {
            if let Some(why) = view.refusal(path.id) {
                refused.push((path.id, why));
                continue;
            }
            let ranked = (path.id, self.rank(path));
            if view.association.last_new_data_path == Some(path.id) {
                present = Some(ranked);
            }
            if best.is_none_or(|(_, least)| ranked.1 < least) {
                best = Some(ranked);
            }
        }
        let Some(best) = best else {
            let reason = Reason::rule("no path has room");
            return Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused);
        };
        let ((path, rank), rule) = self.keep(present, best);
        let with_room =
            view.paths.iter().filter(|facts| facts.id != path && view.refusal(facts.id).is_none());
        refused.extend(with_room.map(|facts| (facts.id, Refusal::Preference)));
        Decision::with_refused(Pick::Path(path), Reason::figure(rule, "rank_ms", rank * 1e3), refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, bytes, path};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    /// Returns the choice among paths with these round-trip times and variations in milliseconds. Path `latest` carried the latest
    /// new data.
    fn chosen(paths: &[(u64, u64)], latest: usize, full: &[usize]) -> usize {
        let mut world = World::new(Profile::rfc9260_multipath(), paths.len());
        for (facts, &(rtt, variation)) in world.paths.iter_mut().zip(paths) {
            facts.rtt.smoothed = (rtt > 0).then(|| Span::from_millis(rtt));
            facts.rtt.variance = Some(Span::from_millis(variation));
        }
        for &index in full {
            world.paths[index].in_flight = bytes(4380);
        }
        world.association.last_new_data_path = Some(path(latest));
        match world.pick(&mut MinRttVar { deviations: 4.0, hysteresis: 0.25 }).choice {
            Pick::Path(path) => path.index(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_path_that_varies_comes_after_a_steady_one() {
        assert_eq!(chosen(&[(20, 10), (40, 1)], 2, &[]), 1);
        assert_eq!(chosen(&[(20, 1), (40, 1)], 2, &[]), 0);
    }

    #[test]
    fn new_data_stays_where_it_was_until_another_path_is_better_by_a_quarter() {
        assert_eq!(chosen(&[(40, 0), (50, 0)], 1, &[]), 1);
        assert_eq!(chosen(&[(40, 0), (51, 0)], 1, &[]), 0);
        assert_eq!(chosen(&[(40, 0), (50, 0)], 1, &[1]), 0, "there is no room on it");
    }

    #[test]
    fn unmeasured_path_comes_first() {
        assert_eq!(chosen(&[(40, 0), (0, 0)], 0, &[]), 1);
    }
}
