//! `backup`: one path at a time.
//!
//! Single-path SCTP: new data uses the primary path, or the next one while the primary is not active (RFC 9260 section 6.4).

use anabranch_core::policy::{
    Context, Decision, Pick, Policies, Reason, Refused, Scheduler, SendAsk, View, WaitFor,
};

use crate::definition::{Card, Choice, Component, Equation, Role, Values};

pub(crate) const PRIMARY_FIRST: Equation = Equation {
    name: "RFC 9260 section 6.4, new data",
    rule: "on the primary path; while that is not active, on the first active path",
    file: file!(),
};

const CARD: Card = Card {
    summary: &[
        "New data goes to the primary path while that is active, otherwise to the active path with the",
        "lowest id. Other paths carry new data only while no earlier one is active. A full window delays new",
        "data. It is the scheduler of `sctp`, for the windows and retransmissions of another scheme.",
    ],
    equations: &[&[Equation {
        name: "backup",
        rule: "the first active path in the order primary, 0, 1, 2, ...",
        file: file!(),
    }]],
    choices: &[&[Choice {
        question: "Is a backup path used while the first one is full?",
        answer: "No. In RFC 8684 a backup path carries data only while no other path is available, and a full window opens \
                 again after a round trip.",
        parameter: "",
    }]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "backup",
    about: "New data on one path at a time, on the others only while it is not active",
    source: "RFC 8684 section 3.3.8; RFC 9260 section 6.4",
    role: Role::Scheduler,
    needs_multipath: true,
    parameters: &[],
    card: CARD,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { scheduler: Box::new(PrimaryOnly), ..policies }
}

/// Scheduler that sends new data on one path at a time, the primary path first.
#[derive(Clone, Debug, Default)]
pub struct PrimaryOnly;

ignores_events! { PrimaryOnly }

impl Scheduler for PrimaryOnly {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        //= docs/rfc9260.txt#section-6.4
        //# By default, an endpoint SHOULD always transmit to the primary path, unless the SCTP user explicitly specifies
        //# the destination transport address (and possibly source transport address) to use.
        let primary = view.active().find(|p| p.primary);
        //= docs/rfc9260.txt#section-6.4.1
        //# When there is outbound data to send and the primary path becomes inactive (e.g., due to failures) or where the
        //# SCTP user explicitly requests to send data to an inactive destination transport address before reporting an
        //# error to its ULP, the SCTP endpoint SHOULD try to send the data to an alternate active destination transport
        //# address if one exists.
        //= docs/rfc9260.txt#section-8.2
        //# If more than one alternate address is active when the primary path is marked inactive, only ONE transport
        //# address SHOULD be chosen and used as the new destination transport address.
        let Some(path) = primary.or_else(|| view.active().next()) else {
            return Decision::new(Pick::Wait(WaitFor::Window), Reason::rule("no path is active"));
        };
        match view.refusal(path.id) {
            None => {
                Decision::new(Pick::Path(path.id), Reason::rule("primary path, or the path that replaces it"))
            }
            Some(why) => {
                let refused: Refused = [(path.id, why)].into_iter().collect();
                let reason = Reason::rule("the only path in use is full");
                Decision::with_refused(Pick::Wait(WaitFor::Path(path.id)), reason, refused)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::Refusal;
    use anabranch_core::profile::Profile;

    //= docs/rfc9260.txt#section-6.4
    //= type=test
    //# By default, an endpoint SHOULD always transmit to the primary path, unless the SCTP user explicitly specifies the
    //# destination transport address (and possibly source transport address) to use.
    #[test]
    fn new_data_goes_to_the_primary_path_however_wide_the_others_are() {
        let mut world = World::new(Profile::rfc9260(), 3);
        world.paths[0].primary = false;
        world.paths[2].primary = true;
        world.paths[1].cwnd = bytes(100 * M);
        let decision = world.pick(&mut PrimaryOnly);
        assert_eq!(decision.choice, Pick::Path(path(2)));
        assert!(decision.refused.is_empty());
    }

    //= docs/rfc9260.txt#section-6.4.1
    //= type=test
    //# When there is outbound data to send and the primary path becomes inactive (e.g., due to failures) or where the
    //# SCTP user explicitly requests to send data to an inactive destination transport address before reporting an error
    //# to its ULP, the SCTP endpoint SHOULD try to send the data to an alternate active destination transport address if
    //# one exists.
    //= docs/rfc9260.txt#section-8.2
    //= type=test
    //# If more than one alternate address is active when the primary path is marked inactive, only ONE transport address
    //# SHOULD be chosen and used as the new destination transport address.
    #[test]
    fn first_active_path_replaces_an_inactive_primary() {
        let mut world = World::new(Profile::rfc9260(), 3);
        world.paths[1].state = PathState::Unconfirmed;
        for state in [PathState::Inactive, PathState::PotentiallyFailed, PathState::Unconfirmed] {
            world.paths[0].state = state;
            assert_eq!(world.pick(&mut PrimaryOnly).choice, Pick::Path(path(2)), "primary {state:?}");
        }
        world.paths[0].state = PathState::Active;
        assert_eq!(world.pick(&mut PrimaryOnly).choice, Pick::Path(path(0)));
    }

    #[test]
    fn full_primary_path_is_awaited_despite_empty_others() {
        let mut world = World::new(Profile::rfc9260(), 2);
        world.paths[0].in_flight = bytes(4380);
        let decision = world.pick(&mut PrimaryOnly);
        assert_eq!(decision.choice, Pick::Wait(WaitFor::Path(path(0))));
        assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::WindowFull)]);
    }

    #[test]
    fn substitute_path_with_a_spent_burst_is_awaited() {
        let mut world = World::new(Profile::rfc9260(), 3);
        world.paths[0].state = PathState::Inactive;
        world.paths[1].burst_left = 0;
        let decision = world.pick(&mut PrimaryOnly);
        assert_eq!(decision.choice, Pick::Wait(WaitFor::Path(path(1))));
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::Burst)]);
    }

    #[test]
    fn backup_waits_for_any_path_if_none_is_active() {
        let mut world = World::new(Profile::rfc9260(), 2);
        world.paths[0].state = PathState::Inactive;
        world.paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(world.pick(&mut PrimaryOnly).choice, Pick::Wait(WaitFor::Window));
    }
}
