//! Identities of the endpoints of an association, and the trust between them.
//!
//! Each user has one Ed25519 key pair ([`KeyPair`]), which TLS presents as a raw public key (RFC 7250). [`KnownHosts`] lists the
//! keys that hosts presented before, and [`AuthorizedKeys`] the keys that may connect. [`Certificates`] are the alternative for
//! users with a certification authority. Two users without shared keys prove to each other that they know a [`OneTimeCode`].
//!
//! This crate accesses files and uses cryptography, but no network. It produces rustls configurations.

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
mod room;
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
pub use known_hosts::{HostStatus, KnownHost, KnownHosts};
pub use label::{Label, WrongLabel};
pub use public_key::{PublicKey, WrongPublicKey};
pub use room::{Room, WrongRoom};

/// Fuzz target: parses any bytes as each kind of text that others may write.
#[cfg(feature = "fuzzing")]
pub fn fuzz_texts(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    known_hosts::fuzz(text);
    authorized_keys::fuzz(text);
    code::fuzz(text);
    let _ = text.parse::<Room>();
}
