//! Key exchange, as the key management uses it.

use std::fmt;

use anabranch_core::protection::{Agreement, KeyManagementRole, RecordCipher};
use anabranch_dtls::RestartKeys;

use crate::credentials::PeerIdentity;
use crate::error::{ExportError, KeyingError};
pub use crate::key_log::Direction;

/// Role of this endpoint in one exchange. The endpoint that requests new keys is the client, regardless of its earlier role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Begins the exchange.
    Client,
    /// Answers the first message.
    Server,
}

impl Part {
    /// Returns the direction of the send keys.
    pub fn outward(self) -> Direction {
        match self {
            Self::Client => Direction::FromClient,
            Self::Server => Direction::FromServer,
        }
    }

    /// Returns the direction of the receive keys.
    pub fn inward(self) -> Direction {
        match self {
            Self::Client => Direction::FromServer,
            Self::Server => Direction::FromClient,
        }
    }
}

/// Parameters of both endpoints in the association's handshake, as sent. Keys depend on them, so endpoints that saw different
/// parameters have different keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterBinding {
    client: Vec<u8>,
    server: Vec<u8>,
}

impl ParameterBinding {
    /// Creates the binding from the parameters of the association's client and server.
    pub fn new(client: &[u8], server: &[u8]) -> Self {
        ParameterBinding { client: client.to_vec(), server: server.to_vec() }
    }

    /// Returns the binding of an agreement. Its roles order the parameters in later exchanges too: if both endpoints opened the
    /// association, there are two initiators, so "initiator" would be ambiguous.
    pub(crate) fn of(agreement: &Agreement) -> Self {
        let (ours, theirs) = agreement.parameters();
        let (client, server) = match agreement.role() {
            KeyManagementRole::Client => (ours, theirs),
            KeyManagementRole::Server => (theirs, ours),
        };
        ParameterBinding::new(client, server)
    }

    /// Returns the parameter of the client of the association's key management.
    pub fn client(&self) -> &[u8] {
        &self.client
    }

    /// Returns the parameter of the server of the association's key management.
    pub fn server(&self) -> &[u8] {
        &self.server
    }
}

/// Progress of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The peer has to answer.
    Running,
    /// Keys and an accepted identity exist. A client still has to send its last message.
    Done,
}

/// One key exchange.
pub trait KeyExchange: fmt::Debug + Send {
    /// Appends the client's first message to `out`.
    ///
    /// # Errors
    /// Returns [`KeyingError`] if the message cannot be created.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), KeyingError>;

    /// Processes the records of one message and appends the answer to `out`.
    ///
    /// # Errors
    /// Returns [`KeyingError`] if the exchange failed; `out` then contains the message that reports it to the peer.
    fn receive(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<Progress, KeyingError>;

    /// Returns the peer's refusal if these records contain one that only the peer can have created. They arrived in a plaintext
    /// packet after this endpoint was done, so any host on the path may have sent them. Records of any other form are ignored.
    ///
    /// # Errors
    /// Returns [`KeyingError`] with the refusal, or if records of that form are not the peer's: the exchange cannot continue then.
    fn inspect_plain_notice(&mut self, records: &[u8]) -> Result<(), KeyingError>;

    /// Returns the keys of one direction, once the exchange is done.
    ///
    /// # Errors
    /// Returns [`KeyingError`] before that.
    fn cipher(
        &self,
        direction: Direction,
        binding: &ParameterBinding,
    ) -> Result<Box<dyn RecordCipher>, KeyingError>;

    /// Returns the restart keys of this role, once the exchange is done. `epoch` is the epoch of the primary keys.
    ///
    /// # Errors
    /// Returns [`KeyingError`] before that.
    fn restart_keys(
        &self,
        part: Part,
        epoch: u64,
        binding: &ParameterBinding,
    ) -> Result<RestartKeys, KeyingError>;

    /// Returns the identity of the peer, once the exchange is done; `None` if peers are not authenticated, as in simulations.
    fn identity(&self) -> Option<&PeerIdentity>;

    /// Fills `out` with bytes that only the two endpoints can derive for this label and context (RFC 8446 section 7.5).
    ///
    /// # Errors
    /// Returns [`ExportError`] if TLS does not export these bytes.
    fn export(&self, label: &[u8], context: Option<&[u8]>, out: &mut [u8]) -> Result<(), ExportError>;
}

/// Factory of exchanges.
pub trait KeyExchanges: fmt::Debug + Send {
    /// Creates an exchange without computing anything yet.
    ///
    /// # Errors
    /// Returns [`KeyingError`] if this endpoint cannot take the role.
    fn start(&self, part: Part) -> Result<Box<dyn KeyExchange>, KeyingError>;

    /// Returns `true` if these records begin an exchange.
    fn begins(&self, records: &[u8]) -> bool;
}
