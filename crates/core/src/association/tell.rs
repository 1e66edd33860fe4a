//! Telling the policies, and taking over what they keep.

use crate::association::Association;
use crate::path::PathId;
use crate::policy::{Context, Event, Reason, Refused, SendKind, View, Window};
use crate::time::Time;
use crate::trace::{Decided, TraceEvent};
use crate::units::WindowBytes;

const A_CHUNK_AT_LEAST: Reason = Reason::rule("one largest chunk at least");

impl Association {
    /// Tells every slot of an event, estimators first and congestion control second, so that the others see their figures.
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        self.refresh_shared();
        let view =
            View { now: self.now, profile: &self.profile, paths: &self.facts, association: &self.shared };
        let context = &mut Context { entropy: &mut self.policy_entropy };
        let policies = &mut self.policies;
        policies.estimator.on_event(event, &view, context);
        policies.congestion.on_event(event, &view, context);
        policies.scheduler.on_event(event, &view, context);
        policies.loss.on_event(event, &view, context);
        policies.retransmit.on_event(event, &view, context);
        policies.ack.on_event(event, &view, context);
        policies.buffer.on_event(event, &view, context);
        policies.failover.on_event(event, &view, context);
        let quiet = match event {
            Event::TurnBegins(_) | Event::Blocked { .. } => true,
            // Only a copy of the head of line is a reason to change a window (penalisation).
            Event::Sent(sent) => sent.kind != SendKind::HeadOfLine,
            _ => false,
        };
        if !quiet {
            self.adopt_windows();
        }
    }

    /// Takes over windows and figures. RFC 9260 sections 7.2.1 and 7.2.3 let no cwnd fall below one PMDCS, and the size of a
    /// path's packets changes without congestion control having a part in it: the bound is kept here, for every policy.
    pub(crate) fn adopt_windows(&mut self) {
        for index in 0..self.facts.len() {
            let id = PathId::new(index);
            let window = self.window_of_a_chunk(id);
            let estimates = self.policies.estimator.estimates(id);
            let facts = &mut self.facts[index];
            let probed = estimates.withdrawn && !facts.estimates.withdrawn && facts.is_active();
            facts.partial_bytes_acked = window.partial_bytes_acked;
            facts.estimates = estimates;
            if probed && !self.paths[index].removed && self.paths[index].pending_heartbeat.is_none() {
                // A path without new data has nothing else that could speak for it.
                self.send_heartbeat(id);
            }
            let facts = &mut self.facts[index];
            if facts.cwnd == window.cwnd && facts.ssthresh == window.ssthresh {
                continue;
            }
            facts.cwnd = window.cwnd;
            facts.ssthresh = window.ssthresh;
            let reason = self.policies.congestion.last_reason(id);
            let decided = Decided::Window {
                path: id,
                cwnd_bytes: window.cwnd.get(),
                ssthresh_bytes: window.ssthresh.get(),
            };
            self.record(decided, 0, reason, &Refused::new());
        }
    }

    /// A path's window, which is raised to one largest chunk first if it is smaller.
    fn window_of_a_chunk(&mut self, id: PathId) -> Window {
        let least = self.facts[id.index()].largest_chunk;
        let window = self.policies.congestion.window(id);
        if window.cwnd >= least {
            return window;
        }
        let view =
            View { now: self.now, profile: &self.profile, paths: &self.facts, association: &self.shared };
        let raised = Window { cwnd: least, ..window };
        self.policies.congestion.set_window(id, raised, A_CHUNK_AT_LEAST, &view);
        let window = self.policies.congestion.window(id);
        Window { cwnd: window.cwnd.max(least), ..window }
    }

    pub(crate) fn refresh_shared(&mut self) {
        self.shared.queued_bytes = self.queue.bytes();
        self.shared.send_buffer_free = self.send_buffer_free();
        self.shared.cumulative_tsn = self.outstanding.cumulative();
        self.shared.head_of_line =
            self.outstanding.first_unacked().and_then(|tsn| self.outstanding.head_of_line(tsn));
    }

    /// What all outstanding chunks cost of the peer's window.
    pub(crate) fn window_outstanding(&self) -> WindowBytes {
        let sent = self.window_in_flight + self.window_bound;
        if self.profile.lost_counts_until_resent { sent + self.window_lost } else { sent }
    }

    pub(crate) fn record(&mut self, decided: Decided, tsn: u64, reason: Reason, refused: &Refused) {
        if self.config.trace {
            let event = TraceEvent { at: self.now, decided, tsn, reason, refused: refused.clone() };
            self.trace.push_back(event);
        }
    }

    pub(crate) fn policy_deadline(&self) -> Option<Time> {
        let p = &self.policies;
        [
            p.estimator.deadline(),
            p.congestion.deadline(),
            p.scheduler.deadline(),
            p.loss.deadline(),
            p.retransmit.deadline(),
            p.ack.deadline(),
            p.buffer.deadline(),
            p.failover.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
