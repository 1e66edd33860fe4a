//! Protected packets of an association, sent and received, and the keys that its driver installs (draft-ietf-tsvwg-sctp-dtls-chunk
//! of July 2026, sections "DTLS Chunk Handling" and "Abstract API").

use anabranch_wire::{Chunk, ChunkType, InitView, PacketView, Param, RawParam, Tsn};

use crate::association::Association;
use crate::association::packets::PacketContext;
use crate::association::state::State;
use crate::error::AbortReason;
use crate::init::{AsconfProof, protection_parameter};
use crate::path_id::PathId;
use crate::policy::{LossCause, OpportunityCause};
use crate::protection::{
    Agreement, ChunkProtection, KeyError, KeyManagementRole, KeyUse, MessageEnd, Mismatch, ParameterBytes,
    ParameterPair, Protection, ProtectionMode, RecordCipher, RestartContext, SealError, agree, contradiction,
    is_key_management,
};
use crate::recv::DataChunk;
use crate::stats::Discard;
use crate::time::Time;

/// Reason for which a restart fails.
const NO_RESTART: &str = "the peer keeps no keys for a restart; open a new association";

/// Interface for the driver and its key management.
impl Association {
    /// Returns the agreement of both sides once the association is established; `None` without protection.
    pub fn protection(&self) -> Option<&Agreement> {
        self.protection.agreed()
    }

    /// Returns `true` if only protected packets are processed.
    pub fn requires_protection(&self) -> bool {
        self.protection.is_required()
    }

    /// Opens packets of this epoch from now on, in addition to those of the previous epoch. The first epoch is
    /// [`FIRST_EPOCH`](crate::protection::FIRST_EPOCH), and the next ones are consecutive. The key must be installed before the
    /// peer sends with it. From the first one on, plain packets carry no data.
    ///
    /// # Errors
    /// Returns [`KeyError`]. After [`KeyError::DataLeft`] the caller aborts the association: foreign data was inserted among that
    /// of the key management.
    pub fn install_receive_key(&mut self, epoch: u64, cipher: Box<dyn RecordCipher>) -> Result<(), KeyError> {
        // Data of plain packets has used up TSNs that the peer will use for other data.
        let ends_plain_messages = self.protection.admits_plain_messages();
        if ends_plain_messages && self.held_bytes() > 0 {
            return Err(KeyError::DataLeft);
        }
        self.protection.install_receive(epoch, cipher)?;
        if ends_plain_messages {
            let end = self.receiver.as_ref().map(|receiver| MessageEnd {
                tsn: receiver.tracker().cumulative(),
                next_ssn: receiver.next_ssn(0),
            });
            end.into_iter().for_each(|end| self.protection.boundary.end_receiving(end));
            // The peer's last message proves that the peer has all messages of this side. Plain SACKs are ignored from here on, so
            // T3 would repeat these messages ahead of the next one.
            self.acknowledge_all_sent();
        }
        Ok(())
    }

    /// Protects every packet with this key from now on.
    ///
    /// # Errors
    /// Returns [`KeyError`].
    pub fn install_send_key(&mut self, epoch: u64, cipher: Box<dyn RecordCipher>) -> Result<(), KeyError> {
        self.protection.install_send(epoch, cipher)?;
        let end = self.end_of_sent();
        self.protection.boundary.end_sending(end);
        Ok(())
    }

    /// Stops opening packets of this epoch; `false` if it had no key. If no packet was sent under it, because the agreement failed,
    /// it is the next epoch again. The first epoch never is, because its key has ended plain messages.
    pub fn remove_receive_key(&mut self, epoch: u64) -> bool {
        self.protection.remove_receive(epoch)
    }

    /// Keeps these keys for a restart of the peer. The restart is in the clear up to its INIT ACK; from its COOKIE ECHO on, records
    /// must prove that the peer has the keys. They belong to the newest epoch installed to receive, and two epochs may be kept at a
    /// time. A restart discards all other keys, and the next primary ones have [`FIRST_EPOCH`](crate::protection::FIRST_EPOCH)
    /// again.
    ///
    /// # Errors
    /// Returns [`KeyError`].
    pub fn install_restart_keys(&mut self, keys: RestartContext) -> Result<(), KeyError> {
        self.protection.keep(keys)
    }

    /// Removes the keys of this epoch that were kept for a restart, because the peer has stored newer keys. `false` if there were
    /// none.
    pub fn remove_restart_keys(&mut self, epoch: u64) -> bool {
        self.protection.remove_kept(epoch)
    }

    /// Returns `true` if the keys of a restart are in use, and no new primary keys have been installed yet.
    pub fn uses_restart_keys(&self) -> bool {
        self.protection.uses_restart_keys()
    }

    /// Stops opening packets with the keys of a restart, because packets sealed with them can no longer arrive. Returns `false` if
    /// it opened none, or if they are still the keys to send with.
    pub fn retire_restart_keys(&mut self) -> bool {
        self.protection.retire_restart()
    }

    /// Drops every plain packet from now on, and lets the application send once
    /// [`admits_user_messages`](Self::admits_user_messages) returns `true`. The peer's latest message must have proved that the
    /// peer has all messages of this side's key management, as the end of a TLS handshake does for either side.
    ///
    /// # Errors
    /// Returns [`KeyError::NoSendKey`], [`KeyError::Closing`].
    pub fn require_protection(&mut self) -> Result<(), KeyError> {
        let was_required = self.protection.is_required();
        // After a plain SHUTDOWN, this side would drop the peer's data once it has keys.
        if !was_required && !matches!(self.state, State::Established | State::ShutdownPending) {
            return Err(KeyError::Closing);
        }
        self.protection.require()?;
        if !was_required && self.is_key_management_server() {
            // The client has no key to send with yet, so all its SACKs are plain and ignored. T3 would repeat the earliest of these
            // messages forever, and the message that the client waits for would stay behind them.
            self.acknowledge_all_sent();
        } else if !was_required {
            // A retransmission in a record elicits the protected SACK that user messages wait for.
            self.retransmit_plain_chunks();
            if !self.admits_user_messages() {
                self.protection.boundary.await_proof();
            }
        }
        self.ask_again_if_mutual();
        self.advance_asconf();
        Ok(())
    }

    /// Returns `true` if the protection of the association permits messages of the application.
    ///
    /// A client of the key management waits until a protected SACK acknowledges exactly the chunks that it has sent in the clear.
    /// This proves that no plain packet of an attacker has used up the TSN of a user message: the receiver would acknowledge that
    /// message although it never arrived. A server needs no such proof. The client answers in records only after it has delivered
    /// the server's first protected message, whose TSN follows all plain ones.
    pub fn admits_user_messages(&self) -> bool {
        let sent = self.protection.boundary.sent().map_or(0, |end| end.tsn);
        let is_proved = self.sender.outstanding().cumulative() >= sent;
        self.protection.admits_user_messages() && (is_proved || self.is_key_management_server())
    }

    fn retransmit_plain_chunks(&mut self) {
        if self.sender.outstanding().cumulative() >= self.protection.boundary.sent().map_or(0, |end| end.tsn)
        {
            return;
        }
        for id in self.paths.ids() {
            self.mark_path_lost(id, LossCause::Timeout, true);
        }
        self.open_opportunity(OpportunityCause::Application, true);
    }

    fn is_key_management_server(&self) -> bool {
        self.protection().is_some_and(|agreed| agreed.role() == KeyManagementRole::Server)
    }

    /// Ends the association if a protected SACK acknowledges a TSN that was never sent: the peer has received plain packets that
    /// this side has not sent.
    pub(crate) fn check_acknowledgement(
        &mut self,
        cover: ChunkProtection,
        cum_tsn: Tsn,
    ) -> Result<(), Discard> {
        let cumulative = cum_tsn.unwrap_near(self.sender.outstanding().cumulative());
        match cover {
            ChunkProtection::Record if cumulative >= self.sender.lowest_unsent() => {
                Err(self.abort_for_tampering(contradiction::ACKNOWLEDGEMENT))
            }
            ChunkProtection::Record | ChunkProtection::Plain => Ok(()),
        }
    }

    /// Ends the association because a protected packet contradicts plain ones, and reports that to the peer.
    pub(crate) fn abort_for_tampering(&mut self, why: &'static str) -> Discard {
        self.send_abort(why);
        self.abort_with(AbortReason::Tampered(why));
        Discard::Unexpected
    }

    /// Ends the association because its key management has failed, and reports that to the peer.
    pub fn abort_for_key_management(&mut self, now: Time, why: &'static str) {
        self.clock(now);
        if !self.is_closed() {
            self.send_abort(why);
            self.abort_with(AbortReason::KeyManagement(why));
        }
    }

    /// Returns a short message of the key management's protocol that arrived in a plain packet after the first receive key was
    /// installed and before protection was required. Anyone on the network path can have sent it, so the association ignores it: it
    /// is not acknowledged, uses no TSN, and counts as [`Discard::Unprotected`]. A key management may use it only after its own
    /// proof that the peer has sent it, as for an encrypted alert of TLS.
    pub fn take_plain_notice(&mut self) -> Option<impl AsRef<[u8]>> {
        self.protection.take_plain_notice()
    }

    /// Returns the number of uses of the newest keys.
    pub fn key_use(&self) -> KeyUse {
        self.protection.key_use()
    }
}

/// Offers of packet protection in the handshake.
impl Association {
    pub(crate) fn wanted_protection(&self) -> Option<&Protection> {
        self.config.protection.as_ref()
    }

    /// Returns the offer that an answer to a colliding INIT repeats.
    pub(crate) fn repeated_offer(&self) -> Option<ParameterBytes> {
        self.protection.offer().filter(|_| self.is_opening()).cloned()
    }

    pub(crate) fn protection_param(&self) -> Option<Param<'_>> {
        RawParam::parse(self.protection.offer()?).ok()?.decode().ok()
    }

    /// Starts a restart of an association whose state this side has lost.
    pub(crate) fn attempt_restart(&mut self, keys: RestartContext) {
        self.protection.attempt_restart(keys);
    }

    /// Returns `true` if a COOKIE ECHO is accepted only in a record.
    pub(crate) fn refuses_plain_cookies(&self) -> bool {
        self.protection.is_required() || self.protection.is_restarting()
    }

    pub(crate) fn asconf_proof(&self) -> AsconfProof {
        if self.config.protection.is_some() { AsconfProof::Record } else { AsconfProof::Auth }
    }

    /// Returns the agreement that the INIT-ACK to the own offer results in, or the reason against an association.
    pub(crate) fn agree_on_protection(&self, init: &InitView<'_>) -> Result<Option<Agreement>, &'static str> {
        let (Some(wanted), Some(local)) = (&self.config.protection, self.protection.offer()) else {
            return Ok(None);
        };
        let peer = protection_parameter(init).ok_or(Mismatch::Missing);
        let restarting = self.protection.is_restarting();
        match peer.and_then(|peer| agree(&ParameterPair { local: local.clone(), peer })) {
            // draft-porfiri-tsvwg-sctp-dtls-handshake, section "SCTP Association Restart": both sides have set bit R.
            Ok(agreed) if restarting && !agreed.restart() => Err(NO_RESTART),
            Ok(agreed) => Ok(Some(agreed)),
            Err(_) if wanted.mode == ProtectionMode::Loose && !restarting => Ok(None),
            Err(mismatch) => Err(mismatch.text()),
        }
    }
}

/// Received packets.
impl Association {
    /// Returns the chunks in a packet's record, decrypted into `space`; `None` for an admissible plain packet.
    pub(crate) fn uncover<'s>(
        &mut self,
        packet: &PacketView<'_>,
        space: &'s mut Vec<u8>,
    ) -> Result<Option<&'s [u8]>, Discard> {
        if self.protection.agreed().is_none() {
            return Ok(None);
        }
        let mut chunks = packet.chunks();
        let first = chunks.next().and_then(Result::ok).and_then(|raw| raw.decode().ok());
        match first {
            // "The DTLS chunk MUST NOT be bundled with any other chunk."
            Some(Chunk::Dtls(_)) if chunks.next().is_some() => Err(Discard::Malformed),
            Some(Chunk::Dtls(dtls)) => {
                let content = self.protection.open(&dtls, space)?;
                self.ask_again_if_mutual();
                Ok(Some(content))
            }
            _ if self.protection.is_required() => Err(Discard::Unprotected),
            _ if chunks.flatten().any(|raw| raw.kind() == ChunkType::DTLS) => Err(Discard::Malformed),
            _ => Ok(None),
        }
    }

    /// Returns the chunks in a record of a peer that seems to restart, and the epoch of the kept keys.
    pub(crate) fn uncover_restart<'s>(
        &mut self,
        packet: &PacketView<'_>,
        space: &'s mut Vec<u8>,
    ) -> Result<(u64, &'s [u8]), Discard> {
        let mut chunks = packet.chunks();
        let first = chunks.next().and_then(Result::ok).and_then(|raw| raw.decode().ok());
        match first {
            // "The DTLS chunk MUST NOT be bundled with any other chunk."
            Some(Chunk::Dtls(_)) if chunks.next().is_some() => Err(Discard::Malformed),
            Some(Chunk::Dtls(dtls)) => self.protection.open_kept(&dtls, space),
            _ => Err(Discard::Unexpected),
        }
    }

    /// Repeats plain requests once answers are protected, because plain answers to them are ignored from then on. Otherwise the
    /// confirmation of paths and the search for packet sizes would wait for a time-out.
    fn ask_again_if_mutual(&mut self) {
        if !self.protection.becomes_mutual() {
            return;
        }
        // A plain HEARTBEAT reports no cost to a protected peer.
        self.paths.forget_cost_reports();
        for id in self.paths.ids() {
            if self.paths[id].removed {
                continue;
            }
            if self.paths[id].pending_heartbeat.is_some() || self.paths.owes_cost(id) {
                self.send_heartbeat(id);
            }
            self.repeat_mtu_probe(id);
        }
    }

    /// Returns `true` if a chunk of a plain packet is processed although packets are to be protected. Anyone on the network path
    /// can have sent it. It must not affect later protected chunks: no messages except those of the key management, no TSN except
    /// the next one, and no chunk that moves the receiver past TSNs.
    pub(crate) fn admits_plain(&self, chunk: &Chunk<'_>) -> bool {
        if self.protection.agreed().is_none() {
            return true;
        }
        match chunk {
            Chunk::Data(data) => self.admits_plain_data(&DataChunk::Data(*data)),
            Chunk::IData(data) => self.admits_plain_data(&DataChunk::IData(*data)),
            Chunk::ForwardTsn(_)
            | Chunk::IForwardTsn(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::ReConfig(_) => false,
            // The client's last message is acknowledged in a record.
            Chunk::Sack(_) | Chunk::NrSack(_) => self.protection.admits_plain_messages(),
            _ => true,
        }
    }

    /// Returns `true` if the chunk has arrived before, so that it is only acknowledged again.
    fn is_repeated(&self, data: &DataChunk<'_>) -> bool {
        let cumulative = self.receiver.as_ref().map(|receiver| receiver.tracker().cumulative());
        cumulative.is_some_and(|cumulative| data.tsn().unwrap_near(cumulative) <= cumulative)
    }

    fn admits_plain_data(&self, data: &DataChunk<'_>) -> bool {
        self.is_repeated(data) || (self.protection.admits_plain_messages() && self.is_next(data))
    }

    /// Returns `true` for a chunk of the key management with the next TSN.
    fn is_next(&self, data: &DataChunk<'_>) -> bool {
        let cumulative = self.receiver.as_ref().map(|receiver| receiver.tracker().cumulative());
        let is_next =
            cumulative.is_some_and(|cumulative| data.tsn().unwrap_near(cumulative) == cumulative + 1);
        let is_key_management = is_key_management(data.ppid(), data.stream().get(), data.flags().unordered);
        is_next && is_key_management
    }

    /// Keeps a plain message that the key management may recognise as the peer's refusal, although its chunk is dropped.
    pub(crate) fn note_plain(&mut self, chunk: &Chunk<'_>) {
        let data = match chunk {
            Chunk::Data(data) => DataChunk::Data(*data),
            Chunk::IData(data) => DataChunk::IData(*data),
            _ => return,
        };
        let is_whole = data.flags().beginning && data.flags().ending;
        if self.protection.admits_plain_notice()
            && is_whole
            && self.is_next(&data)
            && self.protection.keep_plain_notice(data.payload())
        {
            self.outputs.report_readable();
        }
    }
}

/// Sent packets.
impl Association {
    /// Ends the association because it can no longer protect packets. It cannot report this to the peer.
    pub(crate) fn end_without_keys(&mut self, failure: SealError) -> Option<PathId> {
        if !self.is_closed() {
            self.abort_with(match failure {
                SealError::KeySpent => AbortReason::KeySpent,
                SealError::Cipher(_) | SealError::NoSpace => AbortReason::CipherFailed,
            });
        }
        self.control.clear();
        None
    }

    /// Returns the length of a probe for packets that have this many bytes before protection.
    pub(crate) fn probe_bytes(&self, bytes: usize) -> usize {
        let sealed = bytes - self.confirmation_bytes();
        if self.protection.seals() { sealed } else { bytes + self.protection.reserved_bytes() }
    }
}
