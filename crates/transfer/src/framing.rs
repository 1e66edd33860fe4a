//! Messages and segments of a transfer over an association.

use std::time::Duration;

use anabranch_net::{Association, Message as Packet, SendOptions};
use bytes::Bytes;
use tokio::time::timeout;

use crate::error::TransferError;
use crate::protocol::{CONTROL_STREAM, DATA_STREAM, Message, ProtocolError, Segment};

/// Interval at which each side reports that it is alive.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(2);
/// Time limit of a graceful shutdown; all messages that matter were sent before it.
pub(crate) const END_WITHIN: Duration = Duration::from_secs(5);

/// Message or segment from the peer.
#[derive(Debug)]
pub(crate) enum IncomingMessage {
    Control(Message),
    Data(Segment),
}

/// Message or segment to the peer.
#[derive(Clone, Debug)]
pub(crate) enum OutgoingMessage {
    Control(Bytes),
    Data(Bytes),
}

impl From<&Message> for OutgoingMessage {
    fn from(message: &Message) -> Self {
        OutgoingMessage::Control(message.encode().into())
    }
}

impl OutgoingMessage {
    pub(crate) fn len(&self) -> usize {
        match self {
            OutgoingMessage::Control(bytes) | OutgoingMessage::Data(bytes) => bytes.len(),
        }
    }
}

/// Sends a message. Cancel-safe, as [`Association::send`] is.
pub(crate) async fn send(association: &Association, message: OutgoingMessage) -> Result<(), TransferError> {
    let (payload, options) = match message {
        OutgoingMessage::Control(bytes) => {
            (bytes, SendOptions { stream: CONTROL_STREAM, immediate: true, ..SendOptions::default() })
        }
        OutgoingMessage::Data(bytes) => {
            (bytes, SendOptions { stream: DATA_STREAM, unordered: true, ..SendOptions::default() })
        }
    };
    Ok(association.send(payload, options).await?)
}

/// Receives the next message or segment of the peer; `None` after a graceful shutdown. Cancel-safe.
pub(crate) async fn recv(association: &Association) -> Result<Option<IncomingMessage>, TransferError> {
    match association.recv().await? {
        Some(packet) => parse(packet).map(Some),
        None => Ok(None),
    }
}

fn parse(packet: Packet) -> Result<IncomingMessage, TransferError> {
    // Messages of this protocol are too short to arrive in several parts.
    if !packet.beginning || !packet.ending {
        return Err(ProtocolError::Garbled.into());
    }
    match packet.stream {
        CONTROL_STREAM => match Message::decode(&packet.payload)? {
            Message::Fail(failure) => Err(TransferError::Peer(failure)),
            message => Ok(IncomingMessage::Control(message)),
        },
        DATA_STREAM => Ok(IncomingMessage::Data(Segment::decode(packet.payload)?)),
        _ => Err(ProtocolError::Unexpected("a stream that is not in use").into()),
    }
}

/// Receives the peer's first message within a time limit.
pub(crate) async fn recv_first(
    association: &Association,
    within: Duration,
) -> Result<Message, TransferError> {
    let first = timeout(within, association.recv()).await;
    let packet = first.map_err(|_| TransferError::Silent(within))??;
    let Some(packet) = packet else {
        return Err(TransferError::Lost("the peer closed it without a reason".to_owned()));
    };
    match Message::decode_first(&packet.payload) {
        Ok(message) => Ok(message),
        // The first message may be a refusal, which has no version.
        Err(ProtocolError::Stranger) => match Message::decode(&packet.payload) {
            Ok(Message::Fail(failure)) => Err(TransferError::Peer(failure)),
            _ => Err(ProtocolError::Stranger.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Ends the association gracefully, so that the last messages arrive.
pub(crate) async fn end(association: &Association) {
    let drained = async { while let Ok(Some(_)) = association.recv().await {} };
    let both = async { tokio::join!(association.shutdown(), drained) };
    if timeout(END_WITHIN, both).await.is_err() {
        association.abort();
    }
}

/// Waits until the peer has ended the association.
pub(crate) async fn await_end(association: &Association) {
    let drained = async { while let Ok(Some(_)) = association.recv().await {} };
    if timeout(END_WITHIN, drained).await.is_err() {
        association.abort();
    }
}
