//! `dems`: sends the front of the rest of a file on one path and its back on another, so that both finish at the same time.
//!
//! DEMS (Guo, Nikravesh, Mao, Qian, Sen, MobiCom 2017): two paths that take chunks in turn finish at different times, and the file
//! is complete with the later one.

use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Policies, Reason, Refusal, Refused, Scheduler, SendAsk, View,
};

use crate::component::min_rtt::lowest;
use crate::definition::{Card, Choice, Component, Equation, Role, Values};
use crate::scheduler::Unmeasured;
use crate::scheduler::by_rtt::{Ranking, bytes_per_second, fastest, may_queue};

const CARD: Card = Card {
    summary: &[
        "Once all remaining data of a file is in the send buffer and fits into the receive window, its front is",
        "bound to the fastest path and its back to the next one. The two parts meet at the point at which both",
        "paths finish at the same time. Before that, and while the end is unknown, it is `min-rtt`.",
    ],
    equations: &[&[Equation {
        name: "simultaneous completion",
        rule: "x bytes to the fast path and R - x to the slow one: srtt_f / 2 + x / bw_f = srtt_s / 2 + (R - x) / bw_s, bw = cwnd / srtt",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "MPTCP sends the slow path's part from its end backwards, and the paths meet. How does this work with \
                       ascending TSNs?",
            answer: "The point is computed again with every chunk. Chunks before it are bound to the fast path, those after it \
                     are sent on the slow one in order. If the estimate was wrong, the data that is not bound yet moves the \
                     point.",
            parameter: "",
        },
        Choice {
            question: "How is the end of a file known?",
            answer: "By room in the send buffer: the application has no more data than it has queued. While the buffer is full \
                     there may be more, and the end is unknown.",
            parameter: "",
        },
        Choice {
            question: "What happens if more data is left than the receive window admits?",
            answer: "Then it is `min-rtt`: bound data occupies its part of that window, and the end would not fit.",
            parameter: "",
        },
        Choice {
            question: "Which component sends copies of the other path's last data on the path that finishes first?",
            answer: "`xlink` or `opportunistic`.",
            parameter: "",
        },
        Choice {
            question: "What happens with more than two paths?",
            answer: "The two with the lowest round-trip times carry the end, as in the paper, which has two.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "dems",
    about: "Splits the end of a file between the two fastest paths so that both finish at the same time",
    source: "Guo, Nikravesh, Mao, Qian, Sen 2017 (MobiCom)",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(EndSplitting), ..policies }
}

/// Scheduler of the end of a file, from both sides.
#[derive(Clone, Debug)]
struct EndSplitting;

/// Paths that share the end.
struct Ends<'a> {
    front: &'a PathFacts,
    back: &'a PathFacts,
    /// Bytes that the path of the front still has to carry, including bytes that are bound to it.
    front_bytes: f64,
}

impl<'a> Ends<'a> {
    fn of(view: &View<'a>) -> Option<Self> {
        let front = fastest(view).filter(|path| may_queue(path, view))?;
        let others = view.active().filter(|path| path.id != front.id && path.rtt.smoothed.is_some());
        let back = others.filter(|path| may_queue(path, view)).min_by_key(|path| path.rtt.smoothed)?;
        let rest = rest(view)? + (front.bound + back.bound).get() as f64;
        let (fast, slow) = (bytes_per_second(front)?, bytes_per_second(back)?);
        let lead = (back.rtt.smoothed? - front.rtt.smoothed?).as_secs_f64() / 2.0;
        let front_bytes = (rest / slow + lead) / (1.0 / fast + 1.0 / slow);
        Some(Ends { front, back, front_bytes: front_bytes.min(rest) })
    }
}

/// Returns the number of queued bytes, if no more data follows and the peer can receive them.
fn rest(view: &View<'_>) -> Option<f64> {
    let association = view.association;
    let is_all = association.send_buffer_free.is_none_or(|free| free > 0);
    let fits = association.queued_bytes <= association.peer_window.get();
    (is_all && fits).then_some(association.queued_bytes as f64)
}

ignores_events! { EndSplitting }

impl Scheduler for EndSplitting {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let Some(ends) = Ends::of(view).filter(|_| !ask.window_probe) else {
            let ranking = Ranking::of(view, Unmeasured::First);
            let reason = lowest(&ranking);
            return ranking.send(reason);
        };
        let (path, rule) = if (ends.front.bound.get() as f64) < ends.front_bytes {
            (ends.front, "front of the remaining data")
        } else {
            (ends.back, "back of the remaining data")
        };
        let leaves = view.refusal(path.id).is_none() && path.bound.is_zero();
        let choice = if leaves { Pick::Path(path.id) } else { Pick::Bind(path.id) };
        let others = view.paths.iter().filter(|other| other.id != path.id);
        let refused: Refused =
            others.map(|other| (other.id, view.refusal(other.id).unwrap_or(Refusal::Preference))).collect();
        Decision::with_refused(choice, Reason::figure(rule, "front_bytes", ends.front_bytes), refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::WaitFor;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;
    use anabranch_core::units::WindowBytes;

    /// Creates full paths of 500 and 100 chunks per second and 20 and 100 ms, with 60 chunks left.
    fn world() -> World {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for (facts, rtt) in world.paths.iter_mut().zip([20, 100]) {
            facts.rtt.smoothed = Some(Span::from_millis(rtt));
            facts.cwnd = bytes(10 * M);
            facts.in_flight = bytes(10 * M);
        }
        world.association.queued_bytes = 60 * M;
        world.association.peer_window = WindowBytes::new(200 * M);
        world
    }

    /// Returns the number of chunks sent on each path until none is left.
    fn split(world: &mut World) -> [u64; 2] {
        let mut split = [0; 2];
        while world.association.queued_bytes > 0 {
            let Pick::Bind(path) = world.pick(&mut EndSplitting).choice else { panic!("it is full") };
            world.paths[path.index()].bound += bytes(M);
            world.association.queued_bytes -= M;
            split[path.index()] += 1;
        }
        split
    }

    #[test]
    fn both_paths_finish_at_the_same_time() {
        let [front, back] = split(&mut world());
        let done = [10.0 + front as f64 * 2.0, 50.0 + back as f64 * 10.0];
        assert!((done[0] - done[1]).abs() <= 10.0, "{front} and {back} chunks, after {done:?} ms");
    }

    #[test]
    fn the_front_goes_to_the_fast_path_and_the_back_to_the_slow_one() {
        let mut world = world();
        let first = world.pick(&mut EndSplitting).choice;
        world.paths[0].bound = bytes(55 * M);
        world.association.queued_bytes = 5 * M;
        assert_eq!((first, world.pick(&mut EndSplitting).choice), (Pick::Bind(path(0)), Pick::Bind(path(1))));
    }

    #[test]
    fn rest_that_the_fast_path_delivers_earlier_stays_on_it() {
        let mut world = world();
        world.association.queued_bytes = 15 * M;
        assert_eq!(split(&mut world), [15, 0]);
    }

    #[test]
    fn next_chunk_takes_any_room_without_known_end_or_window() {
        let mut endless = world();
        endless.association.send_buffer_free = Some(0);
        let mut large = world();
        large.association.peer_window = WindowBytes::new(59 * M);
        for mut world in [endless, large] {
            assert_eq!(world.pick(&mut EndSplitting).choice, Pick::Wait(WaitFor::Window));
            world.paths[1].in_flight = bytes(0);
            assert_eq!(world.pick(&mut EndSplitting).choice, Pick::Path(path(1)));
        }
    }
}
