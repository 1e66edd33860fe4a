//! Associations whose packets the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk) protects, with real ciphers and keys from the
//! tests.

mod attacker;
mod first_keys;
mod handshake;
mod key_attacks;
mod key_exchange;
mod key_manager;
mod key_material;
mod packets;
mod reported;
mod restart;
mod rig;
mod tampering;
