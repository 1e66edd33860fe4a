//! Failures in the form of threads without an interpreter, and their Python exceptions.

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

/// A failure with its message.
#[derive(Debug)]
pub(super) enum Failure {
    /// An argument is invalid.
    Argument(String),
    /// The scheme's expression is invalid.
    Scheme(String),
    /// An endpoint cannot listen.
    Listen(String),
    /// An association could not be opened.
    Connect(String),
    /// The peer did not answer.
    Timeout(String),
    /// The peer refused.
    Refused(String),
    /// This side or the peer has ended the association.
    Closed(String),
    /// The peer restarted.
    Restarted(String),
    /// The association was not ended gracefully, for a reason in one word.
    Lost(String, &'static str),
    /// Another failure.
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
    /// Returns the failure of an association with `peer` that was not ended gracefully.
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
            // Endpoints in Python have no limits of links.
            CloseReason::Barred | CloseReason::EndpointGone => "endpoint-gone",
        };
        Failure::Lost(format!("{peer}: {ended}"), reason)
    }

    /// Returns the failure of an association with `peer` that this side has left.
    pub(super) fn left(peer: &str) -> Self {
        Failure::Closed(format!("{peer}: this side has left the association; open a new one"))
    }

    /// Returns the failure of a message for `peer` that was not accepted.
    pub(super) fn not_sent(peer: &str, error: SendError) -> Self {
        match error {
            SendError::Closed(ended) => Failure::ended(peer, ended),
            SendError::Refused(anabranch_core::SendError::Closing) => {
                Failure::Closed(format!("{peer}: {error}"))
            }
            refused => Failure::Argument(format!("{peer}: {refused}")),
        }
    }

    /// Returns the failure to receive a message of `peer`.
    pub(super) fn not_received(peer: &str, error: RecvError) -> Self {
        match error {
            RecvError::Restarted => Failure::Restarted(format!("{peer}: {error}")),
            RecvError::Closed(ended) => Failure::ended(peer, ended),
            other => Failure::Other(format!("{peer}: {other}")),
        }
    }

    /// Returns the failure to add or remove a path to `peer`.
    pub(super) fn no_path(peer: &str, error: &PathError) -> Self {
        match error {
            PathError::Closed | PathError::Refused(anabranch_core::PathError::Closed) => {
                Failure::Closed(format!("{peer}: {error}"))
            }
            _ => Failure::Argument(format!("{peer}: {error}")),
        }
    }
}
