//! Who the two ends of an association are, and whom they trust.
//!
//! Each user has one Ed25519 key pair ([`KeyPair`]), which TLS shows as a raw public key (RFC 7250). [`KnownHosts`] says which key
//! a host had before, [`AuthorizedKeys`] who may connect. [`Certificates`] are the alternative for those who have a certification
//! authority. Two people who share nothing yet prove to each other that they know a [`OneTimeCode`].
//!
//! This crate has files and cryptography, but no network: what it makes are configurations of rustls.

mod authorized_keys;
mod certificates;
pub mod code;
mod error;
mod fingerprint;
mod home;
mod host_name;
mod key_pair;
mod key_set;
mod known_hosts;
mod label;
mod private_file;
mod public_key;
mod raw_key;
#[cfg(test)]
mod testing;
mod trust_file;

pub use authorized_keys::{AuthorizedKey, AuthorizedKeys, FollowedKeys, Operations, Rights};
pub use certificates::Certificates;
pub use code::OneTimeCode;
pub use error::{ChangedKey, IdentityError};
pub use fingerprint::Fingerprint;
pub use home::Home;
pub use host_name::{HostName, WrongHostName};
pub use key_pair::KeyPair;
pub use key_set::{Admission, KeySet};
pub use known_hosts::{KnownHost, KnownHosts, Standing};
pub use label::{Label, WrongLabel};
pub use public_key::{PublicKey, WrongPublicKey};

/// The body of a fuzz target: any bytes, read as each of the texts that others may write.
#[cfg(feature = "fuzzing")]
pub fn fuzz_texts(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    known_hosts::fuzz(text);
    authorized_keys::fuzz(text);
    code::fuzz(text);
}
