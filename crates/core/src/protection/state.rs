//! The protection of one association: what is agreed, the keys that are installed, and what is taken without protection.

use anabranch_wire::{DtlsUse, DtlsView, dtls_overhead};
use arrayvec::ArrayVec;
use thiserror::Error;

use super::agreement::{Agreement, ParameterBytes};
use super::cipher::RecordCipher;
use super::context::{ReceiveContext, SealError, SendContext};
use crate::stats::Discard;

/// The epoch of the first keys of an association.
pub const FIRST_EPOCH: u64 = 3;

/// The payload protocol identifier of all key management messages. They go on stream 0, in order.
pub const KEY_MANAGEMENT_PPID: u32 = 4242;

/// How the chunks of a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// As they are.
    Plain,
    /// In a record that was authentic.
    Record,
}

/// How far an association has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It does without: the configuration says so, or the peer and a loose mode.
    #[default]
    Off,
    /// The peer has not answered yet.
    Offered,
    /// Keys are being agreed on.
    Agreed(Agreement),
    /// Only protected packets count.
    Required(Agreement),
}

/// The length of the tags of every cipher suite of TLS 1.3 but one that nobody recommends. Packets are cut for it before there
/// are keys.
pub(crate) const TAG_BYTES: usize = 16;

/// What protection adds to a packet.
pub const ENVELOPE_BYTES: usize = dtls_overhead(TAG_BYTES);

/// Keys to receive with at a time: the present ones, and those before or after them.
const RECEIVE_CONTEXTS: usize = 2;

/// Why keys were not installed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum KeyError {
    /// The peer has not agreed to protection, or the handshake is not over.
    #[error(
        "no protection is agreed on; install keys once the association is up with a peer that protects packets"
    )]
    NotAgreed,
    /// Epochs follow each other.
    #[error("keys are for epoch {found}, and the next one is {expected}")]
    Epoch {
        /// The one that comes next.
        expected: u64,
        /// The one that was given.
        found: u64,
    },
    /// Two epochs are open for receiving.
    #[error("keys of two epochs are installed; remove those of the older one first")]
    TooMany,
    /// A cipher suite whose tags have another length.
    #[error("tags have {found} bytes where packets leave room for {TAG_BYTES}; choose another cipher suite")]
    TagLength {
        /// The length.
        found: usize,
    },
    /// Someone has sent more than the key management has asked for: it is not to be mixed with what comes protected.
    #[error("data came before protection that is no part of the key management; abort the association")]
    DataLeft,
    /// There is no send key yet.
    #[error("there are no keys to send with yet; install them before protection is required")]
    NoSendKey,
}

/// How often the keys of an epoch were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// Packets protected with the present send key.
    pub sealed: u64,
    /// Packets that it may still protect.
    pub seals_left: u64,
    /// Packets opened with the newest receive key.
    pub opened: u64,
    /// Packets that were not authentic under it.
    pub failed: u64,
    /// Bytes of chunks protected and opened with both.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct PacketProtection {
    /// Our parameter, if the configuration wants protection.
    offer: Option<ParameterBytes>,
    stage: Stage,
    send: Option<SendContext>,
    /// Oldest first.
    receive: ArrayVec<ReceiveContext, RECEIVE_CONTEXTS>,
    /// The epoch that the next receive keys are for.
    next_receive_epoch: u64,
    /// Both sides are known to protect their packets.
    mutual: bool,
    /// Why a packet could not be sealed.
    failure: Option<SealError>,
}

impl PacketProtection {
    pub(crate) fn new(offer: Option<ParameterBytes>) -> Self {
        let stage = if offer.is_some() { Stage::Offered } else { Stage::Off };
        PacketProtection { offer, stage, next_receive_epoch: FIRST_EPOCH, ..PacketProtection::default() }
    }

    pub(crate) fn offer(&self) -> Option<&ParameterBytes> {
        self.offer.as_ref()
    }

    /// What room to leave in every packet: from the beginning, since chunks are not cut anew when keys come.
    pub(crate) fn reserved_bytes(&self) -> usize {
        if self.offer.is_some() { ENVELOPE_BYTES } else { 0 }
    }

    /// The handshake has come to this. Keys of an association before a restart are gone.
    pub(crate) fn begin(&mut self, agreed: Option<Agreement>) {
        let stage = agreed.map_or(Stage::Off, Stage::Agreed);
        *self = PacketProtection { stage, ..PacketProtection::new(self.offer.take()) };
    }

    pub(crate) fn agreed(&self) -> Option<&Agreement> {
        match &self.stage {
            Stage::Agreed(agreed) | Stage::Required(agreed) => Some(agreed),
            Stage::Off | Stage::Offered => None,
        }
    }

    /// Whether keys are being agreed on.
    pub(crate) fn awaits_keys(&self) -> bool {
        matches!(self.stage, Stage::Agreed(_))
    }

    pub(crate) fn is_required(&self) -> bool {
        matches!(self.stage, Stage::Required(_))
    }

    /// Whether user messages other than those of the key management may be sent.
    pub(crate) fn admits_user_messages(&self) -> bool {
        matches!(self.stage, Stage::Off | Stage::Required(_))
    }

    /// Whether a peer's plain packets may still carry messages of the key management.
    pub(crate) fn admits_plain_messages(&self) -> bool {
        self.next_receive_epoch == FIRST_EPOCH
    }

    pub(crate) fn sender(&mut self) -> Option<&mut SendContext> {
        self.send.as_mut()
    }

    pub(crate) fn seals(&self) -> bool {
        self.send.is_some()
    }

    /// Whether it has turned out since the last call that both sides protect their packets; `true` once.
    pub(crate) fn becomes_mutual(&mut self) -> bool {
        let both = self.seals() && self.receive.iter().any(|context| context.opened() > 0);
        both && !std::mem::replace(&mut self.mutual, true)
    }

    pub(crate) fn note_failure(&mut self, failure: SealError) {
        self.failure = Some(failure);
    }

    /// Why nothing can be sent any more. A key that is used up shows only when there is something to send.
    pub(crate) fn failure(&self) -> Option<SealError> {
        self.failure
    }

    pub(crate) fn install_receive(
        &mut self,
        epoch: u64,
        cipher: Box<dyn RecordCipher>,
    ) -> Result<(), KeyError> {
        self.check(epoch, self.next_receive_epoch, &*cipher)?;
        self.receive.try_push(ReceiveContext::new(epoch, cipher)).map_err(|_| KeyError::TooMany)?;
        self.next_receive_epoch += 1;
        Ok(())
    }

    pub(crate) fn install_send(&mut self, epoch: u64, cipher: Box<dyn RecordCipher>) -> Result<(), KeyError> {
        let expected = self.send.as_ref().map_or(FIRST_EPOCH, |send| send.epoch() + 1);
        self.check(epoch, expected, &*cipher)?;
        self.send = Some(SendContext::new(epoch, cipher));
        Ok(())
    }

    fn check(&self, epoch: u64, expected: u64, cipher: &dyn RecordCipher) -> Result<(), KeyError> {
        if self.agreed().is_none() {
            return Err(KeyError::NotAgreed);
        }
        if epoch != expected {
            return Err(KeyError::Epoch { expected, found: epoch });
        }
        match cipher.tag_bytes() {
            TAG_BYTES => Ok(()),
            found => Err(KeyError::TagLength { found }),
        }
    }

    pub(crate) fn remove_receive(&mut self, epoch: u64) -> bool {
        let before = self.receive.len();
        self.receive.retain(|context| context.epoch() != epoch);
        let removed = self.receive.len() < before;
        let sent_under = self.send.as_ref().map_or(FIRST_EPOCH, SendContext::epoch);
        if removed && epoch + 1 == self.next_receive_epoch && epoch > sent_under {
            self.next_receive_epoch = epoch;
        }
        removed
    }

    pub(crate) fn require(&mut self) -> Result<(), KeyError> {
        if self.send.is_none() {
            return Err(KeyError::NoSendKey);
        }
        if self.is_required() {
            return Ok(());
        }
        if let Stage::Agreed(agreed) = std::mem::take(&mut self.stage) {
            self.stage = Stage::Required(agreed);
        }
        Ok(())
    }

    pub(crate) fn key_use(&self) -> KeyUse {
        let newest = self.receive.last();
        KeyUse {
            sealed: self.send.as_ref().map_or(0, SendContext::sealed),
            seals_left: self.send.as_ref().map_or(0, SendContext::left),
            opened: newest.map_or(0, ReceiveContext::opened),
            failed: newest.map_or(0, ReceiveContext::failed),
            bytes: self.send.as_ref().map_or(0, SendContext::bytes) + newest.map_or(0, ReceiveContext::bytes),
        }
    }

    /// Decrypts a record into `space` and returns its chunks.
    pub(crate) fn open<'s>(
        &mut self,
        dtls: &DtlsView<'_>,
        space: &'s mut Vec<u8>,
    ) -> Result<&'s [u8], Discard> {
        let (header, record) = dtls.record().map_err(|_| Discard::Malformed)?;
        // No restart keys are kept: R is never offered.
        let ours = |context: &&mut ReceiveContext| (context.epoch() & 3) as u8 == header.epoch_bits();
        let found = self.receive.iter_mut().find(ours).filter(|_| dtls.context() == DtlsUse::Primary);
        let context = found.ok_or(Discard::NoKey)?;
        space.clear();
        space.extend_from_slice(record);
        context.open(header, space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protection::{
        KeyManagementRoles, NullCipher, ParameterPair, Protection, ProtectionMode, agree,
    };
    use anabranch_wire::KeyManagementMethod;

    fn agreed() -> PacketProtection {
        let offer = |roles| {
            let methods = vec![KeyManagementMethod::TLS];
            Protection { mode: ProtectionMode::Strict, roles, methods }.parameter(1)
        };
        let local = offer(KeyManagementRoles::Client);
        let pair = ParameterPair { local: local.clone(), peer: offer(KeyManagementRoles::Server) };
        let mut protection = PacketProtection::new(Some(local));
        protection.begin(Some(agree(&pair).expect("roles that go together")));
        protection
    }

    #[test]
    fn plain_messages_are_over_with_the_first_keys_even_when_these_are_gone() {
        let mut protection = agreed();
        assert!(protection.admits_plain_messages());
        protection.install_receive(FIRST_EPOCH, Box::new(NullCipher)).expect("the first epoch");
        assert!(!protection.admits_plain_messages());
        assert!(protection.remove_receive(FIRST_EPOCH));
        assert!(!protection.admits_plain_messages());
    }
}
