//! Error causes of association teardown (RFC 9260 sections 3.3.10.10, 3.3.10.12 and 3.3.10.13).
//!
//! ```text
//!  | code = 10                     | length = 4                    |  cookie received while shutting down
//!
//!  | code = 12                     | length                        |  user-initiated abort
//!  | a reason that means nothing to SCTP, possibly none            |
//!
//!  | code = 13                     | length                        |  protocol violation
//!  | additional information, possibly none                         |
//! ```

#[cfg(test)]
mod tests {
    use crate::testing::{assert_cause, cause_error};
    use crate::{Cause, ParseErrorKind};

    #[test]
    fn layouts() {
        assert_cause(10, &[], Cause::CookieWhileShuttingDown);
        assert_cause(12, b"reason", Cause::UserInitiatedAbort(b"reason"));
        assert_cause(12, &[], Cause::UserInitiatedAbort(&[]));
        assert_cause(13, b"which", Cause::ProtocolViolation(b"which"));
    }

    #[test]
    fn other_lengths_are_errors() {
        assert_eq!(cause_error(10, &[0]), ParseErrorKind::WrongLength);
    }
}
