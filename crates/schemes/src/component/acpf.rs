//! `acpf`: the cheapest path first, unless a queue builds up there.
//!
//! Adaptive Cheapest Path First (Pieska, Rabitsch, Brunstrom, Kassler, Amend 2021). Plain cheapest path first fills the queue of
//! the cheapest path's bottleneck before other paths get data. This scheduler skips a path while its round-trip times show such
//! one.

use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Policies, Reason, Refusal, Refused, Scheduler, SendAsk, View, WaitFor,
};
use anabranch_core::time::Span;

use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values, Weights};
use crate::estimator::RateModel;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "costs",
        kind: Kind::Weights,
        unit: "",
        default: Value::Weights(Weights::EQUAL),
        about: "cost of a byte on each path, in the order of their ids; of equal costs the lowest id comes first",
        source: "Pieska et al. 2021: a fixed order, such as Wi-Fi before cellular",
    },
    Parameter {
        name: "queue",
        kind: Kind::Milliseconds { min: 0, max: 10_000 },
        unit: "ms",
        default: Value::Number(15),
        about: "queueing delay on a cheap path from which on a more expensive one is used",
        source: "RFC 8033 section 5.1, QDELAY_REF",
    },
];

const CARD: Card = Card {
    summary: &[
        "New data goes to the cheapest path until its packets in flight wait in a queue for more than a few",
        "milliseconds, then to the next one. If all paths have such queues, new data goes to the cheapest one",
        "with room in its window.",
    ],
    equations: &[&[
        Equation {
            name: "cheapest path first",
            rule: "in the order of costs, the first path with outstanding < cwnd and without a queue; otherwise the first with \
                   outstanding < cwnd",
            file: file!(),
        },
        Equation {
            name: "adaptive",
            rule: "a path has a queue if data is outstanding on it and its latest round-trip time exceeds its recent minimum \
                   by more than `target`",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "How is a queue detected?",
            answer: "By the latest round-trip time. The paper limits the queue of the primary path's bottleneck, but its exact \
                     rule is not known here. A limit by the bandwidth-delay product was tried and rejected: while the \
                     application is the limit, no sample shows that a path has become slower.",
            parameter: "queue",
        },
        Choice {
            question: "What if every path has a queue?",
            answer: "New data goes to the cheapest one with room in its window. The total amount in flight is up to congestion \
                     control.",
            parameter: "",
        },
        Choice {
            question: "What happens before a path was measured?",
            answer: "Only its window limits it.",
            parameter: "",
        },
        Choice {
            question: "When does it differ from other schedulers?",
            answer: "While the application has less data than all windows admit. A bulk transfer fills every window in any \
                     order.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "acpf",
    about: "New data on the cheapest path until a queue builds there",
    source: "Pieska, Rabitsch, Brunstrom, Kassler, Amend 2021 (ACPF)",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let queue = Span::from_millis(u64::from(values.number("queue")));
    let scheduler = CheapestFirst { costs: values.weights("costs"), queue };
    let estimator = RateModel::new(policies.estimator);
    Policies { scheduler: Box::new(scheduler), estimator: Box::new(estimator), ..policies }
}

/// Scheduler: the cheapest path first, up to a queueing delay.
#[derive(Clone, Debug)]
struct CheapestFirst {
    costs: Weights,
    queue: Span,
}

impl CheapestFirst {
    /// Returns `true` if data in flight on the path queues for longer than the limit. A path with nothing in flight has no queue.
    fn queues(&self, path: &PathFacts, view: &View<'_>) -> bool {
        !view.outstanding(path.id).is_zero()
            && path.estimates.queueing.is_some_and(|queue| queue > self.queue)
    }
}

ignores_events! { CheapestFirst }

impl Scheduler for CheapestFirst {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let with_room = || view.paths.iter().filter(|path| view.refusal(path.id).is_none());
        let cost = |path: &&PathFacts| (self.queues(path, view), self.costs.of(path.id));
        let best = with_room().min_by_key(cost);
        let mut refused: Refused =
            view.paths.iter().filter_map(|path| Some((path.id, view.refusal(path.id)?))).collect();
        let Some(best) = best else {
            let reason = Reason::rule("no path has room");
            return Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused);
        };
        let others = with_room().filter(|path| path.id != best.id);
        refused.extend(others.map(|path| (path.id, Refusal::Preference)));
        let (queues, cost) = cost(&best);
        let rule = match queues {
            true => "the cheapest path with room; all have queues",
            false => "the cheapest path without a queue",
        };
        Decision::with_refused(Pick::Path(best.id), Reason::figure(rule, "cost", f64::from(cost)), refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::profile::Profile;

    /// Creates two paths with windows of 100 chunks, one chunk in flight on each, and these queueing delays in milliseconds.
    fn world(queueing: [u64; 2]) -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, queueing) in world.paths.iter_mut().zip(queueing) {
            facts.cwnd = bytes(100 * M);
            facts.in_flight = bytes(M);
            facts.estimates.queueing = Some(Span::from_millis(queueing));
        }
        world
    }

    fn chosen(world: &mut World, costs: &str) -> Pick {
        let costs = match COMPONENT.parameters[0].read(costs) {
            Ok(Value::Weights(costs)) => costs,
            other => panic!("{other:?}"),
        };
        world.pick(&mut CheapestFirst { costs, queue: Span::from_millis(15) }).choice
    }

    #[test]
    fn cheapest_path_comes_first_with_any_round_trip() {
        assert_eq!(chosen(&mut world([0, 0]), "1:2"), Pick::Path(path(0)));
        assert_eq!(chosen(&mut world([0, 0]), "2:1"), Pick::Path(path(1)));
        assert_eq!(chosen(&mut world([0, 0]), "1"), Pick::Path(path(0)));
    }

    #[test]
    fn a_dearer_path_is_used_while_the_cheap_one_has_a_queue() {
        assert_eq!(chosen(&mut world([15, 0]), "1:2"), Pick::Path(path(0)));
        assert_eq!(chosen(&mut world([16, 0]), "1:2"), Pick::Path(path(1)));
        assert_eq!(chosen(&mut world([16, 16]), "1:2"), Pick::Path(path(0)), "both have one");
    }

    #[test]
    fn path_without_room_is_skipped_for_any_queues_elsewhere() {
        let mut world = world([0, 16]);
        world.paths[0].in_flight = bytes(100 * M);
        assert_eq!(chosen(&mut world, "1:2"), Pick::Path(path(1)));
        world.paths[1].in_flight = bytes(100 * M);
        assert_eq!(chosen(&mut world, "1:2"), Pick::Wait(WaitFor::Window));
    }

    #[test]
    fn idle_path_has_no_queue_and_unsampled_path_an_unknown_one() {
        let mut idle = world([100, 0]);
        idle.paths[0].in_flight = bytes(0);
        assert_eq!(chosen(&mut idle, "1:2"), Pick::Path(path(0)));
        let mut unmeasured = world([0, 0]);
        unmeasured.paths[0].estimates = Default::default();
        assert_eq!(chosen(&mut unmeasured, "1:2"), Pick::Path(path(0)));
    }
}
