//! Key management for the DTLS chunk by TLS 1.3 (draft-porfiri-tsvwg-sctp-dtls-handshake).

mod credentials;

pub use credentials::{Credentials, IdentityForm, PeerIdentity};
pub use rustls;
