//! Telling the policies what happened, and taking over what they keep.

use crate::association::Association;
use crate::association::policy_state::{WindowChange, concerns_windows};
use crate::path_id::PathId;
use crate::policy::{Event, Reason, Refused};
use crate::send::Sender;
use crate::trace::{Decided, TraceEvent};

impl Association {
    /// Changes what the sender has counted, and lets the policies see it. What changes no count or window needs no call of this.
    pub(crate) fn update_sender<T>(&mut self, transition: impl FnOnce(&mut Sender) -> T) -> T {
        let outcome = transition(&mut self.sender);
        self.policy.publish(&mut self.sender);
        outcome
    }

    /// Tells every slot of an event, and takes over the windows that follow from it.
    pub(crate) fn dispatch_event(&mut self, event: &Event<'_>) {
        self.policy.refresh(&self.sender);
        self.policy.dispatch_event(event, self.now);
        if concerns_windows(event) {
            self.adopt_windows();
        }
    }

    /// Takes over windows and figures.
    pub(crate) fn adopt_windows(&mut self) {
        for id in (0..self.paths.len()).map(PathId::new) {
            let change = self.policy.adopt_window(id, self.now);
            self.adopt_pacing(id);
            let withdrawn = self.policy.adopt_estimates(id);
            let path = &self.paths[id.index()];
            if withdrawn && !path.removed && path.pending_heartbeat.is_none() {
                // A path without new data has nothing else that could speak for it.
                self.send_heartbeat(id);
            }
            if let Some(WindowChange { window, reason }) = change {
                let (cwnd_bytes, ssthresh_bytes) = (window.cwnd.get(), window.ssthresh.get());
                let decided = Decided::Window { path: id, cwnd_bytes, ssthresh_bytes };
                self.record(decided, 0, reason, &Refused::new());
            }
        }
    }

    pub(crate) fn record(&mut self, decided: Decided, tsn: u64, reason: Reason, refused: &Refused) {
        if self.config.trace {
            let event = TraceEvent { at: self.now, decided, tsn, reason, refused: refused.clone() };
            self.policy.trace.record(event);
        }
    }
}
