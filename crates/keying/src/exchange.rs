//! What agrees on keys, as far as the key management knows it.

use std::fmt;

use anabranch_core::protection::{Agreement, KeyManagementRole, RecordCipher};
use anabranch_dtls::RestartKeys;

use crate::credentials::PeerIdentity;
use crate::error::{ExportError, KeyingError};
pub use crate::key_log::Direction;

/// The part of this side in one exchange. Whoever asks for new keys is the client then, whatever it was in the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It begins.
    Client,
    /// It answers.
    Server,
}

impl Part {
    /// Of the keys to send with.
    pub fn outward(self) -> Direction {
        match self {
            Self::Client => Direction::FromClient,
            Self::Server => Direction::FromServer,
        }
    }

    /// Of the keys to receive with.
    pub fn inward(self) -> Direction {
        match self {
            Self::Client => Direction::FromServer,
            Self::Server => Direction::FromClient,
        }
    }
}

/// Both sides' parameters of the association's handshake, as they were sent. Keys depend on them, so that a side that saw others
/// than were sent has other keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterBinding {
    client: Vec<u8>,
    server: Vec<u8>,
}

impl ParameterBinding {
    /// The parameters of the association's client and server.
    pub fn new(client: &[u8], server: &[u8]) -> Self {
        ParameterBinding { client: client.to_vec(), server: server.to_vec() }
    }

    /// The parameters of what was agreed on. The roles of that agreement order them, in later exchanges too: when both sides
    /// have opened the association there are two initiators, and "initiator" says nothing.
    pub(crate) fn of(agreement: &Agreement) -> Self {
        let (ours, theirs) = agreement.parameters();
        let (client, server) = match agreement.role() {
            KeyManagementRole::Client => (ours, theirs),
            KeyManagementRole::Server => (theirs, ours),
        };
        ParameterBinding::new(client, server)
    }

    /// That of the client of the association's key management.
    pub fn client(&self) -> &[u8] {
        &self.client
    }

    /// That of its server.
    pub fn server(&self) -> &[u8] {
        &self.server
    }
}

/// How far an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The peer is to answer.
    Running,
    /// There are keys, and an identity that was accepted. A client still has its last message to send.
    Done,
}

/// One agreement on keys.
pub trait KeyExchange: fmt::Debug + Send {
    /// Appends the client's first message to `out`.
    ///
    /// # Errors
    /// [`KeyingError`] if there is none.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), KeyingError>;

    /// Takes the records of one message and appends what is to be answered to `out`.
    ///
    /// # Errors
    /// [`KeyingError`] if it has failed; `out` then has what the peer is to be told.
    fn receive(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<Progress, KeyingError>;

    /// Returns the peer's refusal if these records hold one that only the peer can have made. They came in a plain packet after this
    /// side was done, so anyone on the way can have sent them. Records of any other form are ignored.
    ///
    /// # Errors
    /// [`KeyingError`] with the refusal, or if records of that form are not the peer's: the exchange cannot continue then.
    fn examine_notice(&mut self, records: &[u8]) -> Result<(), KeyingError>;

    /// Keys of one direction, once it is done.
    ///
    /// # Errors
    /// [`KeyingError`] if it is not.
    fn cipher(
        &self,
        direction: Direction,
        binding: &ParameterBinding,
    ) -> Result<Box<dyn RecordCipher>, KeyingError>;

    /// Keys for a restart as this part has them, once it is done. They are of the epoch that the primary keys are for.
    ///
    /// # Errors
    /// [`KeyingError`] if it is not.
    fn restart_keys(
        &self,
        part: Part,
        epoch: u64,
        binding: &ParameterBinding,
    ) -> Result<RestartKeys, KeyingError>;

    /// Who the peer is, once it is done; `None` if nobody is asked who they are, as in simulations.
    fn identity(&self) -> Option<&PeerIdentity>;

    /// Fills `out` with what both sides, and nobody else, can derive for this label and context (RFC 8446 section 7.5).
    ///
    /// # Errors
    /// [`ExportError`].
    fn export(&self, label: &[u8], context: Option<&[u8]>, out: &mut [u8]) -> Result<(), ExportError>;
}

/// Makes exchanges.
pub trait KeyExchanges: fmt::Debug + Send {
    /// A new one. Nothing is computed yet.
    ///
    /// # Errors
    /// [`KeyingError`] if this side cannot take the part.
    fn start(&self, part: Part) -> Result<Box<dyn KeyExchange>, KeyingError>;

    /// Whether these records begin an exchange.
    fn begins(&self, records: &[u8]) -> bool;
}
