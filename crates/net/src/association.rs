//! Handle of an association.

use std::fmt;
use std::sync::Arc;

use crate::keying::{ExportError, PeerIdentity, RestartKeys};
use anabranch_core::{AbortReason, AssociationId, SendOptions};
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::{CloseReason, ConnectError, RecvError, SendError};
use crate::event::Events;
use crate::message::Message;
use crate::shared::{Command, Export, Handle, INBOX_LIMIT, Inbound, Phase, wait_for};
use crate::snapshot::{PathSnapshot, Snapshot};
use crate::stream_state::StreamKey;
use crate::streams::{RecvStream, SendStream, StreamRecvError, StreamSendError};

/// SCTP association: messages on several streams, over several paths.
///
/// Clones are handles of the same association. All methods take `&self`, so one task can send while another receives.
///
/// **Dropping the last handle** aborts the association, so that the peer does not mistake a panic for a regular end. It does not
/// abort after a call of [`shutdown`](Self::shutdown), even if the future of that call was dropped. Nor does it abort if the peer
/// has shut down and all its data was received: then the graceful end continues, and data that still arrives is discarded.
#[derive(Clone)]
pub struct Association {
    handle: Arc<Handle>,
}

impl Association {
    pub(crate) fn new(handle: Handle) -> Self {
        Association { handle: Arc::new(handle) }
    }

    /// Sends a command about this association to the endpoint's task.
    pub(crate) fn order(&self, command: impl FnOnce(AssociationId) -> Command) {
        // If the task has ended, the command is dropped together with the reply channel.
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

    /// Returns the error for a handshake that ended this way.
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
            (CloseReason::EndpointGone, _) => ConnectError::EndpointGone,
            (ended, _) => ConnectError::Failed(ended),
        }
    }

    /// Sends a message. Waits while earlier messages fill the send buffer.
    ///
    /// `Ok` means that the message is accepted. It is delivered, unless the association ends other than gracefully, as
    /// [`shutdown`](Self::shutdown) and [`closed`](Self::closed) report, or its [`Reliability`](crate::Reliability) permits
    /// abandoning it, as [`AssociationEvent::Abandoned`](crate::AssociationEvent) reports. Messages of one task keep their order.
    ///
    /// Cancel-safe: a future that is dropped before it returns has not accepted the message.
    ///
    /// # Errors
    /// Returns [`SendError::Refused`] for an empty message, an invalid stream, a limited message if the peer does not support
    /// [partial reliability](Self::supports_partial_reliability), or after a shutdown began on either side. Returns
    /// [`SendError::Closed`] once the association is closed.
    pub async fn send(&self, payload: impl Into<Bytes>, options: SendOptions) -> Result<(), SendError> {
        let payload = payload.into();
        let shared = &self.handle.shared;
        if shared.stream_control && !options.unordered {
            return Err(SendError::BelongsToStreams);
        }
        wait_for(&shared.writable, || {
            let mut state = shared.lock();
            if let Err(error) = state.admits(&payload, options) {
                return Some(Err(error));
            }
            if !state.mailbox.offer(&payload, options) {
                return None;
            }
            shared.wake(&mut state, &self.handle.commands);
            Some(Ok(()))
        })
        .await
    }

    /// Returns the next message, or `None` once the association has ended gracefully and all messages were received.
    ///
    /// A message larger than the receive buffer is delivered in pieces. If the application does not call it, the receive buffer
    /// fills and the peer stops sending.
    ///
    /// Cancel-safe: only the call that returns a message removes it.
    ///
    /// # Errors
    /// Returns [`RecvError::Restarted`] once, after the last message of the peer's previous incarnation. Returns
    /// [`RecvError::Closed`] after the last message of an association that did not end gracefully.
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

    /// Opens a stream: an identifier in both directions, each of which ends by itself. Waits while all identifiers of this side, half
    /// of the association's [streams](Self::streams), are in use. An identifier is free again when both directions have ended.
    ///
    /// The peer sees the stream with its first message.
    ///
    /// ```
    /// use anabranch_net::{Endpoint, PathAddress, Peer, Protection, SendOptions};
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = anabranch_net::Config::default().stream_control();
    /// # let endpoint = || Endpoint::builder(Protection::Insecure).local("127.0.0.1:0".parse().unwrap());
    /// # let (server, client) = (endpoint().accept(config.clone()).bind()?, endpoint().bind()?);
    /// # let path = PathAddress::over_udp("127.0.0.1".parse()?, server.local_addresses()[0]);
    /// # let peer = Peer::new([path]).sctp_port(server.sctp_port());
    /// # let serving = tokio::spawn(async move {
    /// #     let association = server.accept().await.unwrap();
    /// #     while let Some((mut sender, mut receiver)) = association.accept_stream().await.unwrap() {
    /// #         tokio::io::copy(&mut receiver, &mut sender).await.unwrap();
    /// #         sender.finish().unwrap();
    /// #     }
    /// # });
    /// let association = client.connect(peer, config).await?;
    /// # let mut answer = Vec::new();
    /// # // ANCHOR: streams
    /// let (mut sender, mut receiver) = association.open_stream().await?;
    /// sender.write_all(b"GET /").await?;
    /// sender.finish()?;
    /// receiver.read_to_end(&mut answer).await?;
    /// # // ANCHOR_END: streams
    /// assert_eq!(answer, b"GET /");
    /// association.shutdown().await?;
    /// # serving.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// Returns [`StreamSendError::NoStreamControl`] unless the [configuration](crate::Config::stream_control) has it, and
    /// [`StreamSendError::Association`] after a shutdown began on either side, or once the association is closed.
    pub async fn open_stream(&self) -> Result<(SendStream, RecvStream), StreamSendError> {
        let shared = &self.handle.shared;
        if !shared.stream_control {
            return Err(StreamSendError::NoStreamControl);
        }
        let key = wait_for(&shared.opened, || {
            let mut state = shared.lock();
            match state.is_ending() {
                Some(error) => Some(Err(error)),
                None => state.streams.open().map(Ok),
            }
        })
        .await?;
        Ok(self.halves(key))
    }

    /// Returns the next stream that the peer has opened, or `None` once the association has ended gracefully.
    ///
    /// Cancel-safe: only the call that returns a stream removes it.
    ///
    /// # Errors
    /// Returns [`StreamRecvError::NoStreamControl`] unless the [configuration](crate::Config::stream_control) has it, and
    /// [`StreamRecvError::Association`] if the association did not end gracefully.
    pub async fn accept_stream(&self) -> Result<Option<(SendStream, RecvStream)>, StreamRecvError> {
        let shared = &self.handle.shared;
        if !shared.stream_control {
            return Err(StreamRecvError::NoStreamControl);
        }
        let key = wait_for(&shared.opened, || {
            let mut state = shared.lock();
            match (state.streams.accept(), state.phase) {
                (Some(key), _) => Some(Ok(Some(key))),
                (None, Phase::Closed(Ok(()) | Err(CloseReason::Undelivered { .. }))) => Some(Ok(None)),
                (None, Phase::Closed(Err(ended))) => Some(Err(RecvError::from(ended))),
                (None, _) => None,
            }
        })
        .await?;
        Ok(key.map(|key| self.halves(key)))
    }

    fn halves(&self, key: StreamKey) -> (SendStream, RecvStream) {
        (SendStream::new(Arc::clone(&self.handle), key), RecvStream::new(Arc::clone(&self.handle), key))
    }

    /// Ends the association gracefully, after delivering all accepted messages. Waits until both endpoints have agreed.
    ///
    /// The application must continue to receive the peer's messages: while they fill the receive buffer, a peer with more data
    /// cannot agree. If the association is closed already, the call only reports how it ended.
    ///
    /// Cancel-safe: the shutdown begins with the first poll, and continues if the future is dropped.
    ///
    /// # Errors
    /// Returns the reason if the association did not end gracefully.
    pub async fn shutdown(&self) -> Result<(), CloseReason> {
        {
            let mut state = self.handle.shared.lock();
            state.shutdown_wanted = true;
            self.handle.shared.wake(&mut state, &self.handle.commands);
        }
        // Waiting senders are refused from now on.
        self.handle.shared.writable.notify_waiters();
        self.closed().await
    }

    /// Aborts the association and notifies the peer. Undelivered messages are lost. [`closed`](Self::closed) waits for the ABORT.
    pub fn abort(&self) {
        let mut state = self.handle.shared.lock();
        state.abort_wanted = true;
        self.handle.shared.wake(&mut state, &self.handle.commands);
    }

    /// Waits until the association is closed, without closing it.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// Returns the reason if the association did not end gracefully.
    pub async fn closed(&self) -> Result<(), CloseReason> {
        let shared = &self.handle.shared;
        wait_for(&shared.changed, || match shared.lock().phase {
            Phase::Closed(outcome) => Some(outcome),
            _ => None,
        })
        .await
    }

    /// Returns a stream of future events: path states, restarts of the peer, the end.
    pub fn events(&self) -> Events {
        Events::new(self.handle.shared.listen())
    }

    /// Returns the current paths, or those at the end of the association.
    ///
    /// Cancel-safe.
    pub async fn paths(&self) -> Vec<PathSnapshot> {
        self.snapshot().await.paths
    }

    /// Returns current paths, counters and buffers, or those at the end of the association. Empty if the endpoint stopped before
    /// that.
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
            // The association ended in the meantime.
            Err(_) => shared.lock().last.clone().unwrap_or_default(),
        }
    }

    /// Returns the identity that the peer has proved, or `None` for an unprotected association.
    pub fn peer_identity(&self) -> Option<PeerIdentity> {
        self.handle.shared.lock().identity.clone()
    }

    /// Returns the keys with which this endpoint can [restart](crate::Endpoint::restart) the association after losing all other
    /// state. Waits for keys that were not returned yet; returns `None` once the association is closed. The future never completes
    /// unless both endpoints offered to keep such keys ([`DtlsProtection::restart`](crate::DtlsProtection::restart)).
    ///
    /// Each change of keys produces new ones. They replace the previous ones, which remain valid for two minutes under the default
    /// [`KeyPolicy`](crate::KeyPolicy). Stored keys are useless once the association has ended.
    ///
    /// Cancel-safe: only the call that returns keys removes them.
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

    /// Returns `length` bytes that only the two endpoints can derive for this label and context (RFC 8446 section 7.5). The bytes
    /// depend on the newest keys. Both applications should therefore export before the keys change, preferably right after opening.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// Returns [`ExportError`] if the association is not protected, is closed, or TLS refuses.
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

    /// Returns the number of streams for sending, numbered from 0: as many as both endpoints have.
    pub fn streams(&self) -> u16 {
        self.handle.shared.lock().rules.streams()
    }

    /// Returns `true` if the peer supports FORWARD-TSN (RFC 3758), so that messages may be sent with limited reliability.
    pub fn supports_partial_reliability(&self) -> bool {
        self.handle.shared.lock().rules.partial_reliability()
    }

    /// Returns `true` once the association is closed, gracefully or not.
    pub fn is_closed(&self) -> bool {
        matches!(self.handle.shared.lock().phase, Phase::Closed(_))
    }

    /// Returns `true` if messages are accepted.
    pub fn is_open(&self) -> bool {
        let state = self.handle.shared.lock();
        state.phase == Phase::Open && !state.shutdown_wanted
    }
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
