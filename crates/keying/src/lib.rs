//! Key management for the DTLS chunk by TLS 1.3 (draft-porfiri-tsvwg-sctp-dtls-handshake): handshakes in user messages of the
//! association that they protect, and further handshakes for new keys while data flows.
//!
//! [`KeyManager`] has no IO and no clock. The driver of an association passes it the time and the messages of
//! [`KEY_MANAGEMENT_PPID`](anabranch_core::protection::KEY_MANAGEMENT_PPID). The manager sends its own messages over the
//! association, installs keys there, and reports events.

mod allowance;
mod credentials;
mod error;
mod exchange;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod key_log;
mod manager;
mod message;
mod policy;
mod scripted;
mod tls;

pub use anabranch_dtls::crypto;
pub use anabranch_dtls::{RestartKeys, RestartKeysError};
pub use credentials::{Credentials, IdentityForm, PeerIdentity};
pub use error::{ExportError, KeyingError, TlsProblem};
pub use exchange::{Direction, KeyExchange, KeyExchanges, ParameterBinding, Part, Progress};
#[cfg(feature = "fuzzing")]
pub use fuzzing::fuzz_message;
pub use key_log::{KeyLog, LoggedKeys};
pub use manager::{KeyManager, KeyingEvent, KeyingStatistics, Phase};
pub use policy::KeyPolicy;
pub use rustls;
/// Provider of rustls from the selected library of cryptographic primitives.
#[cfg(feature = "aws-lc-rs")]
pub use rustls::crypto::aws_lc_rs as provider;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub use rustls::crypto::ring as provider;
pub use scripted::ScriptedExchanges;
pub use tls::TlsExchanges;
