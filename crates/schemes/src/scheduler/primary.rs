//! Single-path SCTP: new data goes to the primary path, or to the next one while the primary is not active
//! (RFC 9260 section 6.4).

use anabranch_core::policy::{Context, Decision, Event, Pick, Reason, Refused, Scheduler, SendAsk, Slot, View, WaitFor};
use anabranch_core::time::Time;

use crate::scheduler::refusal;

/// The primary path only.
#[derive(Debug, Default)]
pub struct PrimaryOnly;

impl Slot for PrimaryOnly {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Scheduler for PrimaryOnly {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let primary = view.active().find(|p| p.primary);
        let Some(path) = primary.or_else(|| view.active().next()) else {
            return Decision::new(Pick::Wait(WaitFor::Window), Reason::rule("no path is active"));
        };
        match refusal(path, ask, view) {
            None => Decision::new(Pick::Path(path.id), Reason::rule("the primary path, or its stand-in")),
            Some(why) => {
                let refused: Refused = [(path.id, why)].into_iter().collect();
                let reason = Reason::rule("the only path in use is full");
                Decision::with_refused(Pick::Wait(WaitFor::Path(path.id)), reason, refused)
            }
        }
    }
}
