//! Events for the policies, and their consequences for the paths.

use crate::association::Association;
use crate::association::outputs::Outputs;
use crate::association::policies::{PolicyState, concerns_windows, view};
use crate::association::reachability::Reachability;
use crate::path_id::PathId;
use crate::paths::Paths;
use crate::policy::{Event, Pacing, Reason, Refused, View, Window};
use crate::send::Sender;
use crate::time::Time;
use crate::trace::DecisionRecord;

/// Parts of the association that an event of the sending side concerns, borrowed for one call.
#[derive(Debug)]
pub(crate) struct Dispatcher<'a> {
    pub(crate) now: Time,
    pub(crate) paths: &'a mut Paths,
    pub(crate) sender: &'a mut Sender,
    pub(crate) policies: &'a mut PolicyState,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) reachability: &'a mut Reachability,
}

impl Dispatcher<'_> {
    /// Returns the policies' view, with facts as of the latest refresh.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        view(self.now, self.paths, self.sender)
    }

    /// Asks the policies, who see the current facts.
    #[inline]
    pub(crate) fn ask<T>(&mut self, question: impl FnOnce(&mut PolicyState, &View<'_>) -> T) -> T {
        self.sender.refresh_facts();
        question(self.policies, &view(self.now, self.paths, self.sender))
    }

    /// Applies a transition of the sender, and publishes its counts and window. Transitions that change neither need not use this
    /// method. A caller that applies several transitions before the policies see the view publishes once behind the last one.
    pub(crate) fn update_sender<T>(&mut self, transition: impl FnOnce(&mut Sender) -> T) -> T {
        let outcome = transition(self.sender);
        self.publish_counts();
        outcome
    }

    /// Publishes counts and window of the sender after transitions.
    pub(crate) fn publish_counts(&mut self) {
        self.paths.adopt_counts(self.sender);
        self.sender.publish_window();
    }

    /// Delivers an event to the slots that read it, and adopts the figures that follow from it. An event that no slot reads costs a
    /// test.
    #[inline]
    pub(crate) fn dispatch(&mut self, event: &Event<'_>) {
        if self.policies.reads(event.kind()) || self.policies.has_news() {
            self.deliver(event);
        }
    }

    fn deliver(&mut self, event: &Event<'_>) {
        if self.policies.reads(event.kind()) {
            self.sender.refresh_facts();
            self.policies.deliver(event, &view(self.now, self.paths, self.sender));
        }
        if concerns_windows(event) {
            self.adopt_news();
        }
    }

    /// Adopts the figures that may have changed since they were adopted.
    fn adopt_news(&mut self) {
        let (windows, estimates) = (self.policies.take_window_news(), self.policies.take_estimate_news());
        if !windows && !estimates {
            return;
        }
        for id in self.paths.ids() {
            let window = windows.then(|| self.adopt_window(id));
            if estimates && self.paths.adopt_estimates(id, self.policies.estimates(id)) {
                self.probe_withdrawn(id);
            }
            if let Some((window, true)) = window {
                self.record_window(id, window);
            }
        }
    }

    /// Adopts the window and the pacing of a path. Returns the window, and `true` if cwnd or ssthresh has changed.
    fn adopt_window(&mut self, id: PathId) -> (Window, bool) {
        let window = self.policies.window(id, &view(self.now, self.paths, self.sender));
        let changed = self.paths.adopt_window(id, window);
        if let Some(pacing) = self.paths.adopt_pacing(id, self.policies.pacing(id), self.now) {
            self.record_pacing(id, pacing);
        }
        (window, changed)
    }

    /// Adopts all figures, because the size of a path's packets has changed.
    pub(crate) fn adopt_windows(&mut self) {
        self.policies.note_news();
        self.adopt_news();
    }

    /// Probes a path that the estimator has withdrawn: without new data, only a HEARTBEAT can bring it back. The HEARTBEAT waits in
    /// [`Paths`] for [`follow_events`](Association::follow_events).
    fn probe_withdrawn(&mut self, id: PathId) {
        if self.paths.get_live(id).is_some_and(|path| path.pending_heartbeat.is_none()) {
            let nonce = self.reachability.nonce();
            self.paths.begin_heartbeat(id, nonce, self.now);
            self.paths.note_unsent_heartbeat(id);
        }
    }

    fn record_window(&mut self, path: PathId, window: Window) {
        let reason = self.policies.window_reason(path);
        let (cwnd_bytes, ssthresh_bytes) = (window.cwnd.get(), window.ssthresh.get());
        self.record(DecisionRecord::Window { path, cwnd_bytes, ssthresh_bytes }, 0, reason, &Refused::new());
    }

    fn record_pacing(&mut self, path: PathId, pacing: Pacing) {
        let rule = self.policies.window_reason(path).rule;
        let reason = match (pacing.rate, pacing.in_flight_cap) {
            (Some(rate), _) => Reason::figure(rule, "pacing_rate_kbps", rate.as_bps() as f64 / 1e3),
            (None, Some(cap)) => Reason::figure(rule, "in_flight_cap_bytes", cap.get() as f64),
            (None, None) => Reason::rule(rule),
        };
        self.record(DecisionRecord::Pacing { path, pacing }, 0, reason, &Refused::new());
    }

    pub(crate) fn record(&mut self, decided: DecisionRecord, tsn: u64, reason: Reason, refused: &Refused) {
        self.outputs.record(self.now, decided, tsn, reason, refused);
    }
}

impl Association {
    /// Borrows the parts that an event concerns.
    #[inline]
    pub(crate) fn dispatcher(&mut self) -> Dispatcher<'_> {
        Dispatcher {
            now: self.now,
            paths: &mut self.paths,
            sender: &mut self.sender,
            policies: &mut self.policies,
            outputs: &mut self.outputs,
            reachability: &mut self.reachability,
        }
    }

    /// Applies a transition of the sender. See [`Dispatcher::update_sender`].
    pub(crate) fn update_sender<T>(&mut self, transition: impl FnOnce(&mut Sender) -> T) -> T {
        self.dispatcher().update_sender(transition)
    }

    /// Delivers an event to the slots that read it, and applies its consequences.
    pub(crate) fn dispatch_event(&mut self, event: &Event<'_>) {
        self.dispatcher().dispatch(event);
        self.follow_events();
    }

    /// Adopts windows, pacing and estimates outside of an event.
    pub(crate) fn adopt_windows(&mut self) {
        self.dispatcher().adopt_windows();
        self.follow_events();
    }

    /// Applies the consequences of delivered events: queues HEARTBEATs that were started, and adapts the transmission's timer to a
    /// changed rate.
    pub(crate) fn follow_events(&mut self) {
        self.queue_started_heartbeats();
        if self.paths.take_pacing_changed() {
            let (transmission, mut outlet) = self.transmission();
            transmission.adapt_timer(&mut outlet.d);
        }
    }

    pub(crate) fn queue_started_heartbeats(&mut self) {
        for id in self.paths.take_unsent_heartbeats().iter() {
            if let Some(pending) = self.paths[id].pending_heartbeat {
                self.queue_heartbeat(id, pending.nonce);
            }
        }
    }

    pub(crate) fn record(&mut self, decided: DecisionRecord, tsn: u64, reason: Reason, refused: &Refused) {
        self.outputs.record(self.now, decided, tsn, reason, refused);
    }
}
