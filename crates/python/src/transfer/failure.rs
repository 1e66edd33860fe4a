//! What went wrong, as threads without an interpreter can say it, and the Python exception for it.

use anabranch_net::{AbortReason, CloseReason, PathError, RecvError, SendError};
use pyo3::PyErr;

use crate::error::SchemeError;

/// Exceptions that the Python package defines.
mod python {
    use pyo3::import_exception;

    import_exception!(anabranch.errors, TransferError);
    import_exception!(anabranch.transfer.errors, ArgumentError);
    import_exception!(anabranch.transfer.errors, AssociationClosedError);
    import_exception!(anabranch.transfer.errors, AssociationLostError);
    import_exception!(anabranch.transfer.errors, AssociationRestartedError);
    import_exception!(anabranch.transfer.errors, ConnectError);
    import_exception!(anabranch.transfer.errors, ConnectRefusedError);
    import_exception!(anabranch.transfer.errors, ConnectTimeoutError);
    import_exception!(anabranch.transfer.errors, ListenError);
}

/// Each has its message.
#[derive(Debug)]
pub(super) enum Failure {
    /// Something that was asked for cannot be.
    Argument(String),
    /// The scheme's expression is wrong.
    Scheme(String),
    /// A host cannot listen.
    Listen(String),
    /// An association could not be opened.
    Connect(String),
    /// Nobody answered.
    Timeout(String),
    /// The peer refused.
    Refused(String),
    /// This side or the peer has ended it.
    Closed(String),
    /// The peer restarted.
    Restarted(String),
    /// It ended other than gracefully, with the reason in a word.
    Lost(String, &'static str),
    /// Anything else.
    Other(String),
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Argument(message) => python::ArgumentError::new_err(message),
            Failure::Scheme(message) => SchemeError::new_err(message),
            Failure::Listen(message) => python::ListenError::new_err(message),
            Failure::Connect(message) => python::ConnectError::new_err(message),
            Failure::Timeout(message) => python::ConnectTimeoutError::new_err(message),
            Failure::Refused(message) => python::ConnectRefusedError::new_err(message),
            Failure::Closed(message) => python::AssociationClosedError::new_err(message),
            Failure::Restarted(message) => python::AssociationRestartedError::new_err(message),
            Failure::Lost(message, reason) => python::AssociationLostError::new_err((message, reason)),
            Failure::Other(message) => python::TransferError::new_err(message),
        }
    }
}

impl Failure {
    /// An association with `peer` that is over, and not gracefully.
    pub(super) fn ended(peer: &str, ended: CloseReason) -> Self {
        let reason = match ended {
            CloseReason::Aborted(AbortReason::ByApplication) => {
                return Failure::Closed(format!("{peer}: {ended}"));
            }
            CloseReason::Aborted(AbortReason::ByPeer) => "aborted-by-peer",
            CloseReason::Aborted(
                AbortReason::NoAnswer | AbortReason::PeerUnreachable | AbortReason::Refused(_),
            ) => "peer-unreachable",
            CloseReason::Aborted(
                AbortReason::Protocol(_)
                | AbortReason::NotProtected(_)
                | AbortReason::KeySpent
                | AbortReason::CipherFailed
                | AbortReason::Tampered(_)
                | AbortReason::KeyManagement(_),
            ) => "protocol",
            CloseReason::Undelivered { .. } => "undelivered",
            CloseReason::Restarted => "restarted",
            CloseReason::HostGone => "host-gone",
        };
        Failure::Lost(format!("{peer}: {ended}"), reason)
    }

    /// An association with `peer` that this side has left.
    pub(super) fn left(peer: &str) -> Self {
        Failure::Closed(format!("{peer}: this side has left the association; open a new one"))
    }

    /// A message for `peer` that was not taken.
    pub(super) fn not_sent(peer: &str, error: SendError) -> Self {
        match error {
            SendError::Closed(ended) => Failure::ended(peer, ended),
            SendError::Refused(anabranch_core::SendError::Closing) => {
                Failure::Closed(format!("{peer}: {error}"))
            }
            SendError::Refused(_) => Failure::Argument(format!("{peer}: {error}")),
        }
    }

    /// No message of `peer`.
    pub(super) fn not_received(peer: &str, error: RecvError) -> Self {
        match error {
            RecvError::Restarted => Failure::Restarted(format!("{peer}: {error}")),
            RecvError::Closed(ended) => Failure::ended(peer, ended),
        }
    }

    /// A path to `peer` that could not be added or removed.
    pub(super) fn no_path(peer: &str, error: &PathError) -> Self {
        match error {
            PathError::Closed | PathError::Refused(anabranch_core::PathError::Closed) => {
                Failure::Closed(format!("{peer}: {error}"))
            }
            _ => Failure::Argument(format!("{peer}: {error}")),
        }
    }
}
