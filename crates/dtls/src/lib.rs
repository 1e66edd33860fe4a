//! Ciphers for the DTLS chunk: AEADs and sequence number encryption of the three TLS 1.3 cipher suites (RFC 9147 sections 4.2.3 and
//! 5, RFC 8446 section 5.3), for the records of [`anabranch_core::protection`].
//!
//! This crate does not negotiate keys. A key management supplies them.
//!
//! The features `aws-lc-rs` (default) and `ring` select the library of cryptographic primitives.

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
compile_error!(
    "protection needs a library of cryptographic primitives: enable the feature `aws-lc-rs` or `ring`"
);

mod cipher;
mod material;
mod restart;
mod suite;

/// Selected library of cryptographic primitives. Only names that both libraries have may be used.
#[cfg(feature = "aws-lc-rs")]
pub use aws_lc_rs as crypto;
pub use material::{KeyMaterial, WrongKeyLength};
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub use ring as crypto;

pub use restart::{RestartKeys, RestartKeysError};
pub use suite::CipherSuite;
