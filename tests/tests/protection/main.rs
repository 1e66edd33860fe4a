//! Associations whose packets are protected by the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk), with real ciphers whose keys
//! the tests hand out.

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
