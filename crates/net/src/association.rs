//! The handle of an association.

use std::fmt;
use std::sync::Arc;

use anabranch_core::protection::KEY_MANAGEMENT_PPID;
use anabranch_core::{AbortReason, AssociationId, Reliability, SendOptions};
use anabranch_keying::{ExportError, PeerIdentity, RestartKeys};
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::{CloseReason, ConnectError, RecvError, SendError};
use crate::event::Events;
use crate::message::{Message, Outgoing};
use crate::shared::{Command, Export, Handle, INBOX_LIMIT, Inbound, OUTBOX_LIMIT, Phase, State, wait_for};
use crate::snapshot::{PathSnapshot, Snapshot};

/// An association: messages on several streams, over several paths.
///
/// Clones are handles of the same association. All methods take `&self`, so one task can send while another receives.
///
/// **Dropping the last handle** aborts the association: the peer is told, and does not mistake a task that panicked for one
/// that was done. It does not abort if [`shutdown`](Self::shutdown) was called before, even if its future was dropped, nor if
/// the peer has shut down and everything it sent was received: then the end gracefully goes on by itself, and what still
/// arrives is thrown away.
#[derive(Clone)]
pub struct Association {
    handle: Arc<Handle>,
}

impl Association {
    pub(crate) fn new(handle: Handle) -> Self {
        Association { handle: Arc::new(handle) }
    }

    /// Tells the task to do something about this association.
    pub(crate) fn order(&self, command: impl FnOnce(AssociationId) -> Command) {
        // A task that is gone drops the command, and with it the way for an answer.
        let _ = self.handle.commands.send(command(self.handle.shared.id));
    }

    /// Waits for the end of the handshake.
    pub(crate) async fn opened(&self) -> Result<(), CloseReason> {
        let shared = &self.handle.shared;
        wait_for(&shared.changed, || match shared.lock().phase {
            Phase::Opening => None,
            Phase::Open | Phase::PeerClosing | Phase::Closed(Ok(())) => Some(Ok(())),
            Phase::Closed(Err(ended)) => Some(Err(ended)),
        })
        .await
    }

    /// Returns the error of a handshake that came to this end.
    pub(crate) fn failed_to_open(&self, ended: CloseReason) -> ConnectError {
        let state = self.handle.shared.lock();
        match (ended, state.keying_error) {
            (CloseReason::Aborted(AbortReason::KeyManagement(why)), Some(error)) if error.is_refusal() => {
                ConnectError::Denied { why, by: state.identity.clone().map(Box::new) }
            }
            (CloseReason::Aborted(AbortReason::KeyManagement(why)), Some(error)) if error.is_transient() => {
                ConnectError::KeysInterrupted(why)
            }
            (CloseReason::Aborted(AbortReason::KeyManagement(why)), _) => ConnectError::NotAccepted(why),
            (CloseReason::Aborted(AbortReason::NotProtected(why)), _) => ConnectError::NotProtected(why),
            (CloseReason::Aborted(AbortReason::Tampered(why)), _) => ConnectError::KeysInterrupted(why),
            (CloseReason::Aborted(AbortReason::NoAnswer | AbortReason::PeerUnreachable), _)
                if !state.answered =>
            {
                ConnectError::NoAnswer
            }
            (CloseReason::Aborted(AbortReason::Refused(_)), _) => {
                ConnectError::Unreachable(state.refused.clone())
            }
            (CloseReason::Aborted(AbortReason::ByPeer), _) => ConnectError::RefusedByPeer,
            (CloseReason::HostGone, _) => ConnectError::HostGone,
            (ended, _) => ConnectError::Failed(ended),
        }
    }

    /// Hands over a message, and waits while what was handed over before fills the send buffer.
    ///
    /// When it returns `Ok` the message is accepted: it is delivered, unless the association ends other than gracefully,
    /// which [`shutdown`](Self::shutdown) and [`closed`](Self::closed) tell, or its [`Reliability`] lets it be given up, which
    /// [`AssociationEvent::Abandoned`](crate::AssociationEvent) tells. Messages of one task keep their order.
    ///
    /// Cancel-safe: a future that is dropped before it returns has not taken the message.
    ///
    /// # Errors
    /// [`SendError::Refused`] for an empty message, a stream that does not exist, a message with a limit if the peer does not do
    /// [partial reliability](Self::supports_partial_reliability), or after a shutdown began on either side;
    /// [`SendError::Closed`] once it is over.
    pub async fn send(&self, payload: impl Into<Bytes>, options: SendOptions) -> Result<(), SendError> {
        let mut payload = Some(payload.into());
        let shared = &self.handle.shared;
        wait_for(&shared.writable, || {
            let mut state = shared.lock();
            if let Err(error) = admits(&state, payload.as_deref().unwrap_or_default(), options) {
                return Some(Err(error));
            }
            if state.outbox_bytes >= OUTBOX_LIMIT {
                return None;
            }
            // Nothing looks again once it is taken.
            let payload = payload.take()?;
            state.outbox_bytes += payload.len();
            state.outbox.push_back(Outgoing::new(payload, options));
            shared.wake(&mut state, &self.handle.commands);
            Some(Ok(()))
        })
        .await
    }

    /// The next message; `None` once the association has ended gracefully and everything was received.
    ///
    /// A message that is larger than the receive buffer comes in pieces. Without calls the peer's sender comes to a halt as the
    /// receive buffer fills.
    ///
    /// Cancel-safe: a message is taken only by the call that returns it.
    ///
    /// # Errors
    /// [`RecvError::Restarted`] once, after the last message of the peer's previous incarnation; [`RecvError::Closed`] after the last
    /// message of an association that did not end gracefully, so that its end is not mistaken for the peer's.
    pub async fn recv(&self) -> Result<Option<Message>, RecvError> {
        let shared = &self.handle.shared;
        wait_for(&shared.readable, || {
            let mut state = shared.lock();
            match state.inbox.pop_front() {
                Some(Inbound::Message(message)) => {
                    state.inbox_bytes -= message.payload.len();
                    if state.more && state.inbox_bytes < INBOX_LIMIT / 2 {
                        shared.wake(&mut state, &self.handle.commands);
                    }
                    Some(Ok(Some(message)))
                }
                Some(Inbound::Restarted) => Some(Err(RecvError::Restarted)),
                None => match state.phase {
                    Phase::Closed(Ok(()) | Err(CloseReason::Undelivered { .. })) => Some(Ok(None)),
                    Phase::Closed(Err(ended)) => Some(Err(ended.into())),
                    _ => None,
                },
            }
        })
        .await
    }

    /// Ends the association gracefully: everything accepted is delivered first. Waits until both sides have agreed.
    ///
    /// The peer's messages are to be received meanwhile: while they fill the receive buffer, a peer that has more to send cannot
    /// agree. Called on an association that is over it only tells how that ended.
    ///
    /// Cancel-safe: the shutdown has begun with the first poll, and goes on if the future is dropped.
    ///
    /// # Errors
    /// How it ended, if not gracefully.
    pub async fn shutdown(&self) -> Result<(), CloseReason> {
        {
            let mut state = self.handle.shared.lock();
            state.shutdown_wanted = true;
            self.handle.shared.wake(&mut state, &self.handle.commands);
        }
        // Senders that wait are refused from now on.
        self.handle.shared.writable.notify_waiters();
        self.closed().await
    }

    /// Ends the association at once and tells the peer. What was not delivered is lost. [`closed`](Self::closed) waits until
    /// the peer has been told.
    pub fn abort(&self) {
        let mut state = self.handle.shared.lock();
        state.abort_wanted = true;
        self.handle.shared.wake(&mut state, &self.handle.commands);
    }

    /// Waits until the association is over, and does nothing toward it.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// How it ended, if not gracefully.
    pub async fn closed(&self) -> Result<(), CloseReason> {
        let shared = &self.handle.shared;
        wait_for(&shared.changed, || match shared.lock().phase {
            Phase::Closed(outcome) => Some(outcome),
            _ => None,
        })
        .await
    }

    /// What happens from now on: states of paths, a restart of the peer, the end.
    pub fn events(&self) -> Events {
        Events::new(self.handle.shared.listen())
    }

    /// The paths as they are now, or as they were when the association ended.
    ///
    /// Cancel-safe.
    pub async fn paths(&self) -> Vec<PathSnapshot> {
        self.snapshot().await.paths
    }

    /// Paths, counters and buffers as they are now, or as they were when the association ended. Empty if the host went away
    /// before that.
    ///
    /// Cancel-safe.
    pub async fn snapshot(&self) -> Snapshot {
        let shared = &self.handle.shared;
        if let Some(last) = &shared.lock().last {
            return last.clone();
        }
        let (reply, answer) = oneshot::channel();
        let _ = self.handle.commands.send(Command::Snapshot(shared.id, reply));
        match answer.await {
            Ok(snapshot) => snapshot,
            // It ended in between.
            Err(_) => shared.lock().last.clone().unwrap_or_default(),
        }
    }

    /// Who the peer has proved to be; `None` for an association that is not protected.
    pub fn peer_identity(&self) -> Option<PeerIdentity> {
        self.handle.shared.lock().identity.clone()
    }

    /// The keys with which this side can [restart](crate::Host::restart) the association after it has lost everything else. Waits
    /// for such that were not taken yet; `None` once it is over. Without keys that both sides have offered to keep
    /// ([`DtlsProtection::restart`](crate::DtlsProtection::restart)) that is all that happens.
    ///
    /// There are new ones with every change of keys. They take the place of the ones before, which serve for two more minutes under
    /// the default [`KeyPolicy`](crate::KeyPolicy). Stored ones are worth nothing once the association has ended.
    ///
    /// Cancel-safe: keys are taken only by the call that returns them.
    pub async fn restart_keys(&self) -> Option<RestartKeys> {
        let shared = &self.handle.shared;
        wait_for(&shared.changed, || {
            let mut state = shared.lock();
            match state.restart_keys.take() {
                Some(keys) => Some(Some(keys)),
                None => matches!(state.phase, Phase::Closed(_)).then_some(None),
            }
        })
        .await
    }

    /// `length` bytes that both sides, and nobody else, can derive for this label and context (RFC 8446 section 7.5). They follow
    /// from the newest keys, so both sides are to ask before these change, best right after the association was opened.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`ExportError`]; an association that is not protected, or is over, exports nothing.
    pub async fn export_keying_material(
        &self,
        label: &[u8],
        context: Option<&[u8]>,
        length: usize,
    ) -> Result<Vec<u8>, ExportError> {
        let (reply, answer) = oneshot::channel();
        let export = Export { label: label.to_vec(), context: context.map(<[u8]>::to_vec), length };
        self.order(|id| Command::Export(id, Box::new(export), reply));
        answer.await.unwrap_or(Err(ExportError::NotEstablished))
    }

    /// Streams that messages may be sent on, numbered from 0: as many as both sides have.
    pub fn streams(&self) -> u16 {
        self.handle.shared.lock().streams
    }

    /// Whether the peer takes FORWARD-TSN (RFC 3758), so that messages may be sent with less than full reliability.
    pub fn supports_partial_reliability(&self) -> bool {
        self.handle.shared.lock().partial_reliability
    }

    /// Whether it is over, however that came.
    pub fn is_closed(&self) -> bool {
        matches!(self.handle.shared.lock().phase, Phase::Closed(_))
    }

    /// Whether messages are taken.
    pub fn is_open(&self) -> bool {
        let state = self.handle.shared.lock();
        state.phase == Phase::Open && !state.shutdown_wanted
    }
}

/// Whether a message may be handed over at all, now or later.
fn admits(state: &State, payload: &[u8], options: SendOptions) -> Result<(), SendError> {
    if let Phase::Closed(outcome) = state.phase {
        return Err(outcome.err().map_or(anabranch_core::SendError::Closing.into(), SendError::Closed));
    }
    if state.shutdown_wanted || state.abort_wanted || state.phase == Phase::PeerClosing {
        return Err(anabranch_core::SendError::Closing.into());
    }
    if payload.is_empty() {
        return Err(anabranch_core::SendError::Empty.into());
    }
    if options.reliability != Reliability::Full && !state.partial_reliability {
        return Err(anabranch_core::SendError::NoPartialReliability.into());
    }
    if state.protected && options.ppid == KEY_MANAGEMENT_PPID {
        return Err(anabranch_core::SendError::KeyManagementOnly.into());
    }
    if options.stream >= state.streams {
        let (stream, streams) = (options.stream, state.streams);
        return Err(anabranch_core::SendError::NoSuchStream { stream, streams }.into());
    }
    Ok(())
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.handle.shared.lock();
        f.debug_struct("Association")
            .field("id", &self.handle.shared.id)
            .field("phase", &state.phase)
            .finish_non_exhaustive()
    }
}
