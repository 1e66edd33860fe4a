//! Ciphers for the DTLS chunk: AEADs and sequence number encryption of the three TLS 1.3 cipher suites (RFC 9147 sections 4.2.3 and
//! 5, RFC 8446 section 5.3), for the records of [`anabranch_core::protection`].
//!
//! This crate does not negotiate keys. A key management supplies them.

mod cipher;
mod material;
mod restart;
mod suite;

pub use material::{KeyMaterial, WrongKeyLength};
pub use restart::{RestartKeys, RestartKeysError};
pub use suite::CipherSuite;
