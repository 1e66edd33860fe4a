//! `redundant`: sends every packet on every path with room.
//!
//! Sends every packet on every path that has room (Frommgen et al., "ReMP TCP: Low Latency Multipath TCP", ICC 2016).

use anabranch_core::PathSet;
use anabranch_core::policy::{
    Context, Decision, Pick, Policies, Reason, Refused, Scheduler, SendAsk, View, WaitFor,
};

use crate::definition::{Card, Choice, Component, Equation, Role, Values};

const CARD: Card = Card {
    summary: &[
        "Each packet of new data is sent at once on every path with room, so that the fastest copy counts and",
        "a loss on one path has no effect. The throughput is that of one path.",
    ],
    equations: &[&[Equation {
        name: "redundant",
        rule: "a copy on each active path with outstanding < cwnd",
        file: file!(),
    }]],
    choices: &[&[
        Choice {
            question: "Does a path that was full get its copy later?",
            answer: "No. It continues with the data that is new when it has room. In Linux each path proceeds through the send \
                     queue independently, so that a slower path may send data that has arrived already.",
            parameter: "",
        },
        Choice {
            question: "Is a probe of the peer's closed window copied?",
            answer: "No. It is one packet beyond what the peer offered (RFC 9260 section 6.1 A).",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "redundant",
    about: "Every packet of new data at once on every path with room",
    source: "Frommgen et al. 2016; Linux MPTCP v0.9x, mptcp_redundant",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(Redundant), ..policies }
}

/// Scheduler: one copy per path with room.
#[derive(Clone, Debug, Default)]
pub struct Redundant;

ignores_events! { Redundant }

impl Scheduler for Redundant {
    copied!(Scheduler);

    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut open = PathSet::EMPTY;
        let mut refused = Refused::new();
        for path in view.paths {
            match view.refusal(path.id) {
                None => open.insert(path.id),
                Some(why) => refused.push((path.id, why)),
            }
        }
        let Some(first) = open.first() else {
            let reason = Reason::rule("no path has room");
            return Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused);
        };
        // A window probe is one packet beyond the peer's window; copies would exceed it further.
        let choice = if open.len() == 1 || ask.window_probe { Pick::Path(first) } else { Pick::Copies(open) };
        let copies = if ask.window_probe { 1 } else { open.len() };
        let reason = Reason::figure("on every path with room", "transmissions", copies as f64);
        Decision::with_refused(choice, reason, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ASK, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::Refusal;
    use anabranch_core::profile::Profile;

    fn set(indices: &[usize]) -> PathSet {
        indices.iter().map(|&index| path(index)).collect()
    }

    #[test]
    fn packet_is_sent_on_every_path_with_room() {
        let mut world = World::new(Profile::rfc9260_multipath(), 3);
        let decision = world.pick(&mut Redundant);
        assert_eq!(decision.choice, Pick::Copies(set(&[0, 1, 2])));
        assert_eq!((decision.reason.figure, decision.reason.value), ("transmissions", 3.0));
        assert!(decision.refused.is_empty());
    }

    #[test]
    fn full_and_failed_paths_get_no_copy() {
        let mut world = World::new(Profile::rfc9260_multipath(), 4);
        world.paths[0].in_flight = bytes(4380);
        world.paths[2].state = PathState::PotentiallyFailed;
        let decision = world.pick(&mut Redundant);
        assert_eq!(decision.choice, Pick::Copies(set(&[1, 3])));
        assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::WindowFull), (path(2), Refusal::State)]);
    }

    #[test]
    fn packet_is_sent_once_if_one_path_has_room() {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        world.paths[0].within_share = false;
        assert_eq!(world.pick(&mut Redundant).choice, Pick::Path(path(1)));
        world.paths[1].burst_left = 0;
        assert_eq!(world.pick(&mut Redundant).choice, Pick::Wait(WaitFor::Window));
    }

    #[test]
    fn window_probe_is_sent_once() {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        let probe = SendAsk { window_probe: true, ..ASK };
        let decision = world.with(|view, context| Redundant.pick(&probe, view, context));
        assert_eq!((decision.choice, decision.reason.value), (Pick::Path(path(0)), 1.0));
    }
}
