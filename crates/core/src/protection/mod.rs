//! Protection of packets by the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026): the records of RFC 9147. A key
//! management outside of core agrees on the keys and installs them.
//!
//! Core contains no cryptography: a [`RecordCipher`] encrypts. Drivers of sockets provide one with a real AEAD, and simulations use
//! [`NullCipher`], because only sizes matter there.

mod agreement;
mod boundary;
mod bounds;
mod cipher;
mod confirmation;
mod context;
mod replay;
mod restart;
mod state;
#[cfg(test)]
pub(crate) mod testing;

pub use agreement::{Agreement, KeyManagementRole, KeyManagementRoles, Protection, ProtectionMode};
pub(crate) use agreement::{Mismatch, ParameterBytes, ParameterPair, agree, kept};
pub use anabranch_wire::KeyManagementMethod;
pub use boundary::KEY_MANAGEMENT_PPID;
pub(crate) use boundary::{MessageEnd, PlainBoundary, contradiction, is_key_management};
pub(crate) use bounds::TAG_BYTES;
pub use bounds::{FIRST_EPOCH, KeyError};
pub use cipher::{CipherError, NullCipher, RECORD_SAMPLE_LEN, RecordCipher, RecordLimits};
pub(crate) use confirmation::{PlainEnds, Transcript};
pub use context::{ReceiveContext, SealError, SendContext};
pub use restart::RestartContext;
pub(crate) use state::{ChunkProtection, PacketProtection, Start};
pub use state::{ENVELOPE_BYTES, KeyUse};
