//! Reasons why a transfer fails.

use std::time::Duration;

use anabranch_net::{AbortReason, CloseReason, ConnectError, RecvError, SendError};
use thiserror::Error;

use crate::name::Name;
use crate::protocol::{Failure, ProtocolError, Reason};
use crate::random::RandomError;
use crate::text::PeerText;

/// Reason why a transfer failed. Content that has arrived is kept, and a transfer of the same content resumes there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TransferError {
    /// The association was lost.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// This side ended the association, for example at Ctrl-C.
    #[error("this side stopped")]
    StoppedHere,
    /// The peer ended the association because its user stopped the transfer.
    #[error("the peer stopped")]
    Stopped,
    /// No message was received from the peer for this time.
    #[error("no message arrived from the peer for {} s", .0.as_secs())]
    Silent(Duration),
    /// Another association of the same transfer replaced this one.
    #[error("the same transfer continues over another connection")]
    Replaced,
    /// The transfer made no progress, and another transfer took its place.
    #[error("the transfer made no progress while another one needed its place; received content is kept")]
    Preempted,
    /// The peer is not the one known from earlier transfers. This side has sent no data to the peer, and has accepted none.
    #[error("{0}")]
    Untrusted(String),
    /// The peer does not accept this side, and has authenticated itself.
    #[error("{0}")]
    Denied(String),
    /// The peer violated the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The peer offered something that was not requested.
    #[error(
        "the peer offered `{0}`, which was not requested; the transfer was ended, and no part of the offer was stored"
    )]
    NotRequested(Name),
    /// The peer offered more content than the user has confirmed.
    #[error(
        "the peer offered more than was confirmed: {0}; the transfer was ended, and no file beyond it was stored"
    )]
    Unconfirmed(PeerText),
    /// The peer reported that it cannot continue.
    #[error("the peer refuses: {0}")]
    Peer(Failure),
}

impl TransferError {
    /// Returns `true` if the transfer may succeed over another association.
    pub fn is_transient(&self) -> bool {
        match self {
            TransferError::Lost(_)
            | TransferError::StoppedHere
            | TransferError::Stopped
            | TransferError::Silent(_) => true,
            TransferError::Peer(failure) => failure.reason == Reason::Busy,
            TransferError::Replaced
            | TransferError::Preempted
            | TransferError::Untrusted(_)
            | TransferError::Denied(_)
            | TransferError::Protocol(_)
            | TransferError::NotRequested(_)
            | TransferError::Unconfirmed(_) => false,
        }
    }
}

impl From<ConnectError> for TransferError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Denied { .. } => TransferError::Denied(error.to_string()),
            error => TransferError::Lost(error.to_string()),
        }
    }
}

impl From<CloseReason> for TransferError {
    /// The association's text about lost messages does not apply to a transfer, which resumes where it was interrupted.
    fn from(ended: CloseReason) -> Self {
        match ended {
            CloseReason::Aborted(AbortReason::ByPeer) => TransferError::Stopped,
            CloseReason::Aborted(AbortReason::ByApplication) => TransferError::StoppedHere,
            CloseReason::Aborted(reason) => TransferError::Lost(reason.to_string()),
            CloseReason::Undelivered { .. } => TransferError::Lost("the peer ended it early".to_owned()),
            CloseReason::Restarted => TransferError::Lost("the peer restarted".to_owned()),
            CloseReason::Barred | CloseReason::EndpointGone => TransferError::Lost(ended.to_string()),
        }
    }
}

impl From<RecvError> for TransferError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Restarted => CloseReason::Restarted.into(),
            RecvError::Closed(ended) => ended.into(),
            other => TransferError::Lost(other.to_string()),
        }
    }
}

impl From<RandomError> for TransferError {
    fn from(error: RandomError) -> Self {
        TransferError::Lost(error.to_string())
    }
}

impl From<SendError> for TransferError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed(ended) => ended.into(),
            refused => TransferError::Lost(refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_an_association_is_a_retryable_error() {
        for ended in [
            CloseReason::Aborted(AbortReason::ByPeer),
            CloseReason::Aborted(AbortReason::PeerUnreachable),
            CloseReason::Aborted(AbortReason::ByApplication),
            CloseReason::Undelivered { messages: 3 },
            CloseReason::Restarted,
        ] {
            for error in
                [TransferError::from(RecvError::Closed(ended)), TransferError::from(SendError::Closed(ended))]
            {
                assert!(error.is_transient(), "{error:?}");
                let text = error.to_string();
                assert!(
                    !text.contains("is lost")
                        && !text.contains("open a new")
                        && !text.contains("application"),
                    "{text}"
                );
            }
        }
        let stopped = TransferError::from(RecvError::Closed(CloseReason::Aborted(AbortReason::ByPeer)));
        assert_eq!(stopped, TransferError::Stopped);
    }
}
