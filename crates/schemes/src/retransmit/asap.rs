//! RTX-ASAP (Iyengar 2006): any active path with room now; of several, by coin flips along the list as ns-2 does, which is
//! even for two paths and not for more.

use anabranch_core::policy::{Context, Decision, Event, LostChunk, Reason, Refusal, Refused, RetransmitPath, Route, Slot, View};
use anabranch_core::time::Time;

use crate::retransmit::nowhere;

/// The first that can.
#[derive(Debug, Default)]
pub struct Asap;

impl Slot for Asap {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl RetransmitPath for Asap {
    fn route(&mut self, _: &LostChunk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Route> {
        let mut chosen = None;
        let mut refused = Refused::new();
        for path in view.paths {
            if !path.is_active() {
                refused.push((path.id, Refusal::State));
            } else if !path.admits_retransmission() {
                refused.push((path.id, Refusal::WindowFull));
            } else if chosen.is_none() || !context.coin() {
                chosen = Some(path.id);
            }
        }
        match chosen {
            Some(id) => Decision::with_refused(Route::Path(id), Reason::rule("has room now"), refused),
            None => Decision { refused, ..nowhere() },
        }
    }
}
