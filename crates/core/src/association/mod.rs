//! One association: its state, and the methods for applications and drivers.
//!
//! Each procedure has its file: [`handshake`], [`inbound`] data, [`sack_in`] and [`sack_out`], [`outbound`] packets,
//! [`recovery`] after losses, [`heartbeat`]s and path states, [`shutdown`], [`timers`].

mod abandonment;
mod ack_state;
mod address_manager;
mod addresses;
mod asconf;
mod asconf_in;
mod buffers;
mod chunks;
mod confirmation;
mod control;
mod cookie_echo;
mod copied;
mod dispatch;
mod forward_tsn;
mod handshake;
mod heartbeat;
mod heartbeat_clock;
mod heartbeat_info;
mod inbound;
mod invariants;
mod loss_tasks;
mod outbound;
mod outputs;
mod packets;
mod path_cost;
mod path_events;
mod path_mtu;
mod paths;
mod policies;
mod protection;
mod re_config_answer;
mod reachability;
mod recovery;
mod refused;
mod reported;
mod sack_in;
mod sack_out;
mod send_room;
mod send_rules;
mod shutdown;
mod sources;
mod state;
mod stream_changes;
#[cfg(test)]
mod testing;
mod timers;
mod transmission;
mod zero_checksum;

use std::num::NonZeroU16;
use std::sync::Arc;

use bytes::Bytes;

use crate::address::{LocalEnd, PathAddress};
use crate::authentication::RANDOM_LEN;
use crate::config::{AssociationConfig, Encapsulation, Integrity, InterfaceMtu, PacketForm};
use crate::contents::Contents;
use crate::entropy::Entropy;
use crate::error::{AbortReason, PathError, SendError, StreamsError};
use crate::path_id::{PathId, PathState};
use crate::paths::{PathOptions, Paths};
use crate::policy::{AssociationFacts, PathFacts};
use crate::profile::Profile;
use crate::protection::{KEY_MANAGEMENT_PPID, PacketProtection};
use crate::recv::{ReceivedMessage, Receiver};
use crate::send::{AbandonCause, Reliability, SendOptions, SendQueue, Sender};
use crate::stats::Statistics;
use crate::time::{Time, earliest};
use crate::trace::TraceEvent;
use crate::units::WindowBytes;

use ack_state::AckState;
use address_manager::AddressManager;
pub(crate) use asconf_in::is_of_one_host;
use control::ControlQueue;
pub(crate) use handshake::{CookieSource, Peer};
use outputs::Outputs;
use packets::PacketContext;
use policies::PolicyState;
use reachability::Reachability;
use recovery::LossRecovery;
pub use send_room::SendRoom;
pub use send_rules::SendRules;
use state::State;
use stream_changes::StreamChangeState;
pub use stream_changes::{StreamDirection, StreamRefusal, StreamRequest};
use transmission::Transmission;
use zero_checksum::ZeroChecksum;

/// Maximum number of outstanding chunks: within reach of a SACK's 16-bit gap offsets, and low enough that the stream sequence
/// numbers of their messages stay within half of their space.
//= docs/rfc9260.txt#section-1.6
//# An endpoint SHOULD NOT transmit a DATA chunk with a TSN that is more than 2^31 - 1 above the beginning TSN of its
//# current send window.
//= docs/rfc9260.txt#section-6.1
//# The data sender MUST NOT use a TSN that is more than 2^31 - 1 above the beginning TSN of the current send window.
//= docs/rfc9260.txt#section-6.1
//# For each stream, the data sender MUST NOT have more than 2^16 - 1 ordered user messages in the current send window.
pub(crate) const MAX_OUTSTANDING_CHUNKS: usize = 32_767;

/// Event of an association for its application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssociationEvent {
    /// The association is established.
    Connected,
    /// Messages can be read.
    Readable,
    /// Send buffer became free after a send was refused, or the peer has proved that messages of the application may be sent
    /// ([`Association::admits_user_messages`]).
    Writable,
    /// A message was abandoned by its limit of reliability, or because the peer does not accept its stream. It may have arrived
    /// nevertheless, if acknowledgements were lost or late.
    Abandoned {
        /// Stream of the message.
        stream: u16,
        /// Number that the application has given the message ([`SendOptions::context`]).
        context: u64,
        /// Reason of the abandonment.
        cause: AbandonCause,
        /// `true` if a part of the message had been sent.
        sent: bool,
    },
    /// The peer does not support partial reliability, and messages with limits were sent before the handshake ended. They are
    /// delivered reliably unless they are abandoned before a part has been sent. Later ones are refused.
    NoPartialReliability,
    /// A path changed state.
    PathState {
        /// Path that changed.
        path: PathId,
        /// New state.
        state: PathState,
    },
    /// A path was added by the application, or because the peer sent from there. It is not verified yet.
    PathAdded {
        /// New path.
        path: PathId,
    },
    /// A path was removed by the application, to make room for another one, or because its source never answered. Its id may be
    /// reused.
    PathRemoved {
        /// Removed path.
        path: PathId,
    },
    /// The peer's UDP port of a path has changed: another path replaces it.
    PathRebound {
        /// New path.
        path: PathId,
        /// Former path, which was removed.
        was: PathId,
    },
    /// The list of addresses that the peer reports in protected packets has changed ([`Association::reported_addresses`]).
    PeerAddresses,
    /// Stream sequence numbers start at zero again (RFC 6525). Messages that were received on an incoming stream before the reset,
    /// and are not read yet, are read first.
    StreamsReset {
        /// Direction of the streams.
        direction: StreamDirection,
        /// Streams in ascending order; none means all.
        streams: Vec<u16>,
    },
    /// Streams were added.
    StreamsAdded {
        /// Direction of the streams.
        direction: StreamDirection,
        /// Number of all streams of the direction.
        streams: u16,
    },
    /// The peer has not performed a request of this side for a change of streams. All streams continue as before.
    StreamRequestFailed {
        /// Request that has failed.
        request: StreamRequest,
        /// Answer of the peer.
        refusal: StreamRefusal,
    },
    /// The peer restarted: queued and unread messages are lost, and the association is established again.
    Restarted,
    /// The peer has requested a shutdown.
    ShutdownReceived,
    /// The association ended with a shutdown, with all messages delivered.
    Closed,
    /// The association ended without a shutdown.
    Aborted(AbortReason),
}

/// Identifiers of the association on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) local_tag: u32,
    /// Tag of the peer; zero until it is known.
    pub(crate) peer_tag: u32,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    /// Own initial TSN, unwrapped.
    initial_tsn: u64,
    /// `true` if this side sent the INIT.
    initiator: bool,
    /// `true` if the peer announced that it controls streams.
    pub(crate) peer_controls_streams: bool,
    /// Number of restarts of the peer.
    restarts: u32,
    integrity: Integrity,
    zero_checksum: ZeroChecksum,
    contents: Contents,
    form: PacketForm,
}

/// One association of an [`Endpoint`](crate::Endpoint).
#[derive(Debug)]
pub struct Association {
    config: AssociationConfig,
    profile: Arc<Profile>,
    policies: PolicyState,
    state: State,
    now: Time,
    identity: Identity,
    addresses: AddressManager,
    protection: PacketProtection,
    paths: Paths,
    reachability: Reachability,
    sender: Sender,
    transmission: Transmission,
    recovery: LossRecovery,
    receiver: Option<Receiver>,
    /// Bytes read in the current round trip, which determine the size of the receive buffer.
    reading: buffers::Reading,
    ack: AckState,
    control: ControlQueue,
    /// State of changes of streams, if both sides support them. A box, because most associations have none.
    stream_changes: Option<Box<StreamChangeState>>,
    outputs: Outputs,
}

impl Association {
    pub(crate) fn new(now: Time, config: AssociationConfig, seed: AssociationSeed) -> Self {
        let entropy = seed.entropy;
        let profile = Arc::new(config.profile.clone());
        let path_options = PathOptions {
            default_packet_bytes: config.mtu_bytes.saturating_sub(40).max(512),
            searches_mtu: config.mtu_search_up_to_bytes.is_some(),
            silence_limit: config.path_silence_limit,
        };
        let policies = PolicyState::new(
            config.scheme.policies(),
            entropy.fork("policies"),
            &profile,
            config.ignores_declarations,
        );
        // AUTH and the DTLS chunk exclude each other (draft-ietf-tsvwg-sctp-dtls-chunk, section "SCTP Considerations").
        let authenticates = config.address_changes.asconf && config.protection.is_none();
        let local_random = authenticates.then(|| random(&entropy));
        let offer = config.protection.as_ref().map(|protection| {
            let tie_breaker = entropy.fork("tie breaker").next_u32();
            protection.parameter(tie_breaker)
        });
        // Unwrapped TSNs start in the second epoch, so that TSNs before the first one are not negative.
        let initial_tsn = (1 << 32) + u64::from(seed.initial_tsn);
        Association {
            sender: Sender::new(
                Arc::clone(&profile),
                SendQueue::new(config.streams, config.first_ssn, config.stream_scheduler),
                initial_tsn,
                config.send_buffer_bytes,
            ),
            policies,
            state: State::new(),
            now,
            identity: Identity {
                local_tag: seed.local_tag,
                peer_tag: 0,
                local_port: seed.local_port,
                peer_port: seed.peer_port,
                initial_tsn,
                initiator: seed.initiator,
                peer_controls_streams: false,
                restarts: 0,
                integrity: seed.integrity,
                zero_checksum: match seed.initiator {
                    true => ZeroChecksum::of_initiator(config.error_detection),
                    false => ZeroChecksum::default(),
                },
                contents: if config.protection.is_some() { Contents::Carried } else { seed.contents },
                form: seed.form,
            },
            addresses: AddressManager::new(
                seed.encapsulation,
                seed.guarded,
                seed.local_addresses,
                seed.interface_mtus,
                local_random,
            ),
            protection: PacketProtection::new(offer),
            paths: Paths::new(Arc::clone(&profile), path_options),
            profile,
            reachability: Reachability::new(now, entropy),
            transmission: Transmission::closed(),
            recovery: LossRecovery::new(initial_tsn, 0),
            receiver: None,
            reading: buffers::Reading { began: now, bytes: 0 },
            ack: AckState::default(),
            control: ControlQueue::default(),
            stream_changes: None,
            outputs: Outputs::new(config.trace),
            config,
        }
    }

    /// Queues a message at `now`, which is also the start of its lifetime, if any.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_at(&mut self, now: Time, payload: Bytes, options: SendOptions) -> Result<(), SendError> {
        self.clock(now);
        self.send(payload, options)
    }

    /// Queues a message without copying it; it is sent as windows permit. Its lifetime counts from the latest time passed to the
    /// association; [`send_at`](Self::send_at) passes the current time.
    ///
    /// # Errors
    /// Returns [`SendError::BufferFull`] if the send buffer has no room now ([`AssociationEvent::Writable`] follows),
    /// [`SendError::NoSuchStream`], [`SendError::Empty`], [`SendError::Closing`] after a shutdown began,
    /// [`SendError::NotProtected`] while required keys for the DTLS chunk are missing, [`SendError::KeyManagementOnly`] for the
    /// payload protocol of the association's key management, [`SendError::NoPartialReliability`] for a message with a limit if the
    /// peer does not support FORWARD-TSN.
    pub fn send(&mut self, payload: Bytes, options: SendOptions) -> Result<(), SendError> {
        self.check_message(&payload, options)?;
        self.consider_room(&payload, options);
        if let Err(free_bytes) = self.sender.reserve(payload.len() as u64) {
            return Err(SendError::BufferFull { free_bytes });
        }
        let now = self.now;
        self.enqueue(|sender| sender.push(payload, options, now));
        Ok(())
    }

    /// Queues a message ahead of all that wait, except those of the key management. It needs no room in the send buffer, and its
    /// limit of reliability is not used. The caller limits the amount.
    ///
    /// # Errors
    /// As [`send`](Self::send), without [`SendError::BufferFull`].
    pub fn send_urgent(&mut self, payload: Bytes, options: SendOptions) -> Result<(), SendError> {
        let options = SendOptions { reliability: Reliability::Full, ..options };
        self.check_message(&payload, options)?;
        let now = self.now;
        self.enqueue(|sender| sender.push_urgent(payload, options, now));
        Ok(())
    }

    /// Sets the priority of an outgoing stream, which [`StreamScheduler::Priority`](crate::StreamScheduler) and
    /// `WeightedFairQueueing` use. It is [`DEFAULT_STREAM_PRIORITY`](crate::DEFAULT_STREAM_PRIORITY) at first, and a reset of the
    /// stream keeps it.
    ///
    /// # Errors
    /// Returns [`StreamsError::NoSuchStream`] for a stream that the association does not have.
    pub fn set_stream_priority(&mut self, stream: u16, priority: NonZeroU16) -> Result<(), StreamsError> {
        let streams = self.sender.queue().streams();
        if stream >= streams {
            return Err(StreamsError::NoSuchStream { stream, streams });
        }
        self.sender.set_stream_priority(stream, priority);
        Ok(())
    }

    /// Returns the rules for messages of the user.
    pub fn send_rules(&self) -> SendRules {
        SendRules {
            streams: self.sender.queue().streams(),
            has_key_management: self.protection.agreed().is_some(),
            partial_reliability: self.supports_partial_reliability() != Some(false),
        }
    }

    /// Checks that a message can be sent at all.
    pub(crate) fn check_message(&self, payload: &Bytes, options: SendOptions) -> Result<(), SendError> {
        self.send_rules().check(payload, options)?;
        self.admit_new_messages()?;
        if !self.admits_user_messages() {
            return Err(SendError::NotProtected);
        }
        Ok(())
    }

    /// Queues a message of the key management. It needs no room in the send buffer and precedes waiting messages, so that new keys
    /// do not wait for data that the old ones protect. The caller limits the amount.
    ///
    /// # Errors
    /// Returns [`SendError::NotProtected`] if the peer has not agreed to a key management, [`SendError::Empty`],
    /// [`SendError::Closing`] after a shutdown began.
    pub fn send_key_management(&mut self, payload: Bytes) -> Result<(), SendError> {
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        self.admit_new_messages()?;
        if self.protection.agreed().is_none() {
            return Err(SendError::NotProtected);
        }
        let options = SendOptions { ppid: KEY_MANAGEMENT_PPID, immediate: true, ..SendOptions::default() };
        self.enqueue(|sender| sender.push_key_management(payload, options));
        Ok(())
    }

    fn admit_new_messages(&self) -> Result<(), SendError> {
        //= docs/rfc9260.txt#section-4
        //# 5)  In the SHUTDOWN-RECEIVED state, the endpoint MUST NOT accept any new send requests from its SCTP user.
        //= docs/rfc9260.txt#section-4
        //# 7)  In the SHUTDOWN-ACK-SENT state, the endpoint MUST NOT accept any new send requests from its SCTP user.
        //= docs/rfc9260.txt#section-9.2
        //# An endpoint SHOULD reject any new data request from its upper layer if it is in the SHUTDOWN-PENDING,
        //# SHUTDOWN-SENT, SHUTDOWN-RECEIVED, or SHUTDOWN-ACK-SENT state.
        let takes =
            matches!(self.state, State::CookieWait { .. } | State::CookieEchoed { .. } | State::Established);
        if !takes || self.state.opening().is_some_and(|opening| opening.shutdown_when_up) {
            return Err(SendError::Closing);
        }
        Ok(())
    }

    pub(crate) fn enqueue(&mut self, hand_over: impl FnOnce(&mut Sender)) {
        // While other messages wait, a further one permits no additional packet.
        let idle = self.sender.queue().is_empty();
        hand_over(&mut self.sender);
        if idle {
            self.open_opportunity(crate::policy::OpportunityCause::Application, true);
        }
    }

    /// Appends the next message, or the next piece of one that is larger than the receive buffer, to `out`.
    pub fn recv(&mut self, out: &mut Vec<u8>) -> Option<ReceivedMessage> {
        self.recv_parts(|part, rest| {
            out.reserve(part.len() + rest);
            out.extend_from_slice(part);
        })
    }

    /// Reads as [`recv`](Self::recv) does, without a copy: `take` gets the parts of the message or piece in order.
    pub fn recv_with(&mut self, mut take: impl FnMut(&[u8])) -> Option<ReceivedMessage> {
        self.recv_parts(|part, _| take(part))
    }

    /// Reads a message or piece: `take` gets each part and the number of bytes that follow it.
    fn recv_parts(&mut self, take: impl FnMut(&[u8], usize)) -> Option<ReceivedMessage> {
        let exhausted = self.receiver.as_ref().is_some_and(|receiver| self.is_exhausted(receiver));
        let receiver = self.receiver.as_mut()?;
        let piece = receiver.read(take, exhausted)?;
        self.outputs.statistics.bytes_delivered += piece.bytes as u64;
        self.consider_recv_growth(piece.bytes as u64);
        self.consider_window_update();
        Some(piece)
    }

    /// Returns the current size of the receive buffer, in the unit of the profile's window.
    pub fn recv_buffer_bytes(&self) -> u64 {
        self.recv_buffer().get()
    }

    /// Returns the user bytes that can be read now.
    pub fn readable_bytes(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::readable_bytes)
    }

    /// Returns the user bytes that were sent by the application and are not yet cumulatively acknowledged.
    pub fn buffered_bytes(&self) -> u64 {
        self.sender.buffered_bytes()
    }

    /// Returns the user bytes that wait without a TSN; data bound to a path has one.
    pub fn queued_bytes(&self) -> u64 {
        self.sender.queue().bytes() + self.sender.held().bytes()
    }

    /// Returns `true` if data may be sent and received.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    /// Returns the number of restarts of the peer. The driver's state about keys starts again with each.
    pub fn restarts(&self) -> u32 {
        self.identity.restarts
    }

    /// Returns `true` once the peer has answered the INIT, or has opened the association.
    pub fn has_answered(&self) -> bool {
        self.identity.peer_tag != 0
    }

    /// Returns `true` if the association has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Returns the paths as policies see them.
    pub fn paths(&self) -> &[PathFacts] {
        self.paths.all_facts()
    }

    /// Returns a path's addresses. With encapsulation, the UDP port is that of the latest packet on the path.
    pub fn path_address(&self, path: PathId) -> Option<PathAddress> {
        self.paths.get_live(path).map(|path| path.address)
    }

    /// Returns the bytes of the SCTP packets that have arrived on a path.
    pub fn path_received_bytes(&self, path: PathId) -> Option<u64> {
        self.paths.get_live(path).map(|path| path.received_bytes)
    }

    /// Returns the peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        self.identity.peer_port
    }

    /// Returns the number of streams on which messages may be sent: the requested ones, limited by the peer once established.
    pub fn outbound_streams(&self) -> u16 {
        self.sender.queue().streams()
    }

    /// Returns the number of streams on which messages may arrive: zero before the association is established.
    pub fn inbound_streams(&self) -> u16 {
        self.receiver.as_ref().map_or(0, Receiver::streams)
    }

    /// Returns `true` if this side controls streams above SCTP ([`AssociationConfig::stream_control`]).
    pub fn announces_stream_control(&self) -> bool {
        self.config.stream_control
    }

    /// Returns `true` if both sides control streams above SCTP ([`AssociationConfig::stream_control`]).
    pub fn controls_streams(&self) -> bool {
        self.config.stream_control && self.identity.peer_controls_streams
    }

    /// Returns `true` if this side opens streams with even identifiers, and the peer those with odd ones. It is the side with the
    /// smaller verification tag, because both may have sent an INIT.
    pub fn opens_even_streams(&self) -> bool {
        self.identity.local_tag < self.identity.peer_tag
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the facts of the association that policies see.
    pub fn association_facts(&self) -> &AssociationFacts {
        self.sender.facts()
    }

    /// Returns the profile.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the counters; periods that have not ended are counted up to the latest call.
    pub fn statistics(&self) -> Statistics {
        let blocked = self.transmission.blocked_since().map_or(0, |since| self.now.since(since).as_nanos());
        let blocked_by_peer_window_ns = self.outputs.statistics.blocked_by_peer_window_ns + blocked;
        Statistics { blocked_by_peer_window_ns, ..self.outputs.statistics }
    }

    /// Returns the length of the largest message that fits one DATA chunk on every path, in bytes.
    pub fn largest_unfragmented_bytes(&self) -> usize {
        self.payload_bytes_per_chunk()
    }

    /// Returns `true` if both sides have agreed on I-DATA (RFC 8260), with which messages of different streams interleave.
    pub fn interleaves_messages(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_interleaved)
    }

    /// Returns `true` if the driver is to use new local addresses automatically.
    pub fn follows_addresses(&self) -> bool {
        self.config.address_changes.follow
    }

    /// Returns the user bytes in the receive buffer.
    pub fn held_bytes(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::held_payload_bytes)
    }

    /// Returns the next recorded decision, if [`AssociationConfig::trace`] is set. The latest 65,536 are kept; earlier ones that
    /// were not polled are dropped.
    pub fn poll_trace(&mut self) -> Option<TraceEvent> {
        self.outputs.next_decision()
    }

    /// Returns `true` if the association has ended and has nothing left to send.
    //= docs/rfc9260.txt#section-14.2
    //# Note: No "CLOSED" state is illustrated, since, if an association is "CLOSED", its TCB SHOULD be removed.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_closed() && self.control.is_empty()
    }

    /// Returns `true` if the association has ended with a shutdown.
    pub(crate) fn ended_gracefully(&self) -> bool {
        matches!(self.state, State::Closed { gracefully: true })
    }

    pub(crate) fn poll_event(&mut self) -> Option<AssociationEvent> {
        self.outputs.next_event()
    }

    /// Advances the clock. An earlier `now` than the latest has no effect.
    pub(crate) fn clock(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.paths.release_paced(now);
        }
    }

    /// Adds a path; it carries data once it has answered a HEARTBEAT.
    ///
    /// # Errors
    /// Returns [`PathError::TooMany`], [`PathError::Exists`], [`PathError::Closed`].
    pub fn add_path(&mut self, now: Time, address: impl Into<PathAddress>) -> Result<PathId, PathError> {
        self.clock(now);
        if self.is_closed() {
            return Err(PathError::Closed);
        }
        let id = self.new_path(self.addresses.encapsulation().complete(address.into()))?;
        // During the handshake, the peer would not answer a HEARTBEAT. The end of the handshake verifies every path.
        if !self.is_opening() {
            self.outputs.report(AssociationEvent::PathAdded { path: id });
            self.verify_path(id);
        }
        Ok(id)
    }

    /// Removes a path; data in flight on it counts as lost. Later packets of the peer between its addresses are processed, and do
    /// not create the path again.
    ///
    /// # Errors
    /// Returns [`PathError::Unknown`], [`PathError::Last`] for the only path, [`PathError::Closed`].
    pub fn remove_path(&mut self, now: Time, path: PathId) -> Result<(), PathError> {
        self.clock(now);
        if self.is_closed() {
            return Err(PathError::Closed);
        }
        self.retire_path(path)?;
        self.block_source(path);
        Ok(())
    }

    /// Returns the live path with these addresses.
    pub(crate) fn path_with(&self, address: PathAddress) -> Option<PathId> {
        self.paths.find(address)
    }

    fn window_cost_of_packet(&self) -> WindowBytes {
        self.profile.window_cost(self.payload_bytes_per_chunk() as u64, 1)
    }

    fn abort_with(&mut self, reason: AbortReason) {
        if !self.is_closed() {
            self.become_closed(AssociationEvent::Aborted(reason));
        }
    }

    fn become_closed(&mut self, event: AssociationEvent) {
        self.state = State::Closed { gracefully: event == AssociationEvent::Closed };
        self.recovery.stop();
        if let Some(asconf) = self.addresses.asconf_mut() {
            asconf.stop_timer();
        }
        self.paths.stop_timers();
        self.transmission.close();
        self.ack = AckState::default();
        self.sender.end_forward_tsn();
        self.outputs.report(event);
    }

    /// Returns the earliest deadline, if there is one.
    pub(crate) fn poll_timeout(&mut self) -> Option<Time> {
        if self.is_closed() {
            return None;
        }
        let t4 = self.addresses.asconf().and_then(asconf::Asconf::t4);
        let request = self.stream_changes.as_ref().filter(|_| self.state.takes_sacks());
        earliest([
            self.state.next_timer(),
            t4,
            request.and_then(|changes| changes.timer()),
            self.recovery.deadline(),
            self.ack.deadline(),
            self.transmission.deadline(),
            self.policies.deadline(),
            self.sender.next_abandonment(self.now),
            self.paths.next_timer(),
        ])
    }
}

/// Returns the random number that an association offers, from a separate random stream.
fn random(entropy: &Entropy) -> [u8; RANDOM_LEN] {
    let mut random = [0; RANDOM_LEN];
    entropy.fork("authentication").fill(&mut random);
    random
}

/// Values that the endpoint passes to a new association.
#[derive(Debug)]
pub(crate) struct AssociationSeed {
    pub(crate) entropy: Entropy,
    pub(crate) local_tag: u32,
    pub(crate) initial_tsn: u32,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    pub(crate) local_addresses: Vec<LocalEnd>,
    pub(crate) interface_mtus: Arc<[InterfaceMtu]>,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) initiator: bool,
    pub(crate) guarded: bool,
    pub(crate) integrity: Integrity,
    pub(crate) contents: Contents,
    pub(crate) form: PacketForm,
}
