//! Error causes of the DTLS chunk, for ABORT only (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "New Error
//! Causes"). IANA has not assigned their codes yet.
//!
//! ```text
//!  | code = 100                    | length = 4                    |  missing DTLS chunk support
//!  | code = 101                    | length = 4                    |  no common DTLS key management method
//!  | code = 102                    | length = 4                    |  DTLS key management tie breaker collision
//!  | code = 103                    | length = 4                    |  incompatible DTLS key management roles
//! ```

#[cfg(test)]
mod tests {
    use crate::testing::{assert_cause, cause_error};
    use crate::{Cause, ParseErrorKind};

    #[test]
    fn layouts() {
        assert_cause(100, &[], Cause::MissingDtlsSupport);
        assert_cause(101, &[], Cause::NoCommonKeyManagement);
        assert_cause(102, &[], Cause::TieBreakerCollision);
        assert_cause(103, &[], Cause::IncompatibleKeyManagementRoles);
    }

    #[test]
    fn other_lengths_are_errors() {
        for code in 100..=103 {
            assert_eq!(cause_error(code, &[0]), ParseErrorKind::WrongLength);
        }
    }
}
