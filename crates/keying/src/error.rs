//! Errors of the key management.

use std::fmt;

use anabranch_core::protection::KeyError;
use rustls::{AlertDescription, Error as TlsError};
use thiserror::Error;

/// Generates the messages about alerts, which name them as RFC 8446 section 6 does.
macro_rules! alerts {
    ($($code:literal $name:literal)*) => {
        fn received(alert: u8) -> &'static str {
            match alert {
                $($code => concat!("the peer ended the TLS handshake with the alert ", $name, " (", $code, ")"),)*
                _ => "the peer ended the TLS handshake with an alert that is not known here",
            }
        }

        fn denied(alert: u8) -> &'static str {
            match alert {
                $($code => concat!("the peer does not accept this side's identity: TLS alert ", $name, " (", $code, ")"),)*
                _ => "the peer does not accept this side's identity",
            }
        }

        fn refused(alert: u8) -> &'static str {
            match alert {
                $($code => concat!("the peer's identity is not accepted here: TLS alert ", $name, " (", $code, ")"),)*
                _ => "the peer's identity is not accepted here",
            }
        }
    };
}

alerts! {
    0 "close_notify" 10 "unexpected_message" 20 "bad_record_mac" 22 "record_overflow" 40 "handshake_failure"
    42 "bad_certificate" 43 "unsupported_certificate" 44 "certificate_revoked" 45 "certificate_expired"
    46 "certificate_unknown" 47 "illegal_parameter" 48 "unknown_ca" 49 "access_denied" 50 "decode_error"
    51 "decrypt_error" 70 "protocol_version" 71 "insufficient_security" 80 "internal_error"
    86 "inappropriate_fallback" 90 "user_canceled" 109 "missing_extension" 110 "unsupported_extension"
    112 "unrecognized_name" 113 "bad_certificate_status_response" 115 "unknown_psk_identity"
    116 "certificate_required" 120 "no_application_protocol"
}

/// Returns `true` for alerts that reject the identity of the peer (RFC 8446 section 6.2): bad_certificate, unsupported_certificate,
/// certificate_revoked, certificate_expired, certificate_unknown, unknown_ca, access_denied and certificate_required.
fn is_about_identity(alert: u8) -> bool {
    matches!(alert, 42..=46 | 48 | 49 | 116)
}

/// Failure that the local TLS reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// An alert arrived before the peer proved its identity. Any host on the path may have sent it.
    PeerAlert(u8),
    /// An alert of the peer, authenticated by its record, arrived after the peer proved its identity.
    Refused(u8),
    /// The verifier rejected the peer's identity with this alert.
    Identity(u8),
    /// The peer did not present an identity.
    NoIdentity,
    /// The peer offers no supported algorithms or versions.
    Incompatible,
    /// The peer violated the protocol, or a host on the path changed a message.
    Misbehaved,
    /// A local error prevents the handshake from continuing.
    Internal,
}

impl TlsProblem {
    pub(crate) fn of(error: &TlsError) -> Self {
        match error {
            TlsError::AlertReceived(alert) => Self::PeerAlert(u8::from(*alert)),
            TlsError::InvalidCertificate(why) => {
                Self::Identity(u8::from(AlertDescription::from(why.clone())))
            }
            TlsError::NoCertificatesPresented => Self::NoIdentity,
            TlsError::PeerIncompatible(_) => Self::Incompatible,
            TlsError::InappropriateMessage { .. }
            | TlsError::InappropriateHandshakeMessage { .. }
            | TlsError::InvalidMessage(_)
            | TlsError::DecryptError
            | TlsError::PeerMisbehaved(_)
            | TlsError::PeerSentOversizedRecord => Self::Misbehaved,
            _ => Self::Internal,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::PeerAlert(alert) => received(alert),
            Self::Refused(alert) if is_about_identity(alert) => denied(alert),
            Self::Refused(alert) => received(alert),
            Self::Identity(alert) => refused(alert),
            Self::NoIdentity => "the peer did not authenticate: TLS alert certificate_required (116)",
            Self::Incompatible => "the peer's TLS has nothing in common with this side's; both need TLS 1.3",
            Self::Misbehaved => {
                "the peer broke the TLS protocol, or its messages were changed on the path; try again"
            }
            Self::Internal => "TLS failed at this side",
        }
    }
}

/// Reason for which the key management failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum KeyingError {
    /// The message is malformed.
    Malformed,
    /// The message or handshake exceeds the size limits.
    TooLong,
    /// The message concerns keys that are not being negotiated.
    WrongEpoch,
    /// The message is out of order.
    Unexpected,
    /// The peer requests new keys too often.
    TooOften,
    /// The first exchange took too long.
    TimedOut,
    /// The association was aborted during the key exchange. Any host on the path may have sent the ABORT.
    Interrupted,
    /// The association was aborted after this endpoint presented its identity, and before the peer confirmed the keys. Any host on
    /// the path may have sent the ABORT.
    Unconfirmed,
    /// The peer's packets cannot be decrypted although the TLS handshake is complete.
    KeysDiffer,
    /// No new keys were negotiated before the current ones expired.
    Expired,
    /// The peer proved another identity than before.
    IdentityChanged,
    /// The negotiated method is not TLS.
    Method,
    /// The association's handshake restarted and gave this endpoint another role.
    RolesChanged,
    /// TLS failed.
    Tls(TlsProblem),
    /// The association rejected keys.
    Keys(KeyError),
}

impl KeyingError {
    /// Returns the message that an aborted association stores. It contains no data from the peer.
    pub fn text(self) -> &'static str {
        match self {
            Self::Malformed => "the peer sent a key management message that cannot be read",
            Self::TooLong => "the peer's TLS handshake is longer than any that is accepted",
            Self::WrongEpoch => "the peer sent a key management message for keys that were not requested",
            Self::Unexpected => "the peer sent a key management message out of turn",
            Self::TooOften => "the peer asks for new keys too often",
            Self::TimedOut => "the TLS handshake was not finished in time; try again",
            Self::Interrupted => "the peer was restarted, is busy, or an attacker on the path ended it",
            Self::Unconfirmed => {
                "the peer was restarted, does not accept this side's identity, or an attacker on the path ended it"
            }
            Self::KeysDiffer => {
                "the peer's keys differ although the TLS handshake is complete: the offered parameters were changed on the path"
            }
            Self::Expired => "no new keys were agreed on while the old ones were good",
            Self::IdentityChanged => "the peer proved another identity with its new keys than before",
            Self::Method => "a key management was agreed on that is not TLS",
            Self::RolesChanged => {
                "the handshake was restarted and this side has another role in the key management since; try again"
            }
            Self::Tls(problem) => problem.text(),
            Self::Keys(KeyError::DataLeft) => {
                "unprotected data that is not part of the key management arrived; it may have been added on the path"
            }
            Self::Keys(KeyError::Closing) => "the association began to shut down before it was protected",
            Self::Keys(_) => "the association did not take the keys",
        }
    }
}

impl KeyingError {
    /// Returns `true` if the peer has proved its identity and rejects that of this endpoint. Other errors are not verdicts.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Tls(TlsProblem::Refused(alert)) if is_about_identity(alert))
    }

    /// Returns `true` if another attempt may succeed: neither a proved identity nor a local setting rules it out.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Malformed
            | Self::TooLong
            | Self::WrongEpoch
            | Self::Unexpected
            | Self::TooOften
            | Self::TimedOut
            | Self::Interrupted
            | Self::Unconfirmed
            | Self::KeysDiffer
            | Self::Expired
            | Self::RolesChanged
            | Self::Keys(_)
            | Self::Tls(TlsProblem::PeerAlert(_) | TlsProblem::Misbehaved) => true,
            Self::Tls(TlsProblem::Refused(_)) => !self.is_refusal(),
            Self::IdentityChanged
            | Self::Method
            | Self::Tls(
                TlsProblem::Identity(_)
                | TlsProblem::NoIdentity
                | TlsProblem::Incompatible
                | TlsProblem::Internal,
            ) => false,
        }
    }
}

impl fmt::Display for KeyingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<KeyError> for KeyingError {
    fn from(error: KeyError) -> Self {
        Self::Keys(error)
    }
}

impl From<TlsProblem> for KeyingError {
    fn from(problem: TlsProblem) -> Self {
        Self::Tls(problem)
    }
}

/// Reason for which nothing was exported.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ExportError {
    /// The association has no keys yet.
    #[error("the association is not protected yet; export once it is")]
    NotEstablished,
    /// TLS rejected the length or the label.
    #[error("TLS does not export this many bytes at once, or does not export this label")]
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_named_with_its_number() {
        let error = KeyingError::from(TlsProblem::of(&TlsError::AlertReceived(AlertDescription::UnknownCA)));
        assert_eq!(error.to_string(), "the peer ended the TLS handshake with the alert unknown_ca (48)");
        let refused = TlsError::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = KeyingError::from(TlsProblem::of(&refused));
        assert_eq!(error.to_string(), "the peer's identity is not accepted here: TLS alert unknown_ca (48)");
    }

    #[test]
    fn only_an_authenticated_alert_about_the_identity_is_a_refusal() {
        let alert = |alert: AlertDescription| u8::from(alert);
        for about_identity in [AlertDescription::AccessDenied, AlertDescription::UnknownCA] {
            let refused = KeyingError::Tls(TlsProblem::Refused(alert(about_identity)));
            assert!(refused.is_refusal() && !refused.is_transient(), "{refused}");
            assert!(refused.text().starts_with("the peer does not accept this side's identity"), "{refused}");
            let forgeable = KeyingError::Tls(TlsProblem::PeerAlert(alert(about_identity)));
            assert!(!forgeable.is_refusal() && forgeable.is_transient(), "{forgeable}");
        }
        let other = KeyingError::Tls(TlsProblem::Refused(alert(AlertDescription::InternalError)));
        assert!(!other.is_refusal() && other.is_transient());
        assert!(
            [KeyingError::Interrupted, KeyingError::Unconfirmed].iter().all(|error| error.is_transient())
        );
    }

    #[test]
    fn error_texts_contain_no_text_of_the_peer() {
        let unknown = TlsProblem::of(&TlsError::AlertReceived(AlertDescription::Unknown(200)));
        assert!(!KeyingError::from(unknown).to_string().contains("200"));
        let other = TlsProblem::of(&TlsError::General("\u{1b}[2J".to_owned()));
        assert_eq!(KeyingError::from(other).to_string(), "TLS failed at this side");
    }
}
