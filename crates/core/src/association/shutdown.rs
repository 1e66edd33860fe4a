//! Ending in good order (RFC 9260 section 9.2) and otherwise (section 9.1).

use anabranch_wire::Tsn;

use crate::association::control::Control;
use crate::association::{Association, AssociationEvent, State};
use crate::error::AbortReason;
use crate::path::PathId;
use crate::time::Time;

impl Association {
    /// Ends the association once everything queued has been delivered. Calls after the first do nothing.
    pub fn shutdown(&mut self, now: Time) {
        self.clock(now);
        match self.state {
            // The peer knows nothing yet, and there is nothing to deliver.
            State::CookieWait { .. } if self.queue.is_empty() => {
                self.control.clear();
                self.become_closed(AssociationEvent::Closed);
            }
            State::CookieWait { .. } | State::CookieEchoed { .. } => self.shutdown_when_up = true,
            State::Established => self.begin_shutdown(),
            _ => {}
        }
    }

    pub(crate) fn begin_shutdown(&mut self) {
        self.state = State::ShutdownPending;
        self.open_turn(crate::policy::TurnCause::Application, true);
        self.advance_shutdown();
    }

    /// Ends the association at once; what was not delivered is lost.
    pub fn abort(&mut self, now: Time) {
        self.clock(now);
        if self.is_closed() {
            return;
        }
        if matches!(self.state, State::CookieWait { .. }) {
            // The peer knows nothing yet.
            self.control.clear();
        } else {
            self.send_abort("");
        }
        self.abort_with(AbortReason::ByApplication);
    }

    fn all_sent_and_acked(&self) -> bool {
        self.queue.is_empty() && self.outstanding.is_empty()
    }

    /// Moves on if all data is through.
    pub(crate) fn advance_shutdown(&mut self) {
        if !self.all_sent_and_acked() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent { tries: 0 };
                // RFC 9260 section 9.2: five times RTO.Max is as long as it may take.
                self.timers.t5 = Some(self.now + self.profile.rto_max.times(5));
                self.send_shutdown();
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent { tries: 0 };
                self.send_shutdown_ack();
            }
            _ => {}
        }
    }

    pub(crate) fn send_shutdown(&mut self) {
        let path = self.control_path(None);
        self.start_t2(path);
        self.control.retain(|c| !matches!(c, Control::Shutdown { .. }));
        self.control.push_back(Control::Shutdown { path });
    }

    pub(crate) fn send_shutdown_ack(&mut self) {
        let path = self.control_path(self.shutdown_from);
        self.start_t2(path);
        self.control.retain(|c| !matches!(c, Control::ShutdownAck { .. }));
        self.control.push_back(Control::ShutdownAck { path });
    }

    fn start_t2(&mut self, path: PathId) {
        self.timers.t2 = Some(self.now + self.facts[path.index()].rto);
    }

    /// T2-shutdown: again, elsewhere if possible, until the peer is given up.
    pub(crate) fn handle_t2(&mut self) {
        let limit = self.profile.association_max_retrans;
        let (tries, ack) = match &mut self.state {
            State::ShutdownSent { tries } => (tries, false),
            State::ShutdownAckSent { tries } => (tries, true),
            _ => return,
        };
        *tries += 1;
        let tries = *tries;
        if tries > limit {
            self.abort_with(AbortReason::PeerUnreachable);
            return;
        }
        let first = self.control_path(self.shutdown_from.filter(|_| ack));
        self.back_off(first);
        let path = self.path_in_turn(first, tries);
        self.start_t2(path);
        self.control.push_back(if ack { Control::ShutdownAck { path } } else { Control::Shutdown { path } });
    }

    /// SHUTDOWN from the peer; it also acknowledges cumulatively. The answer goes back to where it came from (section 6.4): the
    /// peer knows of a path that works, and a side that only receives may not.
    ///
    /// One for a TSN that was never sent is a wish to close all the same, and acknowledges nothing: some implementations put
    /// their own TSNs there, and RFC 9260 section 9.2 has us verify the number, not refuse the chunk.
    pub(crate) fn handle_shutdown(&mut self, source: PathId, cumulative: Tsn) {
        self.shutdown_from = Some(source);
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.events.push_back(AssociationEvent::ShutdownReceived);
            }
            State::ShutdownReceived => {}
            State::ShutdownSent { .. } => {
                // Both sides at once: RFC 9260 section 9.2.
                self.state = State::ShutdownAckSent { tries: 0 };
                self.send_shutdown_ack();
                return;
            }
            State::ShutdownAckSent { .. } => {
                self.send_shutdown_ack();
                return;
            }
            _ => return,
        }
        self.handle_shutdown_cumulative(cumulative);
        self.advance_shutdown();
        self.open_turn(crate::policy::TurnCause::Sack, true);
    }

    pub(crate) fn handle_shutdown_ack(&mut self, source: PathId) {
        if matches!(self.state, State::ShutdownSent { .. } | State::ShutdownAckSent { .. }) {
            let path = self.control_path(Some(source));
            self.control.clear();
            self.become_closed(AssociationEvent::Closed);
            self.control.push_back(Control::ShutdownComplete { path });
        }
    }

    pub(crate) fn handle_shutdown_complete(&mut self) {
        if matches!(self.state, State::ShutdownAckSent { .. }) {
            self.control.clear();
            self.become_closed(AssociationEvent::Closed);
        }
    }

    pub(crate) fn handle_peer_abort(&mut self) {
        self.control.clear();
        self.abort_with(AbortReason::ByPeer);
    }
}
