//! Ciphers for the DTLS chunk: the AEADs and sequence number masks of TLS 1.3's three cipher suites (RFC 9147 sections 4.2.3
//! and 5, RFC 8446 section 5.3), for the records of [`anabranch_core::protection`].
//!
//! Keys come from a key management; this crate agrees on none.

mod cipher;
mod material;
mod restart;
mod suite;

pub use material::{KeyMaterial, WrongKeyLength};
pub use restart::{RestartKeys, RestartKeysError};
pub use suite::CipherSuite;
