//! Exchanges by TLS 1.3, with rustls.

use std::fmt;
use std::sync::Arc;

use anabranch_core::protection::RecordCipher;
use anabranch_dtls::{CipherSuite, KeyMaterial, RestartKeys};
use rustls::{ClientConnection, Connection, ProtocolVersion, ServerConnection};
use zeroize::Zeroizing;

use crate::credentials::{Credentials, IdentityForm, PeerIdentity};
use crate::error::{ExportError, KeyingError, TlsProblem};
use crate::exchange::{Direction, KeyExchange, KeyExchanges, ParameterBinding, Part, Progress};
use crate::key_log::{KeyLog, LoggedKeys};

/// Exporter label of all keys (draft-porfiri-tsvwg-sctp-dtls-handshake, section "Exporter Labels").
const LABEL: &[u8] = b"EXPORTER_TLS_FOR_DTLS_IN_SCTP";

/// "Key role" in the exporter's context: primary keys or restart keys.
const PRIMARY: u8 = 0;
const RESTART: u8 = 1;

/// "Key type" in the exporter's context.
const KEY: u8 = 0;
const SEQUENCE_NUMBER_KEY: u8 = 1;
const IV: u8 = 2;

/// Length of the header of a TLS record, in bytes.
const RECORD_HEADER: usize = 5;

/// Content type of encrypted records (RFC 8446 section 5.2), and the length of an encrypted alert: two bytes, its content type, and
/// the tag.
const ENCRYPTED_RECORD: u8 = 23;
const ALERT_LEN: usize = 2 + 1 + 16;

/// Content type of handshake records, and type of a ClientHello (RFC 8446 sections 5.1 and 4).
const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// Factory of TLS 1.3 exchanges with certain credentials.
#[derive(Clone, Debug)]
pub struct TlsExchanges {
    credentials: Credentials,
}

impl TlsExchanges {
    /// Creates a factory with these credentials.
    pub fn new(credentials: Credentials) -> Self {
        TlsExchanges { credentials }
    }
}

impl KeyExchanges for TlsExchanges {
    fn start(&self, part: Part) -> Result<Box<dyn KeyExchange>, KeyingError> {
        let credentials = &self.credentials;
        let made = match part {
            Part::Client => {
                let name = credentials.peer_name().clone();
                ClientConnection::new(Arc::clone(credentials.client()), name).map(Connection::from)
            }
            Part::Server => ServerConnection::new(Arc::clone(credentials.server())).map(Connection::from),
        };
        let connection = made.map_err(|_| TlsProblem::Internal)?;
        Ok(Box::new(TlsExchange {
            connection,
            form: credentials.form(),
            key_log: credentials.key_log().cloned(),
            done: None,
        }))
    }

    fn begins(&self, records: &[u8]) -> bool {
        records.first() == Some(&HANDSHAKE_RECORD) && records.get(RECORD_HEADER) == Some(&CLIENT_HELLO)
    }
}

/// Results of a finished handshake.
struct Settled {
    suite: CipherSuite,
    identity: PeerIdentity,
}

struct TlsExchange {
    connection: Connection,
    form: IdentityForm,
    key_log: Option<Arc<dyn KeyLog>>,
    done: Option<Settled>,
}

impl fmt::Debug for TlsExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsExchange").field("done", &self.done.is_some()).finish_non_exhaustive()
    }
}

impl TlsExchange {
    fn take_in(&mut self, mut records: &[u8]) -> Result<(), KeyingError> {
        while !records.is_empty() {
            // rustls rejects handshake messages of more than 64 KiB, and accepts nothing after a `close_notify`.
            match self.connection.read_tls(&mut records) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err(KeyingError::TooLong),
            }
            self.connection.process_new_packets().map_err(|error| TlsProblem::of(&error))?;
        }
        // TLS carries no application data.
        let extra = self.connection.process_new_packets().map_err(|error| TlsProblem::of(&error))?;
        if extra.plaintext_bytes_to_read() > 0 { Err(KeyingError::Unexpected) } else { Ok(()) }
    }

    /// Processes records. Once this endpoint is done, the peer has proved its identity and TLS accepts no plaintext records, so an
    /// alert is the peer's own.
    fn take_in_alert(&mut self, records: &[u8]) -> Result<(), KeyingError> {
        self.take_in(records).map_err(|error| match error {
            KeyingError::Tls(TlsProblem::PeerAlert(alert)) if self.done.is_some() => {
                TlsProblem::Refused(alert).into()
            }
            error => error,
        })
    }

    fn hand_out(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to memory cannot fail.
            if self.connection.write_tls(out).is_err() {
                return;
            }
        }
    }

    /// draft-porfiri-tsvwg-sctp-dtls-handshake, section "TLS Configuration Requirements": TLS 1.3 only, suites of the DTLS chunk
    /// only, mutual authentication.
    fn settle(&self) -> Result<Settled, KeyingError> {
        if self.connection.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
            return Err(TlsProblem::Incompatible.into());
        }
        let number = self.connection.negotiated_cipher_suite().map(|suite| u16::from(suite.suite()));
        let suite = number.and_then(CipherSuite::of_number).ok_or(TlsProblem::Incompatible)?;
        let identity = PeerIdentity::of(self.form, self.connection.peer_certificates());
        Ok(Settled { suite, identity: identity.ok_or(TlsProblem::NoIdentity)? })
    }

    fn secret(
        &self,
        direction: Direction,
        role: u8,
        kind: u8,
        binding: &ParameterBinding,
        out: &mut [u8],
    ) -> Result<(), KeyingError> {
        let direction = match direction {
            Direction::FromClient => 0,
            Direction::FromServer => 1,
        };
        let context = [&[direction, role, kind], binding.client(), binding.server()].concat();
        self.export(LABEL, Some(&context), out).map_err(|_| TlsProblem::Internal.into())
    }

    /// Derives the keys of a direction and a key role.
    fn material(
        &self,
        direction: Direction,
        role: u8,
        binding: &ParameterBinding,
    ) -> Result<KeyMaterial, KeyingError> {
        let suite = self.done.as_ref().ok_or(TlsProblem::Internal)?.suite;
        let mut key = Zeroizing::new(vec![0; suite.key_len()]);
        let mut sequence_number_key = Zeroizing::new(vec![0; suite.key_len()]);
        let mut iv = Zeroizing::new(vec![0; KeyMaterial::IV_LEN]);
        self.secret(direction, role, KEY, binding, &mut key)?;
        self.secret(direction, role, SEQUENCE_NUMBER_KEY, binding, &mut sequence_number_key)?;
        self.secret(direction, role, IV, binding, &mut iv)?;
        if let Some(key_log) = &self.key_log {
            let sequence_number_key = &sequence_number_key;
            key_log.log(direction, &LoggedKeys { suite, key: &key, sequence_number_key, iv: &iv });
        }
        KeyMaterial::new(suite, &key, &sequence_number_key, &iv).map_err(|_| TlsProblem::Internal.into())
    }
}

impl KeyExchange for TlsExchange {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), KeyingError> {
        self.hand_out(out);
        Ok(())
    }

    fn receive(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<Progress, KeyingError> {
        if !are_complete(records) {
            return Err(KeyingError::Malformed);
        }
        let taken = self.take_in_alert(records);
        if taken.is_err() || self.done.is_some() {
            // After the handshake only an alert of the peer matters. Answers to other messages are not sent, for example to a
            // KeyUpdate, which the draft forbids.
            if taken.is_err() {
                self.hand_out(out);
            }
            return taken.map(|()| Progress::Done);
        }
        if self.connection.is_handshaking() {
            self.hand_out(out);
            return Ok(Progress::Running);
        }
        // A peer that is rejected here gets no last message, which would report success.
        self.done = Some(self.settle()?);
        self.hand_out(out);
        Ok(Progress::Done)
    }

    fn inspect_plain_notice(&mut self, records: &[u8]) -> Result<(), KeyingError> {
        let is_alert = records.first() == Some(&ENCRYPTED_RECORD)
            && records.len() == RECORD_HEADER + ALERT_LEN
            && are_complete(records);
        // TLS ends at the first record that it cannot decrypt. An attacker who can inject one could inject an ABORT as well.
        if is_alert && self.done.is_some() { self.take_in_alert(records) } else { Ok(()) }
    }

    fn cipher(
        &self,
        direction: Direction,
        binding: &ParameterBinding,
    ) -> Result<Box<dyn RecordCipher>, KeyingError> {
        Ok(self.material(direction, PRIMARY, binding)?.cipher())
    }

    fn restart_keys(
        &self,
        part: Part,
        epoch: u64,
        binding: &ParameterBinding,
    ) -> Result<RestartKeys, KeyingError> {
        let send = self.material(part.outward(), RESTART, binding)?;
        let receive = self.material(part.inward(), RESTART, binding)?;
        RestartKeys::new(epoch, send, receive).map_err(|_| TlsProblem::Internal.into())
    }

    fn identity(&self) -> Option<&PeerIdentity> {
        self.done.as_ref().map(|settled| &settled.identity)
    }

    fn export(&self, label: &[u8], context: Option<&[u8]>, out: &mut [u8]) -> Result<(), ExportError> {
        let exported = self.connection.export_keying_material(out, label, context);
        exported.map(|_| ()).map_err(|_| ExportError::Refused)
    }
}

/// "When T=0, one or more complete TLS records."
fn are_complete(mut records: &[u8]) -> bool {
    while let Some((header, rest)) = records.split_first_chunk::<RECORD_HEADER>() {
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let Some(behind) = rest.get(length..) else { return false };
        records = behind;
    }
    records.is_empty()
}
