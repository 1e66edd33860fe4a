//! Errors of streams.

use std::io;

use thiserror::Error;

use crate::error::{RecvError, SendError};

/// Reason for which a stream accepts no message.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamSendError {
    /// The receiver reads no more ([`RecvStream::stop`](crate::RecvStream::stop)).
    #[error("the peer reads no more of the stream (code {code}); reset it")]
    Stopped {
        /// Code of the peer's application.
        code: u32,
    },
    /// The stream was finished or reset by this side.
    #[error("the stream was finished or reset by this side; open another one")]
    Ended,
    /// The peer restarted, which ends all streams.
    #[error("the peer restarted, which ended the stream; open another one and send again")]
    Restarted,
    /// The configuration has no stream control.
    #[error("the association was configured without streams; set `Config::stream_control` at this end")]
    NoStreamControl,
    /// The message is refused, or the association is closed.
    #[error(transparent)]
    Association(#[from] SendError),
}

/// Reason for which no message follows on a stream, other than its end.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamRecvError {
    /// The sender gave the stream up ([`SendStream::reset`](crate::SendStream::reset)).
    #[error("the peer gave the stream up (code {code}), so it is incomplete")]
    Reset {
        /// Code of the peer's application.
        code: u32,
    },
    /// The application read too slowly, and the peer does not support credit for each stream.
    #[error(
        "the stream had too many unread bytes for a peer without stream control, and its rest was discarded; read it faster"
    )]
    Stalled,
    /// The peer restarted, which ends all streams.
    #[error("the peer restarted, so the stream is incomplete")]
    Restarted,
    /// The association ended gracefully before the stream did.
    #[error("the peer shut the association down before it finished the stream, so the stream is incomplete")]
    Unfinished,
    /// The configuration has no stream control.
    #[error("the association was configured without streams; set `Config::stream_control` at this end")]
    NoStreamControl,
    /// The association is closed.
    #[error(transparent)]
    Association(#[from] RecvError),
}

impl From<StreamSendError> for io::Error {
    fn from(error: StreamSendError) -> Self {
        let kind = match error {
            StreamSendError::Stopped { .. } | StreamSendError::Restarted => io::ErrorKind::ConnectionReset,
            StreamSendError::Ended => io::ErrorKind::BrokenPipe,
            StreamSendError::NoStreamControl | StreamSendError::Association(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}

impl From<StreamRecvError> for io::Error {
    fn from(error: StreamRecvError) -> Self {
        let kind = match error {
            StreamRecvError::Reset { .. } | StreamRecvError::Restarted => io::ErrorKind::ConnectionReset,
            StreamRecvError::Unfinished => io::ErrorKind::UnexpectedEof,
            StreamRecvError::Stalled => io::ErrorKind::ConnectionAborted,
            StreamRecvError::NoStreamControl | StreamRecvError::Association(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}
