//! RTX-SAME (Iyengar 2006): where it was sent before, until that path is inactive, then the next one.

use anabranch_core::PathState;
use anabranch_core::policy::{Context, Decision, Event, LostChunk, Reason, Refused, RetransmitPath, Route, Slot, View};
use anabranch_core::time::Time;

use crate::retransmit::{if_room, nowhere};

/// The same path.
#[derive(Debug, Default)]
pub struct Same;

impl Slot for Same {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl RetransmitPath for Same {
    fn route(&mut self, chunk: &LostChunk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Route> {
        let usable = |state| matches!(state, PathState::Active | PathState::PotentiallyFailed);
        let n = view.paths.len();
        let start = chunk.path.index();
        // A potentially failed path is still "the same path" here: ns-2 looks only for inactive ones. But while another path
        // is active, nothing of ours sends to one that may be dead.
        let any_active = view.active().next().is_some();
        let next = (0..n).map(|step| &view.paths[(start + step) % n]).find(|p| {
            if any_active { p.is_active() } else { usable(p.state) }
        });
        match next {
            Some(path) => if_room(path, Reason::rule("where it was sent before"), Refused::new()),
            None => nowhere(),
        }
    }
}
