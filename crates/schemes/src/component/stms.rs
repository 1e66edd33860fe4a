//! `stms`: sends data on a slow path so far ahead in the stream that it arrives together with the fast path's data.
//!
//! STMS, "slide together" (Shi, Cui, Wang, Hu, Dai, Wang, Zheng, ATC 2018). If every path with room sends the next data in order,
//! the slow path's data arrives late. All data that the fast path delivers meanwhile waits behind it in the receive buffer.

use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Policies, Reason, Scheduler, SendAsk, View,
};

use crate::component::min_rtt::lowest;
use crate::definition::{Card, Choice, Component, Equation, Kind, Parameter, Role, Value, Values};
use crate::scheduler::Unmeasured;
use crate::scheduler::by_rtt::{Ranking, bytes_per_second, may_queue};

const PARAMETERS: &[Parameter] = &[Parameter {
    name: "gap",
    kind: Kind::Decimal { min: 0.0, max: 10.0 },
    unit: "",
    default: Value::Decimal(1.0),
    about: "data that stays reserved for the faster path, as a multiple of its deliveries meanwhile",
    source: "Shi et al. 2018: 1, corrected by out-of-order arrivals",
}];

const CARD: Card = Card {
    summary: &[
        "Before a slower path gets the next chunk, data is reserved for every faster path: as much as that",
        "delivers until the slower path's chunk arrives. Reserved data waits for its path's window. Data",
        "therefore arrives nearly in order, and little of the receive buffer is needed.",
    ],
    equations: &[&[Equation {
        name: "gap",
        rule: "a chunk goes to path s once gap_f = cwnd_f / srtt_f (srtt_s - srtt_f) / 2 is bound to each path f with srtt_f < srtt_s",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "MPTCP takes data for the slow path from a later position in the send buffer. How does this work with \
                       TSNs?",
            answer: "The chunks before it are bound to the fast path: they get their TSNs, and wait in that path's queue.",
            parameter: "",
        },
        Choice {
            question: "Do out-of-order arrivals correct the gap?",
            answer: "No. It follows windows and smoothed round trips, which every SACK corrects.",
            parameter: "gap",
        },
        Choice {
            question: "To which path is a chunk offered first?",
            answer: "To the one with the lowest smoothed round-trip time of those with room, as with `min-rtt`; paths without \
                     a sample come first.",
            parameter: "",
        },
        Choice {
            question: "What happens if the receive window is smaller than the gap?",
            answer: "Then all data is bound to the fast path, and the slow one gets none: its data would only fill that \
                     window.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "stms",
    about: "Reserves data for faster paths that they deliver until a slower path's chunk arrives",
    source: "Shi, Cui, Wang et al. 2018 (ATC)",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(ArrivalAlignment { gap: values.decimal("gap") }), ..policies }
}

/// Scheduler that lets the data of all paths arrive together.
#[derive(Clone, Debug)]
struct ArrivalAlignment {
    gap: f64,
}

impl ArrivalAlignment {
    /// Returns the bytes that `fast` delivers during the additional one-way delay of `slow`.
    fn gap_bytes(&self, fast: &PathFacts, slow: &PathFacts) -> Option<f64> {
        let difference = slow.rtt.smoothed? - fast.rtt.smoothed?;
        let rate = bytes_per_second(fast)?;
        (!difference.is_zero()).then_some(self.gap * rate * difference.as_secs_f64() / 2.0)
    }

    /// Returns a faster path that can deliver more meanwhile than is bound to it, and the amount that it can deliver.
    fn lacks<'a>(&self, slow: &PathFacts, view: &View<'a>) -> Option<(&'a PathFacts, f64)> {
        let queues = view.active().filter(|path| path.id != slow.id && may_queue(path, view));
        let gaps = queues.filter_map(|path| Some((path, self.gap_bytes(path, slow)?)));
        let lacking = gaps.filter(|(path, gap)| (path.bound.get() as f64) < *gap);
        lacking.min_by_key(|(path, _)| path.rtt.smoothed)
    }
}

ignores_events! { ArrivalAlignment }

impl Scheduler for ArrivalAlignment {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let ranking = Ranking::of(view, Unmeasured::First);
        let reason = lowest(&ranking);
        // A window probe is sent now or not at all.
        let Some(slow) = ranking.best.filter(|_| !ask.window_probe) else { return ranking.send(reason) };
        if let Some((fast, gap)) = self.lacks(slow, view) {
            return ranking
                .bind(fast.id, Reason::figure("the faster path delivers it sooner", "gap_bytes", gap));
        }
        // Data bound to the path is sent first.
        if slow.bound.is_zero() { ranking.send(reason) } else { ranking.bind(slow.id, reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    /// Creates a full path of 20 ms and ten chunks and one of 100 ms: meanwhile the first delivers 500 chunks per second for 40 ms.
    fn world() -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, rtt) in world.paths.iter_mut().zip([20, 100]) {
            facts.rtt.smoothed = Some(Span::from_millis(rtt));
            facts.cwnd = bytes(10 * M);
        }
        world.paths[0].in_flight = bytes(10 * M);
        world
    }

    fn choice(world: &mut World) -> Pick {
        world.pick(&mut ArrivalAlignment { gap: 1.0 }).choice
    }

    #[test]
    fn slow_path_takes_data_behind_all_that_the_fast_one_delivers() {
        let mut world = world();
        let mut bound = 0;
        while choice(&mut world) == Pick::Bind(path(0)) {
            world.paths[0].bound += bytes(M);
            bound += 1;
        }
        assert_eq!((bound, choice(&mut world)), (20, Pick::Path(path(1))));
    }

    #[test]
    fn fast_path_with_room_takes_the_next_chunk_behind_waiting_ones() {
        let mut world = world();
        world.paths[0].in_flight = bytes(0);
        assert_eq!(choice(&mut world), Pick::Path(path(0)));
        world.paths[0].bound = bytes(M);
        assert_eq!(choice(&mut world), Pick::Bind(path(0)));
    }

    #[test]
    fn no_reservation_for_a_path_that_is_slower_or_full() {
        let mut equal = world();
        equal.paths[1].rtt.smoothed = equal.paths[0].rtt.smoothed;
        let mut failed = world();
        failed.paths[0].state = PathState::PotentiallyFailed;
        let mut beyond = world();
        beyond.paths[0].within_share = false;
        for mut world in [equal, failed, beyond] {
            assert_eq!(choice(&mut world), Pick::Path(path(1)));
        }
    }

    #[test]
    fn a_window_probe_waits_in_no_queue() {
        let mut world = world();
        let probe = SendAsk { window_probe: true, ..ASK };
        let decision = world.with(|view, context| ArrivalAlignment { gap: 1.0 }.pick(&probe, view, context));
        assert_eq!(decision.choice, Pick::Path(path(1)));
    }
}
