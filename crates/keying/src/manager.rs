//! The key management of one association: the first keys, and the next ones while data flows
//! (draft-porfiri-tsvwg-sctp-dtls-handshake, sections "Initial Establishment" and "Rekeying").

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

/// The most that an exchange takes from the peer, in bytes and in messages.
const LARGEST_EXCHANGE: usize = 2 * LONGEST_MESSAGE;
const MOST_MESSAGES: u32 = 16;

/// What came of it, for whoever drives the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyingEvent {
    /// The first keys are in use, and the association takes nothing without protection any more.
    Established,
    /// The association was restarted with the keys that were kept for that, and is up under them. New ones are being agreed on, and
    /// user messages wait for these.
    Restarted,
    /// Newer keys are in use. The first ones after a restart are of the first epoch again.
    Rekeyed {
        /// Their epoch.
        epoch: u64,
    },
    /// No newer keys came about. The present ones stay in use, and there will be another try.
    RekeyFailed(KeyingError),
    /// It has given up. Once what waits has been sent, which may tell the peer why, the association is to be aborted.
    Failed(KeyingError),
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyingStatistics {
    /// Exchanges that were begun, by either side.
    pub handshakes: u64,
    /// Epochs whose keys are or were in use.
    pub epochs: u64,
    /// Exchanges for newer keys that failed.
    pub failed_rekeys: u64,
}

/// Where it stands, in the terms of the draft's "Key Transition State Machine".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There are no keys yet.
    Init,
    /// There is one epoch.
    Young,
    /// This side has asked for new keys.
    LocalAged,
    /// The peer has asked for new keys.
    RemoteAged,
    /// This side's exchange is done; its keys are used once the peer has said that it does.
    LocalOld,
    /// There are new keys and those before, which wait for what is on its way.
    Draining,
    /// It has given up.
    Failed,
}

/// Keys in use.
#[derive(Debug)]
struct Keys {
    epoch: u64,
    since: Time,
    /// Kept for what is exported. Nothing is sent through it any more.
    exchange: Box<dyn KeyExchange>,
    /// Messages about them that came since, such as a `close_notify`.
    stale: u32,
}

/// An exchange that runs.
#[derive(Debug)]
struct Attempt {
    part: Part,
    epoch: u64,
    exchange: Box<dyn KeyExchange>,
    /// A client has keys to receive with, and waits until the peer says that it uses its own.
    awaits_confirmation: bool,
    /// For a restart, once it is done, if both sides keep such keys.
    restart_keys: Option<RestartKeys>,
    bytes: usize,
    messages: u32,
}

/// The key management of one association.
#[derive(Debug)]
pub struct KeyManager {
    exchanges: Box<dyn KeyExchanges>,
    policy: KeyPolicy,
    role: KeyManagementRole,
    /// When the association was up, as far as is known: before that no answer can come.
    started: Time,
    keys: Option<Keys>,
    /// There was a restart, and no exchange is done since.
    restarted: Option<Restarted>,
    attempt: Option<Attempt>,
    draining: Option<Draining>,
    /// For the application, which has not taken them yet.
    restart_keys: Option<RestartKeys>,
    /// The beginning of a message that comes in pieces.
    pieces: Vec<u8>,
    peer_allowance: Allowance,
    /// Not before then is another exchange begun.
    retry_at: Option<Time>,
    events: VecDeque<KeyingEvent>,
    statistics: KeyingStatistics,
    /// The first keys are in use, and the association does not take messages of the application yet.
    awaits_proof: bool,
    failed: bool,
    /// The identity of the peer that has refused this side.
    refused_by: Option<PeerIdentity>,
}

impl KeyManager {
    /// For an association that has come to this agreement. It may be there as soon as the agreement is, before the association is
    /// up: its first message then leaves with the COOKIE ECHO.
    ///
    /// # Errors
    /// [`KeyingError::Method`] if the agreement is not on TLS.
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

    /// Begins the first exchange, if that is this side's to do.
    pub fn start(&mut self, association: &mut Association) {
        if self.role == KeyManagementRole::Client && self.keys.is_none() && self.attempt.is_none() {
            let begun = self.begin(association);
            self.note(begun);
        }
    }

    /// Takes a message of the key management's payload protocol.
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

    /// Does what is due. To be called when [`deadline`](Self::deadline) has come, and from time to time while data flows, since
    /// keys also age by use.
    pub fn poll(&mut self, now: Time, association: &mut Association) {
        if !self.failed {
            let done = self.advance(now, association);
            self.note(done);
        }
    }

    /// When time alone makes something due.
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

    /// What came of it; each is told once.
    pub fn poll_event(&mut self) -> Option<KeyingEvent> {
        self.events.pop_front()
    }

    /// Whether the association is protected by keys that were agreed on since it is up, or since it was restarted.
    pub fn is_established(&self) -> bool {
        self.keys.is_some() && !self.awaits_proof
    }

    /// Who the peer has proved to be; `None` before the association is protected, and at a side that has restarted it until the
    /// first exchange since is done.
    pub fn peer_identity(&self) -> Option<&PeerIdentity> {
        match &self.keys {
            Some(keys) => keys.exchange.identity(),
            None => self.restarted.as_ref()?.known(),
        }
    }

    /// Fills `out` with what both sides, and nobody else, can derive from the latest exchange for this label and context.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn export(&self, label: &[u8], context: Option<&[u8]>, out: &mut [u8]) -> Result<(), ExportError> {
        self.keys.as_ref().ok_or(ExportError::NotEstablished)?.exchange.export(label, context, out)
    }

    /// Returns the error that an ABORT of the association means now. There is none once keys are in use. Before that anyone on the way
    /// can have sent the ABORT, so the error is no verdict of the peer.
    pub fn meaning_of_abort(&self) -> Option<KeyingError> {
        let was_done = self.attempt.as_ref().is_some_and(|attempt| attempt.awaits_confirmation);
        match was_done {
            _ if self.keys.is_some() => None,
            true => Some(KeyingError::Unconfirmed),
            false => Some(KeyingError::Interrupted),
        }
    }

    /// Returns the identity of a peer that has proved it in an exchange which has not led to keys.
    pub fn unconfirmed_identity(&self) -> Option<&PeerIdentity> {
        self.refused_by.as_ref()
    }

    /// Counters.
    pub fn statistics(&self) -> KeyingStatistics {
        self.statistics
    }

    /// Where it stands.
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

    /// The epoch that is or would be agreed on now.
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

/// What the peer says.
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
        // A receive buffer that is full of data behind a loss hands out messages in pieces.
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
            // What ends a TLS connection that has served its purpose.
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

    /// Whether records are for the exchange that runs, which they may be the first of.
    fn admits_records(&mut self, now: Time, records: &[u8]) -> Result<bool, KeyingError> {
        let collides = self.keys.is_some() && self.exchanges.begins(records);
        match &self.attempt {
            // Section "Simultaneous Rekey Resolution": what the client of the key management asked for counts.
            Some(Attempt { part: Part::Client, awaits_confirmation: false, .. }) if collides => {
                match self.role {
                    KeyManagementRole::Client => return Ok(false),
                    KeyManagementRole::Server => {}
                }
            }
            Some(_) => return Ok(true),
            None if !self.exchanges.begins(records) => {
                // An alert may follow an exchange that has failed here.
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

    /// Section "Error Handling": without keys the association ends, with keys there is another try.
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

/// Keys.
impl KeyManager {
    /// There are new keys to receive with, and at a server to send with as well.
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
        // The client's read key is the server's. In the initial establishment the draft's step 7 has it the client's, which its
        // peer never sends with; the rekeying has it right.
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

    /// "Clients and servers MUST NOT accept a change of identity during the setup of a new TLS connection". A restart is no
    /// exception at the side that knows who the peer was.
    fn check_identity(&self) -> Result<(), KeyingError> {
        let now = self.attempt.as_ref().and_then(|attempt| attempt.exchange.identity());
        match self.peer_identity() {
            Some(known) if !now.is_some_and(|now| now.is_same(known)) => Err(KeyingError::IdentityChanged),
            _ => Ok(()),
        }
    }

    /// The peer uses its keys, so this side uses its own.
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
        // The peer keeps the same ones by now, so that they are worth storing.
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

    /// Examines what came in the clear while the peer's confirmation was awaited. A peer that refuses this side has no keys to say so
    /// with, but its alert is a record that only it can have made.
    fn examine_notice(&mut self, association: &mut Association) -> Result<(), KeyingError> {
        let Some(notice) = association.take_plain_notice() else { return Ok(()) };
        let Ok(message) = Message::parse(notice.as_ref()) else { return Ok(()) };
        let (true, Content::Records(records)) = (message.is_about(self.next_epoch()), message.content) else {
            return Ok(());
        };
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.awaits_confirmation);
        let Some(attempt) = attempt.filter(|_| self.keys.is_none()) else { return Ok(()) };
        let examined = attempt.exchange.examine_notice(records);
        if examined.is_err_and(KeyingError::is_refusal) {
            self.refused_by = attempt.exchange.identity().cloned();
        }
        examined
    }

    /// What time and use have made due.
    fn advance(&mut self, now: Time, association: &mut Association) -> Result<(), KeyingError> {
        self.examine_notice(association)?;
        check_role(association, self.role)?;
        if association.is_opening() {
            self.started = now;
        } else if self.restarted.as_mut().is_some_and(Restarted::comes_up) {
            self.events.push_back(KeyingEvent::Restarted);
        }
        self.consider_established(association);
        let Some(keys) = self.keys.as_ref().filter(|_| !self.awaits_proof) else {
            let late = now >= self.started + self.policy.handshake_timeout;
            return if late { Err(self.why_late(association)) } else { Ok(()) };
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

    /// A client that has keys hears under them that the server uses them too, or cannot open what it hears.
    fn why_late(&self, association: &Association) -> KeyingError {
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

/// A handshake of the association that begins anew, because its cookie was stale or both sides began at once, can come to another
/// agreement than the one with which this key management began. Another role ends it.
fn check_role(association: &Association, role: KeyManagementRole) -> Result<(), KeyingError> {
    match association.protection() {
        Some(agreement) if agreement.role() != role => Err(KeyingError::RolesChanged),
        _ => Ok(()),
    }
}

/// What keys depend on: the latest agreement.
fn binding(association: &Association) -> Result<ParameterBinding, KeyingError> {
    association.protection().map(ParameterBinding::of).ok_or(KeyingError::Unexpected)
}

/// While the association ends nothing more can be sent, and no new keys are needed either.
fn send(association: &mut Association, message: Message<'_>) {
    let sent = association.send_key_management(Bytes::from(message.to_bytes()));
    debug_assert!(matches!(sent, Ok(()) | Err(SendError::Closing)), "{sent:?}");
}
