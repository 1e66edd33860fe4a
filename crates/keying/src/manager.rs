//! Key management of one association: initial keys, and new keys while data flows (draft-porfiri-tsvwg-sctp-dtls-handshake,
//! sections "Initial Establishment" and "Rekeying").

use std::collections::VecDeque;

use anabranch_core::protection::{Agreement, FIRST_EPOCH, KeyManagementMethod, KeyManagementRole};
use anabranch_core::time::{Span, Time, earliest};
use anabranch_core::{Association, ReceivedMessage, SendError};
use anabranch_dtls::RestartKeys;
use bytes::Bytes;

use crate::allowance::Allowance;
use crate::credentials::PeerIdentity;
use crate::error::{ExportError, KeyingError};
use crate::exchange::{KeyExchange, KeyExchanges, ParameterBinding, Part, Progress};
use crate::message::{Content, LONGEST_MESSAGE, Message};
use crate::policy::KeyPolicy;

mod age;
mod draining;
mod restart;

use draining::{Draining, Replaced};
use restart::Restarted;

/// Limits of an exchange for data received from the peer, in bytes and in messages.
const LARGEST_EXCHANGE: usize = 2 * LONGEST_MESSAGE;
const MOST_MESSAGES: u32 = 16;

/// Event for the driver of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyingEvent {
    /// The first keys are in use, and the association no longer accepts unprotected packets.
    Established,
    /// The association was restarted with its restart keys and is established under them. New keys are being negotiated, and user
    /// messages wait for them.
    Restarted,
    /// Newer keys are in use. After a restart the first of them have the first epoch again.
    Rekeyed {
        /// Epoch of the keys.
        epoch: u64,
    },
    /// The exchange for newer keys failed. The current keys stay in use, and the exchange will be retried.
    RekeyFailed(KeyingError),
    /// The key management failed. The driver first sends waiting packets, which may report the reason, and then aborts.
    Failed(KeyingError),
}

/// Counters of the key management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyingStatistics {
    /// Exchanges begun by either endpoint.
    pub handshakes: u64,
    /// Epochs whose keys are or were in use.
    pub epochs: u64,
    /// Exchanges for newer keys that failed.
    pub failed_rekeys: u64,
}

/// State of the key management, in the terms of the draft's "Key Transition State Machine".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There are no keys yet.
    Init,
    /// There are keys of one epoch.
    Young,
    /// This endpoint has requested new keys.
    LocalAged,
    /// The peer has requested new keys.
    RemoteAged,
    /// The local exchange is done. Its keys are used once the peer reports that it uses its own.
    LocalOld,
    /// New keys are in use, and the old ones are kept for packets in flight.
    Draining,
    /// The key management failed.
    Failed,
}

/// Keys in use.
#[derive(Debug)]
struct Keys {
    epoch: u64,
    since: Time,
    /// Kept for exports. No messages are sent through it.
    exchange: Box<dyn KeyExchange>,
    /// Number of messages about these keys that arrived since, such as a `close_notify`.
    stale: u32,
}

/// Running exchange.
#[derive(Debug)]
struct Attempt {
    part: Part,
    epoch: u64,
    exchange: Box<dyn KeyExchange>,
    /// Set if this client has receive keys and waits until the peer confirms that it uses its send keys.
    awaits_confirmation: bool,
    /// Restart keys of a completed exchange, if both endpoints keep such keys.
    restart_keys: Option<RestartKeys>,
    bytes: usize,
    messages: u32,
}

/// Key management of one association.
#[derive(Debug)]
pub struct KeyManager {
    exchanges: Box<dyn KeyExchanges>,
    policy: KeyPolicy,
    role: KeyManagementRole,
    /// Latest time at which the association was still opening. No answer can arrive before it is established.
    started: Time,
    keys: Option<Keys>,
    /// Set between a restart and the end of the next exchange.
    restarted: Option<Restarted>,
    attempt: Option<Attempt>,
    draining: Option<Draining>,
    /// Restart keys that the application has not taken yet.
    restart_keys: Option<RestartKeys>,
    /// Beginning of a message that arrives in pieces.
    pieces: Vec<u8>,
    peer_allowance: Allowance,
    /// Earliest time of the next exchange.
    retry_at: Option<Time>,
    events: VecDeque<KeyingEvent>,
    statistics: KeyingStatistics,
    /// Set while the first keys are in use and the association does not accept messages of the application yet.
    awaits_proof: bool,
    failed: bool,
    /// Identity of the peer that has rejected this endpoint.
    refused_by: Option<PeerIdentity>,
}

impl KeyManager {
    /// Creates the manager of an association with this agreement. It may be created before the association is established: its
    /// first message is then bundled with the COOKIE ECHO.
    ///
    /// # Errors
    /// Returns [`KeyingError::Method`] if the negotiated method is not TLS.
    pub fn new(
        now: Time,
        agreement: &Agreement,
        exchanges: Box<dyn KeyExchanges>,
        policy: KeyPolicy,
    ) -> Result<Self, KeyingError> {
        if ![KeyManagementMethod::TLS, KeyManagementMethod::TLS_CONFIRMED].contains(&agreement.method()) {
            return Err(KeyingError::Method);
        }
        let peer_allowance = Allowance::new(now, policy.peer_burst, policy.peer_interval);
        Ok(KeyManager {
            exchanges,
            role: agreement.role(),
            started: now,
            keys: None,
            restarted: None,
            attempt: None,
            draining: None,
            restart_keys: None,
            pieces: Vec::new(),
            peer_allowance,
            retry_at: None,
            events: VecDeque::new(),
            statistics: KeyingStatistics::default(),
            awaits_proof: false,
            failed: false,
            refused_by: None,
            policy,
        })
    }

    /// Begins the first exchange if this endpoint is the client.
    pub fn start(&mut self, association: &mut Association) {
        if self.role == KeyManagementRole::Client && self.keys.is_none() && self.attempt.is_none() {
            let begun = self.begin(association);
            self.note(begun);
        }
    }

    /// Processes a message with the payload protocol identifier of the key management.
    pub fn receive(
        &mut self,
        now: Time,
        piece: &ReceivedMessage,
        payload: &[u8],
        association: &mut Association,
    ) {
        if !self.failed {
            let taken = self.take(now, piece, payload, association);
            self.note(taken);
        }
    }

    /// Performs due actions. Call when [`deadline`](Self::deadline) has passed, and from time to time while data flows, because
    /// keys also age by use.
    pub fn poll(&mut self, now: Time, association: &mut Association) {
        if !self.failed {
            let done = self.advance(now, association);
            self.note(done);
        }
    }

    /// Returns the time of the next action that depends on time alone.
    pub fn deadline(&self) -> Option<Time> {
        if self.failed {
            return None;
        }
        let Some(keys) = self.keys.as_ref().filter(|_| !self.awaits_proof) else {
            return Some(self.started + self.policy.handshake_timeout);
        };
        let ages = match (&self.attempt, self.retry_at) {
            (Some(_), _) => None,
            (None, retry) => Some(self.aged_at(keys).max(retry.unwrap_or(Time::ZERO))),
        };
        let drained = self.draining.as_ref().map(Draining::until);
        earliest([ages, drained, Some(keys.since + self.policy.expire_after)])
    }

    /// Returns the next event, once per event.
    pub fn poll_event(&mut self) -> Option<KeyingEvent> {
        self.events.pop_front()
    }

    /// Returns `true` if keys protect the association that were negotiated since it was established or restarted.
    pub fn is_established(&self) -> bool {
        self.keys.is_some() && !self.awaits_proof
    }

    /// Returns the proved identity of the peer. Returns `None` before the association is protected, and at the endpoint that
    /// restarted it until the next exchange is done.
    pub fn peer_identity(&self) -> Option<&PeerIdentity> {
        match &self.keys {
            Some(keys) => keys.exchange.identity(),
            None => self.restarted.as_ref()?.known(),
        }
    }

    /// Fills `out` with bytes that only the two endpoints can derive from the latest exchange for this label and context.
    ///
    /// # Errors
    /// Returns [`ExportError`] if there are no keys yet or TLS does not export these bytes.
    pub fn export(&self, label: &[u8], context: Option<&[u8]>, out: &mut [u8]) -> Result<(), ExportError> {
        self.keys.as_ref().ok_or(ExportError::NotEstablished)?.exchange.export(label, context, out)
    }

    /// Returns the error that an ABORT of the association means now, or `None` once keys are in use. Before that any host on the
    /// path may have sent the ABORT, so the error is not a verdict of the peer.
    pub fn meaning_of_abort(&self) -> Option<KeyingError> {
        let was_done = self.attempt.as_ref().is_some_and(|attempt| attempt.awaits_confirmation);
        match was_done {
            _ if self.keys.is_some() => None,
            true => Some(KeyingError::Unconfirmed),
            false => Some(KeyingError::Interrupted),
        }
    }

    /// Returns the identity of a peer that proved it in an exchange without resulting keys.
    pub fn unconfirmed_identity(&self) -> Option<&PeerIdentity> {
        self.refused_by.as_ref()
    }

    /// Returns the counters.
    pub fn statistics(&self) -> KeyingStatistics {
        self.statistics
    }

    /// Returns the state of the key management.
    pub fn phase(&self) -> Phase {
        match (&self.keys, &self.attempt) {
            _ if self.failed => Phase::Failed,
            (None, _) if self.restarted.is_none() => Phase::Init,
            (_, Some(attempt)) if attempt.awaits_confirmation => Phase::LocalOld,
            (_, Some(Attempt { part: Part::Client, .. })) => Phase::LocalAged,
            (_, Some(Attempt { part: Part::Server, .. })) => Phase::RemoteAged,
            (_, None) if self.draining.is_some() => Phase::Draining,
            (_, None) => Phase::Young,
        }
    }

    fn note(&mut self, done: Result<(), KeyingError>) {
        if let Err(error) = done {
            self.failed = true;
            self.attempt = None;
            self.events.push_back(KeyingEvent::Failed(error));
        }
    }

    /// Returns the epoch of the running or next exchange.
    fn next_epoch(&self) -> u64 {
        self.keys.as_ref().map_or(FIRST_EPOCH, |keys| keys.epoch + 1)
    }

    fn begin(&mut self, association: &mut Association) -> Result<(), KeyingError> {
        let mut exchange = self.exchanges.start(Part::Client)?;
        let mut hello = Vec::new();
        exchange.begin(&mut hello)?;
        self.enter(Part::Client, exchange);
        self.send_records(association, &hello);
        Ok(())
    }

    fn enter(&mut self, part: Part, exchange: Box<dyn KeyExchange>) {
        self.statistics.handshakes += 1;
        self.retry_at = None;
        let epoch = self.next_epoch();
        self.attempt = Some(Attempt {
            part,
            epoch,
            exchange,
            awaits_confirmation: false,
            restart_keys: None,
            bytes: 0,
            messages: 0,
        });
    }

    fn send_records(&self, association: &mut Association, records: &[u8]) {
        if !records.is_empty() {
            send(association, Message::new(self.next_epoch(), Content::Records(records)));
        }
    }
}

/// Messages of the peer.
impl KeyManager {
    fn take(
        &mut self,
        now: Time,
        piece: &ReceivedMessage,
        payload: &[u8],
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        if piece.stream != 0 || piece.unordered {
            return Err(KeyingError::Unexpected);
        }
        if piece.beginning && piece.ending {
            return self.take_message(now, payload, association);
        }
        // If the receive buffer is full of data behind a loss, the association delivers messages in pieces.
        if piece.beginning {
            self.pieces.clear();
        }
        if self.pieces.len() + payload.len() > LONGEST_MESSAGE {
            return Err(KeyingError::TooLong);
        }
        self.pieces.extend_from_slice(payload);
        if !piece.ending {
            return Ok(());
        }
        let whole = std::mem::take(&mut self.pieces);
        self.take_message(now, &whole, association)
    }

    fn take_message(
        &mut self,
        now: Time,
        bytes: &[u8],
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        check_role(association, self.role)?;
        let message = Message::parse(bytes)?;
        if message.is_about(self.next_epoch()) {
            return match message.content {
                Content::Records(records) => self.take_records(now, records, association),
                Content::ProtectionEstablished => self.confirmed(now, association),
            };
        }
        match &mut self.keys {
            // A message that ends the TLS connection of the current keys.
            Some(keys) if message.is_about(keys.epoch) && keys.stale < MOST_MESSAGES => {
                keys.stale += 1;
                Ok(())
            }
            _ => Err(KeyingError::WrongEpoch),
        }
    }

    fn take_records(
        &mut self,
        now: Time,
        records: &[u8],
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        if !self.admits_records(now, records)? {
            return Ok(());
        }
        let Some(attempt) = &mut self.attempt else { return Err(KeyingError::Unexpected) };
        attempt.bytes += records.len();
        attempt.messages += 1;
        if attempt.bytes > LARGEST_EXCHANGE || attempt.messages > MOST_MESSAGES {
            return Err(KeyingError::TooLong);
        }
        let mut answer = Vec::new();
        match attempt.exchange.receive(records, &mut answer) {
            Ok(Progress::Running) => self.send_records(association, &answer),
            Ok(Progress::Done) if attempt.awaits_confirmation => {}
            Ok(Progress::Done) => return self.exchanged(now, &answer, association),
            Err(error) => {
                self.send_records(association, &answer);
                return self.exchange_failed(now, error, association);
            }
        }
        Ok(())
    }

    /// Returns `true` if the records belong to the running exchange, or begin one.
    fn admits_records(&mut self, now: Time, records: &[u8]) -> Result<bool, KeyingError> {
        let collides = self.keys.is_some() && self.exchanges.begins(records);
        match &self.attempt {
            // Section "Simultaneous Rekey Resolution": the exchange of the client of the key management wins.
            Some(Attempt { part: Part::Client, awaits_confirmation: false, .. }) if collides => {
                match self.role {
                    KeyManagementRole::Client => return Ok(false),
                    KeyManagementRole::Server => {}
                }
            }
            Some(_) => return Ok(true),
            None if !self.exchanges.begins(records) => {
                // An alert may follow an exchange that failed locally.
                return if self.keys.is_some() { Ok(false) } else { Err(KeyingError::Unexpected) };
            }
            None if self.keys.is_none() && self.role == KeyManagementRole::Client => {
                return Err(KeyingError::Unexpected);
            }
            None => {}
        }
        if !self.peer_allowance.take(now) {
            return Err(KeyingError::TooOften);
        }
        let exchange = self.exchanges.start(Part::Server)?;
        self.enter(Part::Server, exchange);
        Ok(true)
    }

    /// Section "Error Handling": without keys the association ends; with keys the exchange is retried.
    fn exchange_failed(
        &mut self,
        now: Time,
        error: KeyingError,
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        let Some(attempt) = self.attempt.take().filter(|_| self.keys.is_some()) else { return Err(error) };
        if attempt.awaits_confirmation {
            association.remove_receive_key(attempt.epoch);
            association.remove_restart_keys(attempt.epoch);
        }
        self.statistics.failed_rekeys += 1;
        self.retry_at = Some(now + self.policy.retry_after);
        self.events.push_back(KeyingEvent::RekeyFailed(error));
        Ok(())
    }
}

/// Installation of keys.
impl KeyManager {
    /// Installs the new receive keys, and at a server the send keys as well.
    fn exchanged(
        &mut self,
        now: Time,
        answer: &[u8],
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        self.check_identity()?;
        let Some(attempt) = &mut self.attempt else { return Err(KeyingError::Unexpected) };
        let part = attempt.part;
        let epoch = attempt.epoch;
        // The client's read key is the server's write key. Step 7 of the draft's initial establishment names the client's instead,
        // with which its peer never sends; the draft's rekeying section is correct.
        let binding = binding(association)?;
        let receive = attempt.exchange.cipher(part.inward(), &binding)?;
        if let Some(old) = self.draining.take() {
            old.end(association);
        }
        association.install_receive_key(epoch, receive)?;
        attempt.keep_restart_keys(&binding, association)?;
        match part {
            Part::Client => {
                attempt.awaits_confirmation = true;
                self.send_records(association, answer);
                Ok(())
            }
            Part::Server => {
                self.send_records(association, answer);
                self.use_keys(now, association)?;
                send(association, Message::new(epoch, Content::ProtectionEstablished));
                Ok(())
            }
        }
    }

    /// "Clients and servers MUST NOT accept a change of identity during the setup of a new TLS connection". After a restart this
    /// also applies at the endpoint that knows the peer's previous identity.
    fn check_identity(&self) -> Result<(), KeyingError> {
        let now = self.attempt.as_ref().and_then(|attempt| attempt.exchange.identity());
        match self.peer_identity() {
            Some(known) if !now.is_some_and(|now| now.is_same(known)) => Err(KeyingError::IdentityChanged),
            _ => Ok(()),
        }
    }

    /// Switches to the new keys, since the peer uses its own.
    fn confirmed(&mut self, now: Time, association: &mut Association) -> Result<(), KeyingError> {
        match &self.attempt {
            Some(attempt) if attempt.awaits_confirmation => self.use_keys(now, association),
            _ => Err(KeyingError::Unexpected),
        }
    }

    fn use_keys(&mut self, now: Time, association: &mut Association) -> Result<(), KeyingError> {
        let Some(mut attempt) = self.attempt.take() else { return Err(KeyingError::Unexpected) };
        let binding = binding(association)?;
        let send = attempt.exchange.cipher(attempt.part.outward(), &binding)?;
        association.install_send_key(attempt.epoch, send)?;
        association.require_protection()?;
        // The peer keeps the same restart keys now, so they are worth storing.
        self.restart_keys = attempt.restart_keys.take().or(self.restart_keys.take());
        let keys = Keys { epoch: attempt.epoch, since: now, exchange: attempt.exchange, stale: 0 };
        self.statistics.epochs += 1;
        let replaced = match (self.keys.replace(keys), self.restarted.take()) {
            (Some(old), _) => Replaced::Primary(old.epoch),
            (None, Some(_)) => Replaced::Restart,
            (None, None) => {
                self.awaits_proof = true;
                self.consider_established(association);
                return Ok(());
            }
        };
        self.draining = Some(Draining::new(now, replaced, attempt.part, &self.policy));
        self.events.push_back(KeyingEvent::Rekeyed { epoch: attempt.epoch });
        Ok(())
    }

    /// Reports the first keys once the application may send.
    fn consider_established(&mut self, association: &Association) {
        if self.awaits_proof && association.admits_user_messages() {
            self.awaits_proof = false;
            self.events.push_back(KeyingEvent::Established);
        }
    }

    /// Examines a plaintext packet that arrived while the peer's confirmation was awaited. A peer that rejects this endpoint has no
    /// keys to protect its alert, but only the peer can have created that record.
    fn inspect_plain_notice(&mut self, association: &mut Association) -> Result<(), KeyingError> {
        let Some(notice) = association.take_plain_notice() else { return Ok(()) };
        let Ok(message) = Message::parse(notice.as_ref()) else { return Ok(()) };
        let (true, Content::Records(records)) = (message.is_about(self.next_epoch()), message.content) else {
            return Ok(());
        };
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.awaits_confirmation);
        let Some(attempt) = attempt.filter(|_| self.keys.is_none()) else { return Ok(()) };
        let examined = attempt.exchange.inspect_plain_notice(records);
        if examined.is_err_and(KeyingError::is_refusal) {
            self.refused_by = attempt.exchange.identity().cloned();
        }
        examined
    }

    /// Performs actions that are due by time or use.
    fn advance(&mut self, now: Time, association: &mut Association) -> Result<(), KeyingError> {
        self.inspect_plain_notice(association)?;
        check_role(association, self.role)?;
        if association.is_opening() {
            self.started = now;
        } else if self.restarted.as_mut().is_some_and(Restarted::mark_established) {
            self.events.push_back(KeyingEvent::Restarted);
        }
        self.consider_established(association);
        let Some(keys) = self.keys.as_ref().filter(|_| !self.awaits_proof) else {
            let late = now >= self.started + self.policy.handshake_timeout;
            return if late { Err(self.timeout_reason(association)) } else { Ok(()) };
        };
        if now >= keys.since + self.policy.expire_after {
            return Err(KeyingError::Expired);
        }
        let usage = association.key_use();
        let policy = &self.policy;
        let over = |draining: &mut Draining| draining.is_over(now, usage.opened > 0, policy.drain);
        if let Some(drained) = self.draining.take_if(over) {
            drained.end(association);
        }
        let may = self.attempt.is_none() && self.retry_at.is_none_or(|at| now >= at);
        if may && (now >= self.aged_at(keys) || self.is_used_up(&usage)) {
            self.begin(association)?;
        }
        Ok(())
    }

    /// Returns the reason for a timeout. A client with keys receives the server's confirmation under them, unless it cannot decrypt
    /// the server's packets.
    fn timeout_reason(&self, association: &Association) -> KeyingError {
        let is_done = self.attempt.as_ref().is_some_and(|attempt| attempt.awaits_confirmation);
        if is_done && association.key_use().failed > 0 {
            KeyingError::KeysDiffer
        } else {
            KeyingError::TimedOut
        }
    }

    fn aged_at(&self, keys: &Keys) -> Time {
        let nanos = self.policy.rekey_after.as_nanos();
        keys.since + Span::from_nanos(age::limit_of(self.role, nanos))
    }

    fn is_used_up(&self, usage: &anabranch_core::protection::KeyUse) -> bool {
        age::is_used_up(self.role, &self.policy, usage)
    }
}

/// Checks that the role is unchanged. If the association's handshake restarts, because its cookie was stale or both endpoints began
/// at once, it can lead to another agreement. A change of the role ends the key management.
fn check_role(association: &Association, role: KeyManagementRole) -> Result<(), KeyingError> {
    match association.protection() {
        Some(agreement) if agreement.role() != role => Err(KeyingError::RolesChanged),
        _ => Ok(()),
    }
}

/// Returns the parameters of the latest agreement, on which keys depend.
fn binding(association: &Association) -> Result<ParameterBinding, KeyingError> {
    association.protection().map(ParameterBinding::of).ok_or(KeyingError::Unexpected)
}

/// Sends a message. A closing association sends no more messages and needs no new keys.
fn send(association: &mut Association, message: Message<'_>) {
    let sent = association.send_key_management(Bytes::from(message.to_bytes()));
    debug_assert!(matches!(sent, Ok(()) | Err(SendError::Closing)), "{sent:?}");
}
