//! How the command ends.

use std::fmt::{self, Display};

use anabranch_net::ConnectError;
use anabranch_transfer::TransferError;

use crate::output;

/// The exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All went well.
    Success,
    /// A run failed, or a file could not be read or written.
    Failure,
    /// The command line or the scenario is wrong.
    Usage,
    /// A transfer came to its end, and some files were left out.
    Incomplete,
    /// The peer is not who it was before, or did not prove who it is.
    Untrusted,
    /// Stopped by Ctrl-C.
    Interrupted,
}

impl Status {
    /// As the shell sees it.
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

/// Outlook for another attempt after one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outlook {
    /// It is not known.
    Open,
    /// Another attempt may succeed at once.
    Transient,
    /// The peer has given its verdict.
    Final,
}

/// Why a command failed, with its exit status.
#[derive(Debug)]
pub(crate) struct CommandError {
    status: Status,
    error: anyhow::Error,
    outlook: Outlook,
}

impl CommandError {
    fn new(status: Status, message: impl Display) -> Self {
        CommandError { status, error: anyhow::Error::msg(message.to_string()), outlook: Outlook::Open }
    }

    /// A failure to connect, with what it says about another attempt.
    pub(crate) fn connecting(error: &ConnectError, message: impl Display) -> Self {
        let outlook = match error {
            ConnectError::Denied { .. } => Outlook::Final,
            _ => Outlook::Open,
        };
        CommandError { outlook, ..CommandError::failure(message) }
    }

    /// A failure after which another attempt may succeed at once.
    pub(crate) fn transient(message: impl Display) -> Self {
        CommandError { outlook: Outlook::Transient, ..CommandError::failure(message) }
    }

    /// Returns `true` if another attempt may succeed at once.
    pub(crate) fn is_transient(&self) -> bool {
        self.outlook == Outlook::Transient
    }

    /// Something the user wrote is wrong. The message names the place first.
    pub(crate) fn usage(message: impl Display) -> Self {
        CommandError::new(Status::Usage, message)
    }

    /// Something did not go well, through no fault of the command line.
    pub(crate) fn failure(message: impl Display) -> Self {
        CommandError::new(Status::Failure, message)
    }

    /// The peer is not to be trusted: nothing was sent to it, and nothing was taken from it.
    pub(crate) fn untrusted(message: impl Display) -> Self {
        CommandError::new(Status::Untrusted, message)
    }

    /// Prints the reason.
    pub(crate) fn report(self) -> Status {
        // Names of files and what peers say are others' text; line breaks are ours.
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

/// Of an attempt to connect again: neither a peer that is not to be trusted nor one that has given its verdict is asked again.
impl From<CommandError> for TransferError {
    fn from(error: CommandError) -> Self {
        // What ends a transfer is told in one line.
        let text = error.to_string().lines().collect::<Vec<_>>().join("; ");
        match (error.status, error.outlook) {
            (Status::Untrusted, _) => TransferError::Untrusted(text),
            (_, Outlook::Final) => TransferError::Denied(text),
            _ => TransferError::Lost(text),
        }
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        CommandError { status: Status::Failure, error, outlook: Outlook::Open }
    }
}
