//! Protection of one association: the agreement, the installed keys, and the plain packets that are accepted.
//!
//! Each pair of keys belongs to one use (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "DTLS Considerations"): primary
//! keys, or keys for a restart. The latter are kept unused ([`RestartContext`]) until a restart makes them the only ones.

use anabranch_wire::{DtlsUse, DtlsView, dtls_overhead};
use arrayvec::ArrayVec;

use super::agreement::{Agreement, ParameterBytes};
use super::boundary::{MessageEnd, PlainBoundary};
use super::bounds::{FIRST_EPOCH, KeyError, TAG_BYTES};
use super::cipher::RecordCipher;
use super::confirmation::{ConfirmationState, Handshakes, Transcript};
use super::context::{LARGEST_RECORD, ReceiveContext, SealError, SendContext};
use super::restart::RestartContext;
use crate::stats::Discard;

/// Protection in which the chunks of a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkProtection {
    /// No cover.
    Plain,
    /// Authentic record.
    Record,
}

/// Stage of the protection of an association.
#[derive(Debug, Default)]
enum Stage {
    /// No protection: by configuration, or because of the peer in loose mode.
    #[default]
    Off,
    /// Offer sent; the peer has not answered yet.
    Offered,
    /// Restart in progress, whose handshake is protected with these keys from its first record on.
    Restarting(Box<RestartContext>),
    /// Agreement of both sides; keys are not yet required.
    Agreed(Agreement),
    /// Agreement of both sides; only protected packets are processed.
    Required(Agreement),
}

/// Initial numbers of an association, from its handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// First TSN of this side, unwrapped.
    pub(crate) own_initial: u64,
    /// First TSN of the peer, unwrapped.
    pub(crate) peer_initial: u64,
    /// First SSN of both sides.
    pub(crate) first_ssn: u16,
    /// Digest of the handshake, if both sides confirm it.
    pub(crate) transcript: Option<Transcript>,
}

/// Bytes that protection adds to a packet.
pub const ENVELOPE_BYTES: usize = dtls_overhead(TAG_BYTES);

/// Number of receive keys at a time: the current ones, and the previous or next ones.
const RECEIVE_CONTEXTS: usize = 2;

/// Number of keys kept for a restart: those of the newest epoch, and those of the previous one, which the peer may still have
/// stored instead.
const KEPT_CONTEXTS: usize = 2;

/// Counts of the use of the newest keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// Number of packets protected with the current send key.
    pub sealed: u64,
    /// Number of packets that it may still protect.
    pub seals_left: u64,
    /// Number of packets opened with the newest receive key.
    pub opened: u64,
    /// Number of packets that were not authentic under it.
    pub failed: u64,
    /// Chunk bytes protected and opened with both.
    pub bytes: u64,
}

/// Keys in use, and their purpose.
#[derive(Debug)]
struct Used<C> {
    by: DtlsUse,
    context: C,
}

/// Maximum length in bytes of a plain message that is kept for the key management: an alert of TLS in a record has 24.
const MOST_NOTICE_BYTES: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct PacketProtection {
    /// Own parameter, if protection is configured.
    offer: Option<ParameterBytes>,
    stage: Stage,
    send: Option<Used<SendContext>>,
    /// Receive keys, oldest first.
    receive: ArrayVec<Used<ReceiveContext>, RECEIVE_CONTEXTS>,
    /// Epoch of the next primary receive keys.
    next_receive_epoch: u64,
    /// Keys for a restart of the peer, oldest first.
    kept: ArrayVec<Box<RestartContext>, KEPT_CONTEXTS>,
    /// `true` once both sides are known to protect their packets.
    mutual: bool,
    pub(crate) boundary: PlainBoundary,
    pub(crate) handshakes: Handshakes,
    /// State of the confirmation, if both sides have agreed on it.
    pub(crate) confirming: Option<ConfirmationState>,
    /// Reason for which a packet could not be sealed.
    failure: Option<SealError>,
    /// Plain message of the key management that arrived after the first receive key, for the key management to examine.
    plain_notice: Option<ArrayVec<u8, MOST_NOTICE_BYTES>>,
}

impl PacketProtection {
    pub(crate) fn new(offer: Option<ParameterBytes>) -> Self {
        let stage = if offer.is_some() { Stage::Offered } else { Stage::Off };
        PacketProtection { offer, stage, next_receive_epoch: FIRST_EPOCH, ..PacketProtection::default() }
    }

    /// Returns a copy of the state of an association without protection, and `None` for another one.
    pub(crate) fn copied(&self) -> Option<Self> {
        (matches!(self.stage, Stage::Off) && self.offer.is_none()).then(|| PacketProtection {
            boundary: self.boundary,
            handshakes: self.handshakes.clone(),
            ..PacketProtection::default()
        })
    }

    pub(crate) fn offer(&self) -> Option<&ParameterBytes> {
        self.offer.as_ref()
    }

    /// Returns the bytes to reserve in every packet from the start, because chunks are not cut again when keys are installed.
    pub(crate) fn reserved_bytes(&self) -> usize {
        if self.offer.is_some() { ENVELOPE_BYTES } else { 0 }
    }

    /// Returns the maximum number of chunk bytes in a packet that may have to be protected.
    pub(crate) fn largest_record(&self) -> Option<usize> {
        self.offer.is_some().then_some(LARGEST_RECORD)
    }

    /// Starts with the result of a handshake. Keys of an association before a restart are removed, and a protected restart uses
    /// only those that were kept for it.
    pub(crate) fn begin(&mut self, agreed: Option<Agreement>, start: Start) {
        let stage = std::mem::take(&mut self.stage);
        let handshakes = std::mem::take(&mut self.handshakes);
        *self = PacketProtection { handshakes, ..PacketProtection::new(self.offer.take()) };
        self.boundary = PlainBoundary::new(start.peer_initial, start.first_ssn);
        let confirms = agreed.as_ref().is_some_and(Agreement::confirms);
        self.confirming = confirms.then(|| ConfirmationState::new(start.transcript.unwrap_or_default()));
        match (stage, agreed) {
            (Stage::Restarting(kept), Some(agreed)) => {
                let first = MessageEnd { tsn: start.own_initial - 1, next_ssn: start.first_ssn };
                self.boundary.end_sending(first);
                self.use_kept(*kept, agreed);
            }
            // A restart without an agreement fails, and no plain packet is sent.
            (stage @ Stage::Restarting(_), None) => self.stage = stage,
            (_, agreed) => self.stage = agreed.map_or(Stage::Off, Stage::Agreed),
        }
    }

    /// Makes the restart keys the only ones; the next primary ones have the first epoch again (draft-ietf-tsvwg-sctp-dtls-chunk,
    /// section "SCTP Restart Considerations"). Plain packets are not processed, not even for the key management.
    fn use_kept(&mut self, kept: RestartContext, agreed: Agreement) {
        let (send, receive) = kept.into_parts();
        self.stage = Stage::Required(agreed);
        self.send = Some(Used { by: DtlsUse::Restart, context: send });
        self.receive.clear();
        self.receive.push(Used { by: DtlsUse::Restart, context: receive });
        self.mutual = true;
    }

    /// Starts a restart with these keys of an association whose state this side has lost.
    pub(crate) fn attempt_restart(&mut self, kept: RestartContext) {
        self.stage = Stage::Restarting(Box::new(kept));
    }

    /// Follows a restart by the peer with the keys of this epoch. Returns `true` if they are kept.
    pub(crate) fn follow_restart(&mut self, epoch: u64) -> bool {
        let Some(at) = self.kept.iter().position(|kept| kept.epoch() == epoch) else { return false };
        self.stage = Stage::Restarting(self.kept.remove(at));
        true
    }

    pub(crate) fn agreed(&self) -> Option<&Agreement> {
        match &self.stage {
            Stage::Agreed(agreed) | Stage::Required(agreed) => Some(agreed),
            Stage::Off | Stage::Offered | Stage::Restarting(_) => None,
        }
    }

    /// Returns `true` while keys are being agreed on.
    pub(crate) fn awaits_keys(&self) -> bool {
        matches!(self.stage, Stage::Agreed(_))
    }

    pub(crate) fn is_required(&self) -> bool {
        matches!(self.stage, Stage::Required(_))
    }

    pub(crate) fn is_restarting(&self) -> bool {
        matches!(self.stage, Stage::Restarting(_))
    }

    /// Returns `true` if the keys in use are those for a restart.
    pub(crate) fn uses_restart_keys(&self) -> bool {
        self.send.as_ref().is_some_and(|send| send.by == DtlsUse::Restart)
    }

    /// Returns the use of the keys that seal records.
    pub(crate) fn seals_by(&self) -> DtlsUse {
        self.send.as_ref().map_or(DtlsUse::Primary, |send| send.by)
    }

    /// Returns `true` if user messages other than those of the key management may be sent.
    pub(crate) fn admits_user_messages(&self) -> bool {
        match self.stage {
            Stage::Off => true,
            // A changed INIT makes its receiver take the first chunks for duplicates and acknowledge them unread. In either
            // direction these are the key management's, so that the agreement fails instead of the silent loss of a message.
            // draft-porfiri-tsvwg-sctp-dtls-handshake would permit user messages at once.
            Stage::Required(_) => !self.uses_restart_keys(),
            Stage::Offered | Stage::Restarting(_) | Stage::Agreed(_) => false,
        }
    }

    /// Returns `true` between the first receive key and the moment from which protection is required. In that time a peer without
    /// keys may refuse this side, and can report that only in plain packets.
    pub(crate) fn admits_plain_notice(&self) -> bool {
        self.awaits_keys() && !self.admits_plain_messages()
    }

    /// Keeps a plain message of the key management. A later one replaces it. Longer messages are no refusals.
    pub(crate) fn keep_plain_notice(&mut self, message: &[u8]) -> bool {
        let Ok(notice) = ArrayVec::try_from(message) else { return false };
        self.plain_notice = Some(notice);
        true
    }

    pub(crate) fn take_plain_notice(&mut self) -> Option<ArrayVec<u8, MOST_NOTICE_BYTES>> {
        self.plain_notice.take()
    }

    /// Returns `true` if plain packets of the peer may still carry messages of the key management.
    pub(crate) fn admits_plain_messages(&self) -> bool {
        // After a restart the first epoch is the next one again, and protection is required.
        self.awaits_keys() && self.next_receive_epoch == FIRST_EPOCH
    }

    pub(crate) fn sender(&mut self) -> Option<&mut SendContext> {
        self.send.as_mut().map(|send| &mut send.context)
    }

    pub(crate) fn seals(&self) -> bool {
        self.send.is_some()
    }

    /// Returns `true` once, when both sides are first known to protect their packets.
    pub(crate) fn becomes_mutual(&mut self) -> bool {
        let both = self.seals() && self.receive.iter().any(|used| used.context.opened() > 0);
        both && !std::mem::replace(&mut self.mutual, true)
    }

    pub(crate) fn note_failure(&mut self, failure: SealError) {
        self.failure = Some(failure);
    }

    /// Returns the reason for which no packet can be sent. A key that is used up fails only with the next packet.
    pub(crate) fn failure(&self) -> Option<SealError> {
        self.failure
    }

    pub(crate) fn install_receive(
        &mut self,
        epoch: u64,
        cipher: Box<dyn RecordCipher>,
    ) -> Result<(), KeyError> {
        self.check(epoch, self.next_receive_epoch, &*cipher)?;
        let used = Used { by: DtlsUse::Primary, context: ReceiveContext::new(epoch, cipher) };
        self.receive.try_push(used).map_err(|_| KeyError::TooMany)?;
        self.next_receive_epoch += 1;
        Ok(())
    }

    pub(crate) fn install_send(&mut self, epoch: u64, cipher: Box<dyn RecordCipher>) -> Result<(), KeyError> {
        let expected = self.sealing_epoch().map_or(FIRST_EPOCH, |sent| sent + 1);
        self.check(epoch, expected, &*cipher)?;
        self.send = Some(Used { by: DtlsUse::Primary, context: SendContext::new(epoch, cipher) });
        Ok(())
    }

    /// Returns the epoch of the primary keys that seal packets.
    fn sealing_epoch(&self) -> Option<u64> {
        let primary = self.send.as_ref().filter(|send| send.by == DtlsUse::Primary);
        primary.map(|send| send.context.epoch())
    }

    /// Returns the newest epoch of the primary keys that open packets.
    fn newest_received(&self) -> Option<u64> {
        let mut primary = self.receive.iter().rev().filter(|used| used.by == DtlsUse::Primary);
        primary.next().map(|used| used.context.epoch())
    }

    /// Keeps keys for a restart of the peer. Section "Establish Send Key Material" of the draft: the primary keys of an epoch
    /// precede its restart keys.
    pub(crate) fn keep(&mut self, context: RestartContext) -> Result<(), KeyError> {
        if !self.agreed().is_some_and(Agreement::restart) {
            return Err(KeyError::RestartNotAgreed);
        }
        let found = context.epoch();
        let newest = self.newest_received().unwrap_or(FIRST_EPOCH);
        let known = self.kept.iter().any(|kept| kept.epoch() == found);
        if known || self.newest_received() != Some(found) {
            return Err(KeyError::Epoch { expected: newest + u64::from(known), found });
        }
        self.kept.try_push(Box::new(context)).map_err(|_| KeyError::TooMany)
    }

    /// Removes keys that are kept for a restart. Returns `true` if there were any of this epoch.
    pub(crate) fn remove_kept(&mut self, epoch: u64) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| kept.epoch() != epoch);
        self.kept.len() < before
    }

    /// Removes the receive keys of a restart once others are in use. Returns `true` if it did.
    pub(crate) fn retire_restart(&mut self) -> bool {
        let before = self.receive.len();
        if self.sealing_epoch().is_some() {
            self.receive.retain(|used| used.by == DtlsUse::Primary);
        }
        self.receive.len() < before
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
        self.receive.retain(|used| used.by == DtlsUse::Restart || used.context.epoch() != epoch);
        let removed = self.receive.len() < before;
        // The peer may have used the first epoch, which has ended plain messages. After a restart it is one like the others.
        let may_be_next = match self.sealing_epoch() {
            Some(sent) => epoch > sent,
            None => epoch > FIRST_EPOCH || self.uses_restart_keys(),
        };
        if removed && epoch + 1 == self.next_receive_epoch && may_be_next {
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
        let send = self.send.as_ref().map(|used| &used.context);
        let newest = self.receive.last().map(|used| &used.context);
        KeyUse {
            sealed: send.map_or(0, SendContext::sealed),
            seals_left: send.map_or(0, SendContext::left),
            opened: newest.map_or(0, ReceiveContext::opened),
            failed: newest.map_or(0, ReceiveContext::failed),
            bytes: send.map_or(0, SendContext::bytes) + newest.map_or(0, ReceiveContext::bytes),
        }
    }

    /// Decrypts a record into `space` and returns its chunks.
    pub(crate) fn open<'s>(
        &mut self,
        dtls: &DtlsView<'_>,
        space: &'s mut Vec<u8>,
    ) -> Result<&'s [u8], Discard> {
        let (header, record) = dtls.record().map_err(|_| Discard::Malformed)?;
        let ours = |used: &&mut Used<ReceiveContext>| {
            used.by == dtls.context() && (used.context.epoch() & 3) as u8 == header.epoch_bits()
        };
        let used = self.receive.iter_mut().find(ours).ok_or(Discard::NoKey)?;
        space.clear();
        space.extend_from_slice(record);
        used.context.open(header, space)
    }

    /// Decrypts a record of a peer that seems to restart, with kept keys. Returns their epoch and the chunks.
    pub(crate) fn open_kept<'s>(
        &mut self,
        dtls: &DtlsView<'_>,
        space: &'s mut Vec<u8>,
    ) -> Result<(u64, &'s [u8]), Discard> {
        let (header, record) = dtls.record().map_err(|_| Discard::Malformed)?;
        if !self.is_required() || dtls.context() != DtlsUse::Restart {
            return Err(Discard::NoKey);
        }
        let ours = |kept: &&mut Box<RestartContext>| (kept.epoch() & 3) as u8 == header.epoch_bits();
        let kept = self.kept.iter_mut().rev().find(ours).ok_or(Discard::NoKey)?;
        let epoch = kept.epoch();
        space.clear();
        space.extend_from_slice(record);
        Ok((epoch, kept.open(header, space)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protection::NullCipher;
    use crate::protection::testing::{START, agreed, agreed_with};

    fn null() -> Box<dyn RecordCipher> {
        Box::new(NullCipher)
    }

    fn kept(epoch: u64) -> RestartContext {
        RestartContext::new(epoch, null(), null()).expect("an epoch of an association")
    }

    /// Returns a state with keys of these epochs, the newest of them to send with too, and restart keys of each.
    fn protected(epochs: std::ops::RangeInclusive<u64>) -> PacketProtection {
        let mut protection = agreed();
        for epoch in epochs {
            protection.install_receive(epoch, null()).expect("the next epoch");
            protection.install_send(epoch, null()).expect("the next epoch");
            protection.keep(kept(epoch)).expect("primary keys come first");
        }
        protection.require().expect("there are keys");
        protection
    }

    /// Returns the state after a restart with the keys of this epoch.
    fn restarted(mut protection: PacketProtection, epoch: u64) -> PacketProtection {
        let agreement = protection.agreed().cloned();
        assert!(protection.follow_restart(epoch));
        protection.begin(agreement, START);
        protection
    }

    #[test]
    fn after_a_restart_its_keys_are_the_only_ones() {
        for epoch in [3, 4] {
            let protection = restarted(protected(3..=4), epoch);
            assert!(protection.uses_restart_keys() && protection.kept.is_empty());
            let in_use: Vec<_> =
                protection.receive.iter().map(|used| (used.by, used.context.epoch())).collect();
            assert_eq!(in_use, [(DtlsUse::Restart, epoch)]);
            assert_eq!(protection.send.as_ref().map(|send| send.context.epoch()), Some(epoch));
            assert!(protection.is_required() && !protection.admits_user_messages());
        }
    }

    #[test]
    fn after_a_restart_the_first_epoch_follows_and_plain_messages_do_not() {
        let mut protection = restarted(protected(3..=4), 4);
        assert!(!protection.admits_plain_messages() && !protection.awaits_keys());
        let early = protection.install_receive(5, null());
        assert_eq!(early, Err(KeyError::Epoch { expected: FIRST_EPOCH, found: 5 }));
        assert!(protection.keep(kept(FIRST_EPOCH)).is_err(), "primary keys come first");
        // A failed exchange does not block the next one.
        for _ in 0..3 {
            protection.install_receive(FIRST_EPOCH, null()).expect("the first epoch again");
            protection.keep(kept(FIRST_EPOCH)).expect("of that epoch");
            assert!(protection.remove_receive(FIRST_EPOCH) && protection.remove_kept(FIRST_EPOCH));
            assert!(!protection.admits_plain_messages());
        }
        assert!(!protection.retire_restart(), "there are no others to send with");
        protection.install_receive(FIRST_EPOCH, null()).expect("the first epoch again");
        protection.install_send(FIRST_EPOCH, null()).expect("the first epoch again");
        assert!(!protection.uses_restart_keys() && protection.admits_user_messages());
        assert!(protection.retire_restart() && !protection.retire_restart());
    }

    #[test]
    fn keys_are_kept_only_beside_the_primary_ones_of_their_epoch() {
        let mut protection = protected(3..=3);
        let again = protection.keep(kept(3));
        assert_eq!(again, Err(KeyError::Epoch { expected: 4, found: 3 }));
        let early = protection.keep(kept(4));
        assert_eq!(early, Err(KeyError::Epoch { expected: 3, found: 4 }));
        protection.install_receive(4, null()).expect("the next epoch");
        protection.keep(kept(4)).expect("beside the ones before");
        assert!(protection.remove_receive(3));
        protection.install_receive(5, null()).expect("the next epoch");
        assert_eq!(protection.keep(kept(5)), Err(KeyError::TooMany));
        assert!(protection.remove_kept(3) && !protection.remove_kept(3));
        protection.keep(kept(5)).expect("there is room");
    }

    #[test]
    fn keys_are_kept_only_if_both_sides_do() {
        let mut protection = agreed_with(false);

        protection.install_receive(FIRST_EPOCH, null()).expect("the first epoch");
        assert_eq!(protection.keep(kept(FIRST_EPOCH)), Err(KeyError::RestartNotAgreed));
    }

    #[test]
    fn restart_without_keys_of_its_epoch_is_refused() {
        let mut protection = protected(3..=3);
        assert!(!protection.follow_restart(4) && protection.is_required());
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
