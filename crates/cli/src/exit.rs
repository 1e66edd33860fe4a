//! Exit statuses and errors of the command.

use std::fmt::{self, Display};

use anabranch_net::ConnectError;
use anabranch_transfer::TransferError;

use crate::output;

/// Exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success of the whole command.
    Success,
    /// A run failed, or a file could not be read or written.
    Failure,
    /// The command line or the scenario is wrong.
    Usage,
    /// A transfer ended, and some files were left out.
    Incomplete,
    /// The peer's identity has changed or was not proved.
    Untrusted,
    /// Stopped by Ctrl-C.
    Interrupted,
}

impl Status {
    /// Returns the status as the shell receives it.
    pub fn code(self) -> u8 {
        match self {
            Status::Success => 0,
            Status::Failure => 1,
            Status::Usage => 2,
            Status::Incomplete => 3,
            Status::Untrusted => 4,
            Status::Interrupted => 130,
        }
    }
}

/// Advice on another attempt after one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryAdvice {
    /// Unknown so far.
    Open,
    /// Another attempt may succeed at once.
    Transient,
    /// The peer has given its verdict.
    Final,
}

/// Failure of a command, with its exit status.
#[derive(Debug)]
pub(crate) struct CommandError {
    status: Status,
    error: anyhow::Error,
    outlook: RetryAdvice,
}

impl CommandError {
    fn new(status: Status, message: impl Display) -> Self {
        CommandError { status, error: anyhow::Error::msg(message.to_string()), outlook: RetryAdvice::Open }
    }

    /// Returns a failure to connect, with the outlook for another attempt.
    pub(crate) fn connecting(error: &ConnectError, message: impl Display) -> Self {
        let outlook = match error {
            ConnectError::Denied { .. } => RetryAdvice::Final,
            _ => RetryAdvice::Open,
        };
        CommandError { outlook, ..CommandError::failure(message) }
    }

    /// Returns a failure after which another attempt may succeed at once.
    pub(crate) fn transient(message: impl Display) -> Self {
        CommandError { outlook: RetryAdvice::Transient, ..CommandError::failure(message) }
    }

    /// Returns `true` if another attempt may succeed at once.
    pub(crate) fn is_transient(&self) -> bool {
        self.outlook == RetryAdvice::Transient
    }

    /// Returns `true` if no further attempt to connect can succeed.
    pub(crate) fn is_final(&self) -> bool {
        self.status == Status::Untrusted || self.outlook == RetryAdvice::Final
    }

    /// Returns an error in the user's input. The message names the place first.
    pub(crate) fn usage(message: impl Display) -> Self {
        CommandError::new(Status::Usage, message)
    }

    /// Returns a failure that the command line did not cause.
    pub(crate) fn failure(message: impl Display) -> Self {
        CommandError::new(Status::Failure, message)
    }

    /// Returns the error about an untrusted peer: no data was sent to it, and no data of it was used.
    pub(crate) fn untrusted(message: impl Display) -> Self {
        CommandError::new(Status::Untrusted, message)
    }

    /// Prints the reason.
    pub(crate) fn report(self) -> Status {
        // Names of files and text of peers are untrusted. The line breaks are the command's own.
        for line in format!("{:#}", self.error).lines() {
            output::notice(anabranch_transfer::escape(line));
        }
        self.status
    }
}

impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

/// Converts the failure of an attempt to connect again. Untrusted peers and peers that have given their verdict are not tried
/// again.
impl From<CommandError> for TransferError {
    fn from(error: CommandError) -> Self {
        // The end of a transfer is reported in one line.
        let text = error.to_string().lines().collect::<Vec<_>>().join("; ");
        match (error.status, error.outlook) {
            (Status::Untrusted, _) => TransferError::Untrusted(text),
            (_, RetryAdvice::Final) => TransferError::Denied(text),
            _ => TransferError::Lost(text),
        }
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        CommandError { status: Status::Failure, error, outlook: RetryAdvice::Open }
    }
}
