//! Texts of refusals.

use crate::error::TransferError;
use crate::name::Name;
use crate::protocol::{Failure, Reason};

pub(super) fn corrupt(name: &Name) -> Failure {
    let text =
        format!("{name}: the received data differs from the sent data, and was discarded; send it again");
    Failure::new(Reason::Corrupt, text)
}

/// Returns the refusal of a file that another transfer does not release. `shown` is the displayed name of the file.
pub(super) fn busy(shown: &str) -> Failure {
    let text = format!("{shown} is being received from another sender; try again when that is done");
    Failure::new(Reason::Busy, text)
}

pub(super) fn hidden(name: &Name) -> Failure {
    let text = format!(
        "{name} was omitted by the receiver: names that begin with a dot are stored with --hidden or if requested by name"
    );
    Failure::new(Reason::NotAllowed, text)
}

/// Returns the failure that is reported to the peer when its message ends the transfer.
pub(super) fn refusal(error: &TransferError) -> Failure {
    match error {
        TransferError::NotRequested(name) => {
            Failure::new(Reason::NotAllowed, format!("{name} was not requested; offer only requested names"))
        }
        TransferError::Unconfirmed(what) => {
            Failure::new(Reason::NotAllowed, format!("more was offered than is confirmed here: {what}"))
        }
        error => Failure::new(Reason::Protocol, error.to_string()),
    }
}

pub(super) fn refused_by_pipe(name: &Name, is_begun: bool) -> Failure {
    let text = match is_begun {
        true => format!("{name} is not the file whose transfer began; start it again"),
        false => format!("{name}: a pipe takes one file only; ask for one by its name"),
    };
    Failure::new(Reason::NotAllowed, text)
}

pub(super) fn excluded(name: &Name) -> Failure {
    Failure::new(Reason::NotAllowed, format!("{name} is excluded by --exclude, but was offered"))
}
