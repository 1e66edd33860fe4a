//! Scheduler of Nishida's MPTCP module for ns-2: in each send opportunity the windows are filled in the order of the paths' ids,
//! always from the first. No path is preferred for its round-trip time.

use anabranch_core::policy::{Context, Decision, Pick, Reason, Refused, Scheduler, SendAsk, View, WaitFor};

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "send order",
    rule: "fill the window of path 1, then of path 2, and so on, always from the first",
    file: file!(),
}];

/// Scheduler: fills windows in the order of ids.
#[derive(Clone, Debug)]
pub struct IndexOrder;

ignores_events! { IndexOrder }

impl Scheduler for IndexOrder {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        for path in view.paths {
            let Some(why) = view.refusal(path.id) else {
                let free = path.cwnd - view.outstanding(path.id);
                let reason = Reason::figure("first path with room", "free_bytes", free.get() as f64);
                return Decision::with_refused(Pick::Path(path.id), reason, refused);
            };
            refused.push((path.id, why));
        }
        Decision::with_refused(Pick::Wait(WaitFor::Window), Reason::rule("every window is full"), refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::Refusal;
    use anabranch_core::profile::Profile;

    /// Sends the next packet. Returns its path, on which it is then in flight.
    fn send(world: &mut World) -> Option<usize> {
        let Pick::Path(id) = world.pick(&mut IndexOrder).choice else { return None };
        world.paths[id.index()].in_flight += bytes(M);
        world.association.last_new_data_path = Some(id);
        Some(id.index())
    }

    #[test]
    fn windows_are_filled_in_the_order_of_ids() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let sent: Vec<_> = std::iter::from_fn(|| send(&mut world)).collect();
        assert_eq!(sent, [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn first_path_comes_first_again_after_any_sender() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        assert!((0..5).all(|_| send(&mut world).is_some()));
        world.paths[0].in_flight = bytes(0);
        assert_eq!(send(&mut world), Some(0));
    }

    #[test]
    fn full_paths_are_skipped_and_named() {
        let mut world = World::new(Profile::ns2_multipath(), 4);
        world.paths[0].state = PathState::Inactive;
        world.paths[1].burst_left = 0;
        world.paths[2].within_share = false;
        world.paths[3].in_flight = bytes(1000);
        let decision = world.pick(&mut IndexOrder);
        assert_eq!(decision.choice, Pick::Path(path(3)));
        assert_eq!(decision.reason, Reason::figure("first path with room", "free_bytes", 3380.0));
        let reasons_text: Vec<_> = decision.refused.iter().map(|&(_, why)| why).collect();
        assert_eq!(reasons_text, [Refusal::State, Refusal::Burst, Refusal::BufferShare]);
        world.paths[3].in_flight = bytes(4380);
        let decision = world.pick(&mut IndexOrder);
        assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
        assert!(decision.refused.contains(&(path(3), Refusal::WindowFull)));
    }
}
