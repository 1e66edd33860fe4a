//! Exchanges for simulations: messages and packets have the lengths of TLS and protected packets. They neither authenticate nor
//! encrypt, and every run is the same.

use anabranch_core::protection::{NullCipher, RecordCipher};
use anabranch_dtls::{CipherSuite, KeyMaterial, RestartKeys};

use crate::credentials::PeerIdentity;
use crate::error::{ExportError, KeyingError, TlsProblem};
use crate::exchange::{Direction, KeyExchange, KeyExchanges, ParameterBinding, Part, Progress};

/// Lengths in TLS 1.3 with rustls's preferred groups (X25519MLKEM768) and Ed25519 raw public keys at both endpoints: the
/// ClientHello, the server's messages up to its Finished, and the client's last messages.
const HELLO_BYTES: usize = 1_437;
const FLIGHT_BYTES: usize = 1_459;
const LAST_BYTES: usize = 209;

/// Type of the first handshake message in each flight, after content type, version and length.
const HELLO: u8 = 1;
const FLIGHT: u8 = 2;
const LAST: u8 = 11;

/// Factory of scripted exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedExchanges;

impl KeyExchanges for ScriptedExchanges {
    fn start(&self, part: Part) -> Result<Box<dyn KeyExchange>, KeyingError> {
        Ok(Box::new(ScriptedExchange { part, done: false }))
    }

    fn begins(&self, records: &[u8]) -> bool {
        is_record(records, HELLO, HELLO_BYTES)
    }
}

#[derive(Debug)]
struct ScriptedExchange {
    part: Part,
    done: bool,
}

fn record(kind: u8, length: usize) -> Vec<u8> {
    let mut record = vec![0; length];
    let [high, low] = (length as u16 - 5).to_be_bytes();
    record[..6].copy_from_slice(&[22, 3, 3, high, low, kind]);
    record
}

fn is_record(records: &[u8], kind: u8, length: usize) -> bool {
    records.len() == length && records.get(5) == Some(&kind)
}

impl KeyExchange for ScriptedExchange {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), KeyingError> {
        out.extend(record(HELLO, HELLO_BYTES));
        Ok(())
    }

    fn receive(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<Progress, KeyingError> {
        match self.part {
            Part::Server if is_record(records, HELLO, HELLO_BYTES) => {
                out.extend(record(FLIGHT, FLIGHT_BYTES));
                return Ok(Progress::Running);
            }
            Part::Server if is_record(records, LAST, LAST_BYTES) => {}
            Part::Client if is_record(records, FLIGHT, FLIGHT_BYTES) => out.extend(record(LAST, LAST_BYTES)),
            Part::Client | Part::Server => return Err(TlsProblem::Misbehaved.into()),
        }
        self.done = true;
        Ok(Progress::Done)
    }

    fn inspect_plain_notice(&mut self, _: &[u8]) -> Result<(), KeyingError> {
        Ok(())
    }

    fn cipher(&self, _: Direction, _: &ParameterBinding) -> Result<Box<dyn RecordCipher>, KeyingError> {
        if self.done { Ok(Box::new(NullCipher)) } else { Err(TlsProblem::Internal.into()) }
    }

    fn restart_keys(&self, part: Part, epoch: u64, _: &ParameterBinding) -> Result<RestartKeys, KeyingError> {
        // Every run uses the same keys.
        let material = |direction: Direction| {
            KeyMaterial::from_seed(CipherSuite::Aes128Gcm, &[0; 32], &[direction as u8])
        };
        let keys = RestartKeys::new(epoch, material(part.outward()), material(part.inward()));
        if self.done { keys.map_err(|_| KeyingError::WrongEpoch) } else { Err(TlsProblem::Internal.into()) }
    }

    fn identity(&self) -> Option<&PeerIdentity> {
        None
    }

    fn export(&self, _: &[u8], _: Option<&[u8]>, _: &mut [u8]) -> Result<(), ExportError> {
        Err(ExportError::Refused)
    }
}
