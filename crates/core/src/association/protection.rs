//! Protected packets of an association, in and out, and what its driver says about keys
//! (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, sections "DTLS Chunk Handling" and "Abstract API").

use anabranch_wire::{Chunk, ChunkType, DataView, InitView, PacketView, Param, RawParam, Tsn};

use crate::association::Association;
use crate::association::packets::PacketContext;
use crate::association::state::State;
use crate::error::AbortReason;
use crate::init::{AsconfProof, protection_parameter};
use crate::path_id::PathId;
use crate::policy::{LossCause, OpportunityCause};
use crate::protection::{
    Agreement, Cover, KeyError, KeyManagementRole, KeyUse, MessageEnd, Mismatch, ParameterBytes,
    ParameterPair, Protection, ProtectionMode, RecordCipher, RestartContext, SealError, agree, contradiction,
    is_key_management,
};
use crate::stats::Discard;
use crate::time::Time;

/// Why a restart comes to nothing.
const NO_RESTART: &str = "the peer keeps no keys for a restart; open a new association";

/// What the driver and a key management do.
impl Association {
    /// What both sides have agreed on, once the association is up; `None` if it goes without protection.
    pub fn protection(&self) -> Option<&Agreement> {
        self.protection.agreed()
    }

    /// Whether only protected packets count from now on.
    pub fn requires_protection(&self) -> bool {
        self.protection.is_required()
    }

    /// Opens packets of this epoch from now on, beside those of the one before. The first epoch is
    /// [`FIRST_EPOCH`](crate::protection::FIRST_EPOCH), and each of the next ones follows. It is to be installed before the
    /// peer sends with it. From the first one on no plain packet brings data any more.
    ///
    /// # Errors
    /// [`KeyError`]. After [`KeyError::DataLeft`] the association is to be aborted: somebody has put data among that of the
    /// key management.
    pub fn install_receive_key(&mut self, epoch: u64, cipher: Box<dyn RecordCipher>) -> Result<(), KeyError> {
        // What came in plain packets took numbers that the peer will use for other data.
        let ends_plain_messages = self.protection.admits_plain_messages();
        if ends_plain_messages && self.held_bytes() > 0 {
            return Err(KeyError::DataLeft);
        }
        self.protection.install_receive(epoch, cipher)?;
        if ends_plain_messages {
            let end = self.receiver.as_ref().map(|receiver| MessageEnd {
                tsn: receiver.tracker.cumulative(),
                next_ssn: receiver.next_ssn(0),
            });
            end.into_iter().for_each(|end| self.protection.boundary.end_receiving(end));
            // The peer's last message proves that it has all of this side's. SACKs in the clear count for nothing from here on, so
            // T3 would repeat these messages ahead of the next one.
            self.acknowledge_all_sent();
        }
        Ok(())
    }

    /// Protects every packet with this key from now on.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn install_send_key(&mut self, epoch: u64, cipher: Box<dyn RecordCipher>) -> Result<(), KeyError> {
        self.protection.install_send(epoch, cipher)?;
        let end = self.end_of_sent();
        self.protection.boundary.end_sending(end);
        Ok(())
    }

    /// Opens no packets of this epoch any more; `false` if it did not. If nothing was sent under an epoch either, because no
    /// agreement on it came about, it is the next one again; the first epoch is not, since plain messages are over with it.
    pub fn remove_receive_key(&mut self, epoch: u64) -> bool {
        self.protection.remove_receive(epoch)
    }

    /// Keeps these keys for a restart of the peer's, which may come in the clear up to its INIT ACK and has to prove by records from
    /// its COOKIE ECHO on that it has them. They are of the newest epoch that was installed to receive, and two epochs may be kept at a
    /// time. A restart leaves no other keys, and the next primary ones are of [`FIRST_EPOCH`](crate::protection::FIRST_EPOCH)
    /// again.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn install_restart_keys(&mut self, keys: RestartContext) -> Result<(), KeyError> {
        self.protection.keep(keys)
    }

    /// Forgets the keys of this epoch that were kept for a restart: the peer has stored newer ones. `false` if there were none.
    pub fn remove_restart_keys(&mut self, epoch: u64) -> bool {
        self.protection.remove_kept(epoch)
    }

    /// Whether a restart has made its keys those in use, and no new primary ones have followed yet.
    pub fn uses_restart_keys(&self) -> bool {
        self.protection.uses_restart_keys()
    }

    /// Opens no packets with the keys that a restart was made with any more, since what was sealed with them can no longer be on its
    /// way. `false` if it did not, or if they are still the ones to send with.
    pub fn retire_restart_keys(&mut self) -> bool {
        self.protection.retire_restart()
    }

    /// Drops every packet without protection from now on, and lets the application send as soon as
    /// [`admits_user_messages`](Self::admits_user_messages) says so. The peer is to have proved with its latest message that it has all
    /// that this side's key management has sent, as the end of a TLS handshake does for either side.
    ///
    /// # Errors
    /// [`KeyError::NoSendKey`], [`KeyError::Closing`].
    pub fn require_protection(&mut self) -> Result<(), KeyError> {
        let was_required = self.protection.is_required();
        // A SHUTDOWN in the clear would make this side drop what the peer sends once it has keys.
        if !was_required && !matches!(self.state, State::Established | State::ShutdownPending) {
            return Err(KeyError::Closing);
        }
        self.protection.require()?;
        if !was_required && self.is_key_management_server() {
            // The client has no key to send with yet, so all its SACKs are in the clear and count for nothing. T3 would send the
            // earliest of these messages for ever, and the message that the client waits for stays behind them.
            self.acknowledge_all_sent();
        } else if !was_required {
            // A repetition in a record draws the protected SACK that user messages wait for.
            self.repeat_what_was_sent_in_the_clear();
            if !self.admits_user_messages() {
                self.protection.boundary.await_proof();
            }
        }
        self.ask_again_if_mutual();
        self.advance_asconf();
        Ok(())
    }

    /// Returns `true` if the association takes messages of the application, as far as its protection is concerned.
    ///
    /// A client of the key management waits until a protected SACK acknowledges all that it has sent in the clear, and nothing else.
    /// Then no TSN of a user message was used up by a plain packet that an attacker has made or shifted: the receiver would
    /// acknowledge that message although it never arrived. A server needs no such proof. The client answers in records only after
    /// it has delivered the server's first protected message, which has the TSN behind all plain ones.
    pub fn admits_user_messages(&self) -> bool {
        let sent = self.protection.boundary.sent().map_or(0, |end| end.tsn);
        let is_proved = self.sender.outstanding().cumulative() >= sent;
        self.protection.admits_user_messages() && (is_proved || self.is_key_management_server())
    }

    fn repeat_what_was_sent_in_the_clear(&mut self) {
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

    /// Ends the association if a protected SACK acknowledges a TSN that was never sent: the peer has counted plain packets that this
    /// side has not sent.
    pub(crate) fn check_acknowledgement(&mut self, cover: Cover, cum_tsn: Tsn) -> Result<(), Discard> {
        let cumulative = cum_tsn.unwrap_near(self.sender.outstanding().cumulative());
        match cover {
            Cover::Record if cumulative >= self.sender.lowest_unsent() => {
                Err(self.end_as_tampered(contradiction::ACKNOWLEDGEMENT))
            }
            Cover::Record | Cover::Plain => Ok(()),
        }
    }

    /// Ends the association because a protected packet contradicts what came in the clear, and reports it to the peer.
    pub(crate) fn end_as_tampered(&mut self, why: &'static str) -> Discard {
        self.send_abort(why);
        self.abort_with(AbortReason::Tampered(why));
        Discard::Unexpected
    }

    /// Ends the association because its key management cannot go on, and tells the peer.
    pub fn abort_for_key_management(&mut self, now: Time, why: &'static str) {
        self.clock(now);
        if !self.is_closed() {
            self.send_abort(why);
            self.abort_with(AbortReason::KeyManagement(why));
        }
    }

    /// Returns a short message of the key management's protocol that came in a plain packet after the first receive key was installed
    /// and before protection was required. Anyone on the way can have sent it, and it takes no part in the association: it is not
    /// acknowledged, it uses up no TSN, and it counts as [`Discard::Unprotected`]. A key management may act on it only if it proves
    /// itself that the peer has sent it, as an encrypted alert of TLS does.
    pub fn take_plain_notice(&mut self) -> Option<impl AsRef<[u8]>> {
        self.protection.take_plain_notice()
    }

    /// How often the newest keys were used.
    pub fn key_use(&self) -> KeyUse {
        self.protection.key_use()
    }
}

/// The handshake.
impl Association {
    pub(crate) fn wanted_protection(&self) -> Option<&Protection> {
        self.config.protection.as_ref()
    }

    /// What an answer to a colliding INIT repeats.
    pub(crate) fn repeated_offer(&self) -> Option<ParameterBytes> {
        self.protection.offer().filter(|_| self.is_opening()).cloned()
    }

    pub(crate) fn protection_param(&self) -> Option<Param<'_>> {
        RawParam::parse(self.protection.offer()?).ok()?.decode().ok()
    }

    /// Restarts an association that this side has lost.
    pub(crate) fn attempt_restart(&mut self, keys: RestartContext) {
        self.protection.attempt_restart(keys);
    }

    /// Whether a COOKIE ECHO only counts in a record.
    pub(crate) fn refuses_plain_cookies(&self) -> bool {
        self.protection.is_required() || self.protection.is_restarting()
    }

    pub(crate) fn asconf_proof(&self) -> AsconfProof {
        if self.config.protection.is_some() { AsconfProof::Record } else { AsconfProof::Auth }
    }

    /// What the INIT-ACK to our offer comes to, or why there is no association.
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

/// Packets in.
impl Association {
    /// The chunks in a packet's record, decrypted into `space`; `None` if the packet is plain and may be.
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

    /// The chunks in a record of a peer that seems to restart, and the epoch of the keys that were kept for that.
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

    /// What was asked in the clear as the keys came gets no answer that counts: it is asked again once the answer is protected.
    /// Paths would wait for a time-out otherwise, to be confirmed and for the size of their packets.
    fn ask_again_if_mutual(&mut self) {
        if !self.protection.becomes_mutual() {
            return;
        }
        for id in self.paths.ids() {
            if self.paths[id].removed {
                continue;
            }
            if self.paths[id].pending_heartbeat.is_some() {
                self.send_heartbeat(id);
            }
            self.repeat_mtu_probe(id);
        }
    }

    /// Whether a chunk counts that came in a plain packet although packets are to be protected. Whoever is on the way can have
    /// made it. Nothing in it may reach into what comes protected later: no message but those of the key management, no TSN
    /// that is not the next one, and nothing that moves the receiver past TSNs.
    pub(crate) fn admits_plain(&self, chunk: &Chunk<'_>) -> bool {
        if self.protection.agreed().is_none() {
            return true;
        }
        match chunk {
            Chunk::Data(data) => self.is_repeated(data) || self.is_next_of_key_management(data),
            Chunk::ForwardTsn(_) | Chunk::Asconf(_) | Chunk::AsconfAck(_) => false,
            // The client's last message is acknowledged in a record.
            Chunk::Sack(_) | Chunk::NrSack(_) => self.protection.admits_plain_messages(),
            _ => true,
        }
    }

    /// It is only acknowledged again.
    fn is_repeated(&self, data: &DataView<'_>) -> bool {
        let cumulative = self.receiver.as_ref().map(|receiver| receiver.tracker.cumulative());
        cumulative.is_some_and(|cumulative| data.tsn().unwrap_near(cumulative) <= cumulative)
    }

    fn is_next_of_key_management(&self, data: &DataView<'_>) -> bool {
        self.protection.admits_plain_messages() && self.is_next(data)
    }

    /// Returns `true` for a chunk of the key management with the next TSN.
    fn is_next(&self, data: &DataView<'_>) -> bool {
        let cumulative = self.receiver.as_ref().map(|receiver| receiver.tracker.cumulative());
        let is_next =
            cumulative.is_some_and(|cumulative| data.tsn().unwrap_near(cumulative) == cumulative + 1);
        let is_key_management = is_key_management(data.ppid(), data.stream().get(), data.flags().unordered);
        is_next && is_key_management
    }

    /// Keeps a plain message that the key management may recognise as the peer's refusal, although its chunk is dropped.
    pub(crate) fn note_plain(&mut self, chunk: &Chunk<'_>) {
        let Chunk::Data(data) = chunk else { return };
        let is_whole = data.flags().beginning && data.flags().ending;
        if self.protection.admits_plain_notice()
            && is_whole
            && self.is_next(data)
            && self.protection.keep_plain_notice(data.payload())
        {
            self.outputs.report_readable();
        }
    }
}

/// Packets out.
impl Association {
    /// The association cannot protect packets any more, and so cannot even say that it ends.
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

    /// How long a probe is that stands for packets of this many bytes before protection.
    pub(crate) fn probe_bytes(&self, bytes: usize) -> usize {
        let sealed = bytes - self.confirmation_bytes();
        if self.protection.seals() { sealed } else { bytes + self.protection.reserved_bytes() }
    }
}
