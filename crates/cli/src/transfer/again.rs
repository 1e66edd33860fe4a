//! Commands that resume a transfer.

use std::ffi::OsString;
use std::iter;

use anabranch_transfer::{TransferError, escape};

/// Remedy for every transfer that can be resumed.
pub(super) const KEPT: &str = "received blocks are kept: start it again to resume";

/// Remedy after an offer with a one-time code.
pub(super) const KEPT_BY_CODE: &str = "the code is no longer valid; received blocks are kept: start it again and give the receiver the new code";

/// Remedy after an offer with a one-time code through a pipe.
pub(super) const PIPED_BY_CODE: &str = "the code is no longer valid; a pipe cannot be resumed: start it again from the beginning and give the receiver the new code";

/// Note on an offer with a one-time code that ended before anything was transferred.
pub(super) const CODE_UNUSED: &str = "the code is no longer valid: start it again for another one";

/// Note on an interrupted transfer through a pipe.
pub(super) const PIPED: &str = "a pipe cannot be resumed by another command: start again from the beginning";

/// Returns the typed command for a shell. Returns `None` if the command cannot be repeated by copying it: data from a pipe has to
/// be written again, and a terminal does not show every text unchanged.
pub(super) fn command(typed: &[OsString]) -> Option<String> {
    let words: Vec<&str> = typed.iter().skip(1).map(|word| word.to_str()).collect::<Option<_>>()?;
    if words.contains(&"-") {
        return None;
    }
    let text = shlex::try_join(iter::once("anabranch").chain(words)).ok()?;
    (escape(&text) == text).then_some(text)
}

/// Returns the remedy after a transfer that was not completed, on the side that began it.
pub(super) fn remedy(error: &TransferError) -> String {
    if is_resumable(error) { format!("; {KEPT}") } else { String::new() }
}

/// Returns the remedy on the side that waits for others.
pub(super) fn remedy_there(error: &TransferError) -> &'static str {
    if is_resumable(error) { "; received blocks are kept, and the peer can resume" } else { "" }
}

/// Returns `true` if the same command resumes the transfer.
pub(super) fn is_resumable(error: &TransferError) -> bool {
    match error {
        TransferError::Lost(_)
        | TransferError::StoppedHere
        | TransferError::Stopped
        | TransferError::Silent(_)
        | TransferError::Unconfirmed(_) => true,
        TransferError::Replaced
        | TransferError::Preempted
        | TransferError::Untrusted(_)
        | TransferError::Denied(_)
        | TransferError::Protocol(_)
        | TransferError::NotRequested(_)
        | TransferError::Peer(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_of(words: &[&str]) -> Option<String> {
        command(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn printed_resume_command_has_all_options() {
        assert_eq!(
            command_of(&["/usr/bin/anabranch", "send", "my film.mkv", "host", "--limit", "5Mbit"]).as_deref(),
            Some("anabranch send 'my film.mkv' host --limit 5Mbit")
        );
        for none in [["anabranch", "send", "-", "host"], ["anabranch", "send", "a\u{1b}[2Jb", "host"]] {
            assert_eq!(command_of(&none), None);
        }
    }
}
