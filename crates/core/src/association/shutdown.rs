//! Graceful shutdown (RFC 9260 section 9.2) and abort (section 9.1).

use anabranch_wire::{AbortView, Tsn};

use crate::association::control::Control;
use crate::association::state::{Closing, State};
use crate::association::{Association, AssociationEvent};
use crate::error::AbortReason;
use crate::path_id::PathId;
use crate::protection::Mismatch;
use crate::time::Time;

impl Association {
    /// Ends the association once everything queued has been delivered. Repeated calls have no effect.
    pub fn shutdown(&mut self, now: Time) {
        self.clock(now);
        match self.state {
            // The peer has no state yet, and no message is queued.
            State::CookieWait { .. } if self.sender.queue().is_empty() => {
                self.control.clear();
                self.become_closed(AssociationEvent::Closed);
            }
            State::CookieWait { ref mut opening, .. } | State::CookieEchoed { ref mut opening, .. } => {
                opening.shutdown_when_up = true;
            }
            //= docs/rfc9260.txt#section-9.2
            //# Once an endpoint has reached the SHUTDOWN-RECEIVED state, it MUST ignore ULP shutdown requests but MUST
            //# continue responding to SHUTDOWN chunks from its peer.
            State::Established => self.begin_shutdown(),
            _ => {}
        }
    }

    pub(crate) fn begin_shutdown(&mut self) {
        self.state = State::ShutdownPending;
        self.open_opportunity(crate::policy::OpportunityCause::Application, true);
        self.advance_shutdown();
    }

    /// Ends the association at once; undelivered data is lost.
    pub fn abort(&mut self, now: Time) {
        self.clock(now);
        if self.is_closed() {
            return;
        }
        if matches!(self.state, State::CookieWait { .. }) {
            // The peer has no state yet.
            self.control.clear();
        } else {
            //= docs/rfc9260.txt#section-9.1
            //# When an endpoint decides to abort an existing association, it MUST send an ABORT chunk to its peer
            //# endpoint.
            self.send_abort("");
        }
        self.abort_with(AbortReason::ByApplication);
    }

    /// Ends the association because the peer violated a protocol of the driver above SCTP, and reports that to the peer.
    pub fn abort_for_protocol(&mut self, now: Time, why: &'static str) {
        self.clock(now);
        if !self.is_closed() {
            self.send_abort(why);
            self.abort_with(AbortReason::Protocol(why));
        }
    }

    //= docs/rfc9260.txt#section-9.2
    //# An endpoint SHOULD ensure that all its outstanding DATA chunks have been acknowledged before initiating the
    //# shutdown procedure.
    /// Continues the shutdown if all data is acknowledged.
    pub(crate) fn advance_shutdown(&mut self) {
        //= docs/rfc9260.txt#section-4
        //# 6)  In the SHUTDOWN-RECEIVED state, the endpoint MUST transmit or retransmit data and leave this state when
        //# all data in queue is transmitted.
        if !self.sender.is_done() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                //= docs/rfc9260.txt#section-9.2
                //# It SHOULD then start the T2-shutdown timer and enter the SHUTDOWN-SENT state.
                //= docs/rfc9260.txt#section-9.2
                //# If the T5-shutdown-guard timer is used, it SHOULD be set to the RECOMMENDED value of 5 times
                //# 'RTO.Max'.
                // RFC 9260 section 9.2: the limit of a shutdown is five times RTO.Max.
                let t5 = Some(self.now + self.profile.rto_max.times(5));
                self.state = State::ShutdownSent(Closing { t5, ..Closing::default() });
                self.send_shutdown();
            }
            //= docs/rfc9260.txt#section-9.2
            //# If the receiver of the SHUTDOWN chunk has no more outstanding DATA chunks, the SHUTDOWN chunk receiver
            //# MUST send a SHUTDOWN ACK chunk and start a T2-shutdown timer of its own, entering the SHUTDOWN-ACK- SENT
            //# state.
            State::ShutdownReceived { from } => {
                self.state = State::ShutdownAckSent { closing: Closing::default(), from };
                self.send_shutdown_ack(from);
            }
            _ => {}
        }
    }

    //= docs/rfc9260.txt#section-3.3.8
    //# An endpoint in an association MUST use this chunk to initiate a graceful close of the association with its peer.
    pub(crate) fn send_shutdown(&mut self) {
        let path = self.control_path(None);
        self.start_t2(path);
        self.control.retain(|c| !matches!(c, Control::Shutdown { .. }));
        self.control.push(Control::Shutdown { path });
    }

    //= docs/rfc9260.txt#section-3.3.9
    //# This chunk MUST be used to acknowledge the receipt of the SHUTDOWN chunk at the completion of the shutdown
    //# process; see Section 9.2 for details.
    /// Sends the SHUTDOWN-ACK again if the SHUTDOWN COMPLETE has not arrived. Returns `true` if it does.
    pub(crate) fn repeat_shutdown_ack(&mut self) -> bool {
        let State::ShutdownAckSent { from, .. } = self.state else { return false };
        self.send_shutdown_ack(from);
        true
    }

    fn send_shutdown_ack(&mut self, from: PathId) {
        let path = self.control_path(Some(from));
        self.start_t2(path);
        self.control.retain(|c| !matches!(c, Control::ShutdownAck { .. }));
        self.control.push(Control::ShutdownAck { path });
    }

    //= docs/rfc9260.txt#section-9.2
    //# The rules in Section 6.3 MUST be followed to determine the proper timer value for T2-shutdown.
    fn start_t2(&mut self, path: PathId) {
        let t2 = self.now + self.paths.facts(path).rto;
        if let Some(closing) = self.state.closing_mut() {
            closing.t2 = Some(t2);
        }
    }

    /// Handles the expiry of T2-shutdown: sends the chunk again, on another path if possible, until the peer counts as unreachable.
    pub(crate) fn handle_t2(&mut self) {
        let limit = self.profile.association_max_retrans;
        let from = match self.state {
            State::ShutdownAckSent { from, .. } => Some(from),
            _ => None,
        };
        let Some(closing) = self.state.closing_mut() else { return };
        closing.tries += 1;
        let tries = closing.tries;
        //= docs/rfc9260.txt#section-9.2
        //# An endpoint SHOULD limit the number of retransmissions of the SHUTDOWN chunk to the protocol parameter
        //# 'Association.Max.Retrans'.
        //= docs/rfc9260.txt#section-9.2
        //# If this threshold is exceeded, the endpoint SHOULD destroy the TCB and SHOULD report the peer endpoint
        //# unreachable to the upper layer (and thus the association enters the CLOSED state).
        //= docs/rfc9260.txt#section-9.2
        //# The sender of the SHUTDOWN ACK chunk SHOULD limit the number of retransmissions of the SHUTDOWN ACK chunk to
        //# the protocol parameter 'Association.Max.Retrans'.
        if tries > limit {
            self.give_peer_up();
            return;
        }
        let first = self.control_path(from);
        self.paths.back_off(first);
        let path = self.path_for_attempt(first, tries);
        self.start_t2(path);
        //= docs/rfc9260.txt#section-9.2
        //# If the timer expires, the endpoint MUST resend the SHUTDOWN chunk with the updated last sequential TSN
        //# received from its peer.
        //= docs/rfc9260.txt#section-9.2
        //# If the timer expires, the endpoint MUST resend the SHUTDOWN ACK chunk.
        self.control.push(match from {
            Some(_) => Control::ShutdownAck { path },
            None => Control::Shutdown { path },
        });
    }

    /// Ends the association with a peer that has not answered for too long.
    ///
    /// A protected peer may have ended normally: it has removed its state and keys when its SHUTDOWN COMPLETE is lost, and cannot
    /// answer a repeated SHUTDOWN ACK. All data of both sides was acknowledged before the first.
    pub(crate) fn give_peer_up(&mut self) {
        if self.requires_protection() && matches!(self.state, State::ShutdownAckSent { .. }) {
            self.control.clear();
            self.become_closed(AssociationEvent::Closed);
        } else {
            self.abort_with(AbortReason::PeerUnreachable);
        }
    }

    /// Handles a SHUTDOWN, which also acknowledges cumulatively. The answer is sent on the path where it arrived (section 6.4): the
    /// peer knows of a path that works, and a side that only receives may not.
    ///
    /// A SHUTDOWN for a TSN that was never sent requests the shutdown too, but acknowledges nothing. Some implementations write
    /// their own TSNs there, and RFC 9260 section 9.2 demands a check of the number, not a refusal of the chunk.
    pub(crate) fn handle_shutdown(&mut self, source: PathId, cumulative: Tsn) {
        match self.state {
            State::Established | State::ShutdownPending => {
                //= docs/rfc9260.txt#section-9.2
                //# If there are still outstanding DATA chunks left, the SHUTDOWN chunk receiver MUST continue to follow
                //# normal data transmission procedures defined in Section 6, until all outstanding DATA chunks are
                //# acknowledged; however, the SHUTDOWN chunk receiver MUST NOT accept new data from its SCTP user.
                self.state = State::ShutdownReceived { from: source };
                self.outputs.report(AssociationEvent::ShutdownReceived);
            }
            //= docs/rfc9260.txt#section-9.2
            //# Once an endpoint has reached the SHUTDOWN-RECEIVED state, it MUST ignore ULP shutdown requests but MUST
            //# continue responding to SHUTDOWN chunks from its peer.
            State::ShutdownReceived { ref mut from } => *from = source,
            State::ShutdownSent(Closing { t5, .. }) => {
                //= docs/rfc9260.txt#section-9.2
                //# If an endpoint is in the SHUTDOWN-SENT state and receives a SHUTDOWN chunk from its peer, the endpoint
                //# SHOULD respond immediately with a SHUTDOWN ACK chunk to its peer and move into the SHUTDOWN-ACK-SENT
                //# state, restarting its T2-shutdown timer.
                // Both sides shut down at the same time: RFC 9260 section 9.2.
                let closing = Closing { t5, ..Closing::default() };
                self.state = State::ShutdownAckSent { closing, from: source };
                self.send_shutdown_ack(source);
                return;
            }
            State::ShutdownAckSent { ref mut from, .. } => {
                *from = source;
                self.send_shutdown_ack(source);
                return;
            }
            //= docs/rfc9260.txt#section-9.2
            //# If a SHUTDOWN chunk is received in the COOKIE-WAIT or COOKIE ECHOED state, the SHUTDOWN chunk SHOULD be
            //# silently discarded.
            _ => return,
        }
        self.handle_shutdown_cumulative(cumulative);
        self.advance_shutdown();
        self.open_opportunity(crate::policy::OpportunityCause::Sack, true);
    }

    //= docs/rfc9260.txt#section-9.2
    //# Upon the receipt of the SHUTDOWN ACK chunk, the sender of the SHUTDOWN chunk MUST stop the T2-shutdown timer, send
    //# a SHUTDOWN COMPLETE chunk to its peer, and remove all record of the association.
    //= docs/rfc9260.txt#section-9.2
    //# If an endpoint is in the SHUTDOWN-ACK-SENT state and receives a SHUTDOWN ACK, it MUST stop the T2-shutdown timer,
    //# send a SHUTDOWN COMPLETE chunk to its peer, and remove all record of the association.
    pub(crate) fn handle_shutdown_ack(&mut self, source: PathId) {
        if matches!(self.state, State::ShutdownSent { .. } | State::ShutdownAckSent { .. }) {
            let path = self.control_path(Some(source));
            self.control.clear();
            self.become_closed(AssociationEvent::Closed);
            //= docs/rfc9260.txt#section-3.3.13
            //# This chunk MUST be used to acknowledge the receipt of the SHUTDOWN ACK chunk at the completion of the
            //# shutdown process; see Section 9.2 for details.
            self.control.push(Control::ShutdownComplete { path });
        }
    }

    //= docs/rfc9260.txt#section-9.2
    //# Upon reception of the SHUTDOWN COMPLETE chunk, the endpoint verifies that it is in the SHUTDOWN-ACK-SENT state; if
    //# it is not, the chunk SHOULD be discarded.
    //= docs/rfc9260.txt#section-9.2
    //# If the endpoint is in the SHUTDOWN-ACK-SENT state, the endpoint SHOULD stop the T2-shutdown timer and remove all
    //# knowledge of the association (and thus the association enters the CLOSED state).
    pub(crate) fn handle_shutdown_complete(&mut self) {
        if matches!(self.state, State::ShutdownAckSent { .. }) {
            self.control.clear();
            self.become_closed(AssociationEvent::Closed);
        }
    }

    //= docs/rfc9260.txt#section-9.1
    //# After checking the Verification Tag, the receiving endpoint MUST remove the association from its record and SHOULD
    //# report the termination to its upper layer.
    pub(crate) fn handle_peer_abort(&mut self, abort: &AbortView<'_>) {
        self.control.clear();
        let refusal = self
            .awaits_init_ack()
            .then(|| abort.causes().flatten().find_map(Mismatch::refusal_text))
            .flatten();
        self.abort_with(refusal.map_or(AbortReason::ByPeer, AbortReason::NotProtected));
    }
}
