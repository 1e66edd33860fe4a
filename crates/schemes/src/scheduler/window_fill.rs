//! CMT's scheduler as ns-2 runs it: in each send opportunity every path's window is filled in turn, beginning with the path
//! after the one that last carried new data.
//!
//! It is not packet round robin: consecutive TSNs go to one path, and in a steady state the path whose data was acknowledged
//! gets the new data.

use anabranch_core::PathId;
use anabranch_core::policy::{Context, Decision, Event, Pick, Reason, Refused, Scheduler, SendAsk, Slot, View, WaitFor};
use anabranch_core::time::Time;

use crate::scheduler::refusal;

/// Fills each path's window in turn, with a rotating start.
#[derive(Debug, Default)]
pub struct RotatingWindowFill {
    /// Where the present opportunity began.
    start: usize,
    /// How many paths it has passed over.
    passed: usize,
}

impl Slot for RotatingWindowFill {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        if let Event::TurnBegins(_) = event {
            self.start = view.association.last_new_data_path.map_or(0, |p| p.index() + 1);
            self.passed = 0;
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Scheduler for RotatingWindowFill {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        let paths = view.paths.len();
        // A path that has been passed over is not visited again in this opportunity: nothing can free its window meanwhile.
        while self.passed < paths {
            let id = PathId::new((self.start + self.passed) % paths);
            match refusal(view.path(id), ask, view) {
                None => {
                    let free = view.path(id).cwnd - view.outstanding(id);
                    let reason = Reason::figure("fills the window of the path in turn", "free_bytes", free.get() as f64);
                    return Decision::with_refused(Pick::Path(id), reason, refused);
                }
                Some(why) => {
                    refused.push((id, why));
                    self.passed += 1;
                }
            }
        }
        Decision::with_refused(Pick::Wait(WaitFor::Window), Reason::rule("every window is full"), refused)
    }
}
