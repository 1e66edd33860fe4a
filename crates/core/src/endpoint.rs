//! Endpoint, which finds the association of each packet, sets up associations without state for unknown peers, and drives its
//! associations.

mod announcements;
mod copied;
mod data_packet;
mod flood;
mod oob;
mod places;
mod restart;
mod setup;
mod spent;
mod table;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::{Chunk, ChunkType, Chunks, Header, PacketView, QuotedInit, RawChunk};

use crate::address::{LocalEnd, Origin, PathAddress, PeerKey};
use crate::association::{Association, AssociationEvent, AssociationSeed, is_of_one_host};
use crate::config::{AssociationConfig, EndpointConfig, Integrity, InterfaceMtu, PacketForm};
use crate::contents::Contents;
use crate::cookie::CookieJar;
use crate::endpoint::flood::Gates;
use crate::endpoint::restart::Echo;
use crate::endpoint::spent::SpentCookies;
use crate::endpoint::table::Table;
use crate::entropy::Entropy;
use crate::error::{ConnectError, Refusal};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{MAX_PATHS, PathId};
use crate::paths::REPLY_FACTOR;
use crate::policy::AckForm;
use crate::protection::{ChunkProtection, RestartContext};
use crate::source::Source;
use crate::stats::{Discard, Discards};
use crate::time::{Span, Time};

/// Period of a cookie secret; the previous one still opens cookies.
const SECRET_PERIOD: Span = Span::from_secs(600);

/// Maximum number of waiting replies to peers without an association.
const MAX_REPLIES: usize = 1024;

/// Identifier of an association of an endpoint; never reused. Ids are ordered by the start of their associations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId {
    serial: u64,
    /// Index in the endpoint's table, which is reused once the association is forgotten.
    slot: u32,
}

impl AssociationId {
    /// Returns the number of the association. An endpoint counts its associations from 1.
    pub const fn number(self) -> u64 {
        self.serial + 1
    }
}

/// Result of processing a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The packet opened an association.
    New(AssociationId),
    /// The packet was delivered to an association.
    Delivered(AssociationId),
    /// The packet was answered without an association.
    Replied,
    /// The packet was dropped and counted.
    Discarded(Discard),
}

/// Destination of the packet that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Source and destination addresses.
    pub address: PathAddress,
    /// Association of the packet, if there is one.
    pub association: Option<AssociationId>,
    /// Set if the packet exceeds the confirmed size of its path and is not a probe, because a chunk that was cut for a larger
    /// packet is retransmitted. IP may fragment it.
    pub may_fragment: bool,
}

/// Packet to a peer without an association.
#[derive(Clone, Debug)]
struct Reply {
    to: PathAddress,
    bytes: Vec<u8>,
}

/// SCTP endpoint without sockets, clock or randomness of its own.
///
/// The driver calls [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout) or methods of
/// associations, in any order and number. Then it drains [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event) until they return `None`, and waits until [`poll_timeout`](Self::poll_timeout). After
/// `handle_timeout(t)` and draining, the next deadline is later than `t`.
///
/// The output depends only on configuration, entropy and the sequence of calls.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    /// Local addresses, in the order in which peers get them.
    locals: Vec<LocalEnd>,
    entropy: Entropy,
    jar: CookieJar,
    gates: Option<Gates>,
    spent: SpentCookies,
    table: Table,
    now: Time,
    replies: VecDeque<Reply>,
    /// Reused memory for the associations whose deadline has passed.
    due: Vec<AssociationId>,
    events: VecDeque<(AssociationId, AssociationEvent)>,
    discards: Discards,
    /// Reused memory in which records are decrypted.
    record: Vec<u8>,
    /// `true` if accepted associations acknowledge with NR-SACK.
    accept_announces_nr_sack: bool,
    integrity: Integrity,
    contents: Contents,
    form: PacketForm,
    interface_mtus: Arc<[InterfaceMtu]>,
}

impl Endpoint {
    /// Returns an endpoint that starts at `now`, with 32 bytes of entropy for tags, TSNs, cookies and nonces.
    pub fn new(now: Time, config: EndpointConfig, entropy: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(entropy);
        let locals = config.addresses.iter().copied().map(LocalEnd::from).collect();
        let form = config.accept.as_ref().map(|accept| accept.scheme.policies().ack.form());
        Endpoint {
            accept_announces_nr_sack: form.is_some_and(|form| form != AckForm::Sack),
            jar: CookieJar::new(now, SECRET_PERIOD, config.guard.is_none(), &mut entropy),
            gates: config.guard.map(|guard| Gates::new(&guard, &entropy)),
            spent: SpentCookies::default(),
            config,
            locals,
            entropy,
            table: Table::default(),
            now,
            replies: VecDeque::new(),
            due: Vec::new(),
            events: VecDeque::new(),
            discards: Discards::default(),
            record: Vec::new(),
            integrity: Integrity::Checksum,
            contents: Contents::Carried,
            form: PacketForm::Bytes,
            interface_mtus: Arc::default(),
        }
    }

    /// Returns the endpoint without checksums: the packets of later associations have a zero checksum, and no received checksum is
    /// verified. It is for two endpoints in one process whose packets cannot be corrupted, such as hosts of a simulated network;
    /// their behaviour is the same, at less cost.
    #[must_use]
    pub fn without_checksums(self) -> Self {
        Endpoint { integrity: Integrity::Driver, ..self }
    }

    /// Returns the endpoint without user data: packets of later associations have room for it with undefined content, and the
    /// receiving application reads zeros of the same length. It is for two endpoints of a simulated network whose messages are not
    /// read, at less cost and with the same behaviour otherwise. Both endpoints must be without user data. Protected associations
    /// carry user data nevertheless, because their keys are agreed on with messages.
    #[must_use]
    pub fn without_contents(self) -> Self {
        Endpoint { contents: Contents::Counted, ..self }
    }

    /// Opens an association over the given paths; the first is the primary one.
    ///
    /// # Errors
    /// Returns [`ConnectError`] if there are no paths, too many, or no room for an association.
    pub fn connect(
        &mut self,
        now: Time,
        peer_port: u16,
        paths: &[impl Into<PathAddress> + Copy],
        config: AssociationConfig,
    ) -> Result<AssociationId, ConnectError> {
        self.open(now, peer_port, paths, config, None)
    }

    /// Opens an association, or restarts one with the keys that were kept for that.
    fn open(
        &mut self,
        now: Time,
        peer_port: u16,
        paths: &[impl Into<PathAddress> + Copy],
        config: AssociationConfig,
        kept: Option<RestartContext>,
    ) -> Result<AssociationId, ConnectError> {
        self.now = self.now.max(now);
        if paths.is_empty() {
            return Err(ConnectError::NoPath);
        }
        if paths.len() > MAX_PATHS {
            return Err(ConnectError::TooManyPaths);
        }
        if self.table.len() >= self.config.max_associations {
            return Err(ConnectError::Full { limit: self.config.max_associations });
        }
        //= docs/rfc9260.txt#section-3.3.2
        //# The valid range is from 0 to 4294967295 and the Initial TSN SHOULD be set to a random value in that range.
        let initial_tsn = config.initial_tsn.unwrap_or_else(|| self.entropy.next_u32());
        let local_tag = self.fresh_tag();
        let mut association =
            Association::new(self.now, config, self.seed(local_tag, initial_tsn, peer_port, true));
        for &address in paths {
            // A repeated address gives one path.
            let _ = association.new_path(self.config.encapsulation.complete(address.into()));
        }
        if let Some(keys) = kept {
            association.attempt_restart(keys);
        }
        association.begin();
        Ok(self.table.insert(association))
    }

    fn seed(&mut self, local_tag: u32, initial_tsn: u32, peer_port: u16, initiator: bool) -> AssociationSeed {
        let mut seed = [0; 32];
        self.entropy.fill(&mut seed);
        AssociationSeed {
            entropy: Entropy::new(seed),
            local_tag,
            initial_tsn,
            local_port: self.config.port,
            peer_port,
            local_addresses: self.locals.clone(),
            interface_mtus: Arc::clone(&self.interface_mtus),
            encapsulation: self.config.encapsulation,
            initiator,
            guarded: self.config.guard.is_some(),
            integrity: self.integrity,
            contents: self.contents,
            form: self.form,
        }
    }

    //= docs/rfc9260.txt#section-5.3.1
    //# A new Verification Tag value MUST be used each time the endpoint tears down and then reestablishes an association
    //# to the same peer.
    fn fresh_tag(&mut self) -> u32 {
        loop {
            //= docs/rfc9260.txt#section-5.1
            //# Tag_A SHOULD be a random number in the range of 1 to 4294967295 (see Section 5.3.1 for Tag value
            //# selection).
            let tag = self.entropy.nonzero_u32();
            if self.table.by_tag(tag).is_none() {
                return tag;
            }
        }
    }

    /// Processes a packet. Invalid input is counted and dropped, or answered as the standard says; it is never an error.
    pub fn handle_datagram(&mut self, now: Time, address: PathAddress, bytes: &[u8]) -> Handled {
        self.now = self.now.max(now);
        self.jar.rotate_if_due(self.now, &mut self.entropy);
        self.table.refresh_peers();
        let handled = self.dispatch(Origin { address, bytes: bytes.len() }, bytes);
        if let Handled::Discarded(reason) = handled {
            self.discards.count(reason);
        }
        handled
    }

    fn dispatch(&mut self, origin: Origin, bytes: &[u8]) -> Handled {
        let Ok(packet) = PacketView::parse(bytes) else { return Handled::Discarded(Discard::Malformed) };
        //= docs/rfc9260.txt#section-6.8
        //# When an SCTP packet is received, the receiver MUST first check the CRC32c checksum as follows:
        //= docs/rfc9260.txt#section-6.8
        //# If it is not, the receiver MUST treat the packet as an invalid SCTP packet.
        if self.integrity == Integrity::Checksum
            && !self.accepts_zero_checksum(origin, &packet)
            && !packet.checksum_is_valid()
        {
            return Handled::Discarded(Discard::Checksum);
        }
        let header = packet.header();
        //= docs/rfc9260.txt#section-3.1
        //# The Source Port Number 0 MUST NOT be used.
        if header.destination_port != self.config.port || header.source_port == 0 {
            return Handled::Discarded(Discard::OutOfTheBlue);
        }
        //= docs/rfc9260.txt#section-8.4
        //# 1)  If the OOTB packet is to or from a non-unicast address, a receiver SHOULD silently discard the packet.
        if origin.address.local.is_multicast() || !is_of_one_host(origin.address.remote) {
            return Handled::Discarded(Discard::OutOfTheBlue);
        }
        let first = match packet.chunks().next() {
            Some(Ok(first)) => first,
            _ => return Handled::Discarded(Discard::Malformed),
        };
        if !matches!(first.kind(), ChunkType::INIT | ChunkType::COOKIE_ECHO) {
            return self.deliver(origin, header, &first, &packet);
        }
        let decoded = first.decode();
        if decoded.is_ok() && !self.may_open(origin) {
            return Handled::Discarded(Discard::NotAdmitted);
        }
        match decoded {
            // RFC 9260 section 8.5.1 A: an INIT has tag zero and is alone in its packet.
            //= docs/rfc9260.txt#section-8.4
            //# 3)  If the packet contains an INIT chunk with a Verification Tag set to 0, it SHOULD be processed as
            //# described in Section 5.1.
            //= docs/rfc9260.txt#section-8.5.1
            //# *  When an endpoint receives an SCTP packet with the Verification Tag set to 0, it SHOULD verify that the
            //# packet contains only an INIT chunk.
            Ok(Chunk::Init(init)) if header.verification_tag == 0 && packet.chunks().count() == 1 => {
                self.handle_init(origin, header, &init)
            }
            //= docs/rfc9260.txt#section-8.5.1
            //# Otherwise, the receiver MUST silently discard the packet.
            //= docs/rfc9260.txt#section-12.3
            //# The receiver of an INIT chunk MUST silently discard the INIT chunk and all further chunks if the INIT
            //# chunk is bundled with other chunks or the packet has a non- zero Verification Tag.
            Ok(Chunk::Init(_)) => Handled::Discarded(Discard::VerificationTag),
            //= docs/rfc9260.txt#section-8.4
            //# 4)  If the packet contains a COOKIE ECHO chunk as the first chunk, it MUST be processed as described in
            //# Section 5.1.
            Ok(Chunk::CookieEcho { cookie }) => {
                self.handle_cookie_echo(origin, header, cookie, Echo::Plain(&packet))
            }
            _ => self.deliver(origin, header, &first, &packet),
        }
    }

    /// Returns `true` if the packet has a zero checksum and belongs to an association that accepts it (RFC 9653 section 5.3). The checksum
    /// is not computed then. Packets out of the blue need a correct one.
    fn accepts_zero_checksum(&self, origin: Origin, packet: &PacketView<'_>) -> bool {
        packet.checksum_field() == 0
            && packet.chunks().next().is_some_and(|first| {
                let id = first.ok().and_then(|first| self.find(origin, packet.header(), &first));
                id.and_then(|id| self.table.get(id)).is_some_and(Association::accepts_zero_checksum)
            })
    }

    /// Returns `true` if associations may be opened or restarted from this address.
    fn may_open(&self, origin: Origin) -> bool {
        self.config.accept_from.admits(origin.address.remote)
    }

    /// Finds the association by the local tag, checks the other fields and delivers the packet.
    fn deliver(
        &mut self,
        origin: Origin,
        header: Header,
        first: &RawChunk<'_>,
        packet: &PacketView<'_>,
    ) -> Handled {
        match self.find(origin, header, first) {
            Some(id) => self.deliver_to(id, origin, packet, 0),
            // RFC 9260 section 8.4 would answer most of these packets. Sources that may not open associations get no answer.
            None if !self.may_open(origin) => Handled::Discarded(Discard::NotAdmitted),
            None => match self.restarting(origin, header, first) {
                Some(id) => self.handle_restart(id, origin, packet),
                None => self.handle_out_of_the_blue(origin, header, first, packet),
            },
        }
    }

    fn deliver_to(
        &mut self,
        id: AssociationId,
        origin: Origin,
        packet: &PacketView<'_>,
        skip: usize,
    ) -> Handled {
        let mut record = std::mem::take(&mut self.record);
        let handled = self.deliver_uncovered(id, origin, packet, skip, &mut record);
        self.record = record;
        handled
    }

    /// Delivers a packet, decrypted into `record` if it is protected.
    fn deliver_uncovered(
        &mut self,
        id: AssociationId,
        origin: Origin,
        packet: &PacketView<'_>,
        skip: usize,
        record: &mut Vec<u8>,
    ) -> Handled {
        let now = self.now;
        let Some(association) = self.table.get_mut(id) else { return Handled::Delivered(id) };
        association.clock(now);
        let (mut chunks, cover) = match association.uncover(packet, record) {
            Ok(None) => (packet.chunks(), ChunkProtection::Plain),
            Ok(Some(content)) => (Chunks::of(content), ChunkProtection::Record),
            Err(reason) => return Handled::Discarded(reason),
        };
        if cover == ChunkProtection::Record
            && let Some((cookie, echo)) = Self::repeated_cookie(id, packet, &chunks)
        {
            return match self.may_open(origin) {
                true => self.handle_cookie_echo(origin, packet.header(), cookie, echo),
                false => Handled::Discarded(Discard::NotAdmitted),
            };
        }
        for _ in 0..skip {
            chunks.next();
        }
        association.handle_chunks(origin, chunks, cover, &mut self.discards);
        let reply = association.take_reply(origin);
        self.delivered(id, origin, reply)
    }

    /// Delivers the chunks behind the cookie of a protected packet.
    fn deliver_behind_cookie(&mut self, id: AssociationId, origin: Origin, chunks: Chunks<'_>) -> Handled {
        let reply = self.table.get_mut(id).and_then(|association| {
            association.handle_chunks(origin, chunks, ChunkProtection::Record, &mut self.discards);
            association.take_reply(origin)
        });
        self.delivered(id, origin, reply)
    }

    /// Queues an association's reply to a packet.
    fn delivered(&mut self, id: AssociationId, origin: Origin, reply: Option<Vec<u8>>) -> Handled {
        if let Some(bytes) = reply {
            let _ = self.reply(origin, bytes);
        }
        Handled::Delivered(id)
    }

    fn find(&self, origin: Origin, header: Header, first: &RawChunk<'_>) -> Option<AssociationId> {
        // RFC 9260 section 8.5.1 B and C: ABORT and SHUTDOWN-COMPLETE carry the receiver's tag, or with the T bit the sender's.
        //= docs/rfc9260.txt#section-8.5.1
        //# *  The receiver of an ABORT chunk MUST accept the packet if the Verification Tag field of the packet matches
        //# its own tag and the T bit is not set OR if it is set to its Peer's Tag and the T bit is set in the Chunk
        //# Flags.
        //= docs/rfc9260.txt#section-8.5.1
        //# Otherwise, the receiver MUST silently discard the packet and take no further action.
        //= docs/rfc9260.txt#section-9.1
        //# An endpoint receiving an ABORT chunk MUST apply the special Verification Tag check rules described in Section
        //# 8.5.1.
        let reflected = matches!(first.kind(), ChunkType::ABORT | ChunkType::SHUTDOWN_COMPLETE)
            && match first.decode() {
                Ok(Chunk::Abort(abort)) => abort.tag_reflected(),
                Ok(Chunk::ShutdownComplete { tag_reflected }) => tag_reflected,
                _ => false,
            };
        if reflected {
            // Zero stands for the peer's tag until the peer has sent it, and must not match.
            let tag = header.verification_tag;
            let key = PeerKey::new(&origin.address, header.source_port);
            return self.table.by_peer(key, |a| tag != 0 && a.identity().peer_tag == tag);
        }
        //= docs/rfc9260.txt#section-8.5
        //# When receiving an SCTP packet, the endpoint MUST ensure that the value in the Verification Tag field of the
        //# received SCTP packet matches its own tag.
        let id = self.table.by_tag(header.verification_tag)?;
        let association = self.table.get(id)?;
        // Section 8.5.1 E: during the handshake a SHUTDOWN-ACK belongs to a previous incarnation of the association.
        //= docs/rfc9260.txt#section-8.5.1
        //# E) Rules for packets carrying a SHUTDOWN ACK chunk: *  If the receiver is in COOKIE-ECHOED or COOKIE-WAIT
        //# state, the procedures in Section 8.4 SHOULD be followed; in other words, it is treated as an OOTB packet.
        let of_previous_incarnation =
            association.is_opening() && matches!(first.decode(), Ok(Chunk::ShutdownAck));
        let fits = association.identity().peer_port == header.source_port
            && !association.is_closed()
            && !of_previous_incarnation;
        fits.then_some(id)
    }

    /// Returns the association with a peer at this address, UDP port and SCTP port. Associations that no address of the peer has
    /// answered are ignored: an attacker may have opened them in its name, with a cookie that was sent elsewhere.
    fn by_address(&self, origin: Origin, sctp_port: u16) -> Option<AssociationId> {
        self.table.by_peer(PeerKey::new(&origin.address, sctp_port), Association::was_answered)
    }

    /// Returns the open association that has a path to this address and UDP port of a peer with this SCTP port, if there is one.
    pub fn association_with(
        &mut self,
        remote: IpAddr,
        udp_port: Option<u16>,
        sctp_port: u16,
    ) -> Option<AssociationId> {
        self.table.refresh_peers();
        self.table.by_peer(PeerKey { remote, udp_port, sctp_port }, |_| true)
    }

    /// Returns the source that has opened an association: that of the address to which its cookie was sent. `None` if this side has
    /// opened it.
    pub fn opened_by(&self, id: AssociationId) -> Option<Source> {
        self.table.opened_by(id)
    }

    /// Refuses new associations of peers from now on; existing ones continue.
    pub fn stop_accepting(&mut self) {
        self.config.accept = None;
    }

    /// Returns `true` if peers may open associations.
    pub fn is_accepting(&self) -> bool {
        self.config.accept.is_some()
    }

    /// Runs all actions that are due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.jar.rotate_if_due(self.now, &mut self.entropy);
        self.table.refresh_deadlines();
        let (now, mut due) = (self.now, std::mem::take(&mut self.due));
        self.table.due(now, &mut due);
        for &id in &due {
            if let Some(association) = self.table.get_mut(id) {
                association.clock(now);
                association.handle_timeout();
            }
        }
        self.due = due;
    }

    /// Writes the next packet into `buf`, replacing its content; `None` if there is no packet to send now.
    pub fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Transmit> {
        self.now = self.now.max(now);
        if !self.replies.is_empty() {
            return self.poll_reply(buf);
        }
        while let Some(id) = self.table.next_busy() {
            if let Some(association) = self.table.get_mut(id) {
                association.clock(self.now);
                if let Some(path) = association.poll_transmit(buf) {
                    return Some(transmit(id, association, path, buf));
                }
                while let Some(event) = association.poll_event() {
                    self.events.push_back((id, event));
                }
            }
            self.table.rest();
        }
        None
    }

    /// Writes the next packet of this association only. A driver calls this function to answer received packets while packets of
    /// other associations wait.
    pub fn poll_transmit_of(
        &mut self,
        now: Time,
        id: AssociationId,
        buf: &mut PacketBuffer,
    ) -> Option<Transmit> {
        self.now = self.now.max(now);
        let association = self.table.get_mut(id)?;
        association.clock(self.now);
        let path = association.poll_transmit(buf)?;
        Some(transmit(id, association, path, buf))
    }

    /// Writes the next reply to a peer without an association.
    pub fn poll_reply(&mut self, buf: &mut PacketBuffer) -> Option<Transmit> {
        let reply = self.replies.pop_front()?;
        buf.clear();
        buf.extend_from_slice(&reply.bytes);
        Some(Transmit { address: reply.to, association: None, may_fragment: false })
    }

    /// Returns the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<(AssociationId, AssociationEvent)> {
        if self.events.is_empty() {
            self.table.collect_events(&mut self.events);
        }
        self.events.pop_front()
    }

    /// Returns the next event of associations that have no more packets to send or have [ended their turn](Self::end_turn). It is
    /// for drivers that process received packets before they send the others.
    pub fn poll_settled_event(&mut self) -> Option<(AssociationId, AssociationEvent)> {
        self.events.pop_front()
    }

    /// Moves the association whose packets [`poll_transmit`](Self::poll_transmit) returns now behind the others that may have
    /// packets to send. A driver calls this when it stops polling before `None`: otherwise one association could send alone for as
    /// long as its window moves.
    pub fn end_turn(&mut self) {
        let Some(id) = self.table.next_busy() else { return };
        // Drivers expect that the last packet of an association was sent before the event that reports its end.
        if let Some(association) = self.table.get_mut(id).filter(|association| !association.is_closed()) {
            while let Some(event) = association.poll_event() {
                self.events.push_back((id, event));
            }
        }
        self.table.end_turn();
    }

    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&mut self) -> Option<Time> {
        // Many packets may have been processed since the last call: each would have moved its association's deadline.
        self.table.refresh_deadlines();
        self.table.earliest()
    }

    /// Returns an association.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.table.get(id)
    }

    /// Returns an association for changes.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let now = self.now;
        let association = self.table.get_mut(id)?;
        association.clock(now);
        Some(association)
    }

    /// Reports that the driver could not send a packet of this many bytes, because the interface has a smaller MTU. A probe of a
    /// path's MTU then fails at once. Other packets count as lost.
    pub fn packet_too_long(&mut self, now: Time, address: PathAddress, bytes: usize) {
        self.now = self.now.max(now);
        let uses = |id: &AssociationId| self.association(*id).is_some_and(|a| a.path_with(address).is_some());
        let ids: Vec<AssociationId> = self.table.ids().filter(uses).collect();
        for id in ids {
            if let Some(association) = self.association_mut(id) {
                association.refused_packet(address, bytes);
            }
        }
    }

    /// Handles the report of the operating system or an ICMP message that a sent packet was not delivered. `quoted` is the
    /// beginning of the packet. Ends the attempt on this path if the packet is an unanswered INIT with the own tag, and ignores all
    /// other reports. Returns the association of the INIT.
    //= docs/rfc9260.txt#section-10
    //# ICMP5)  An implementation MUST use the payload of the ICMP message (v4 or v6) to locate the association that sent
    //# the message to which ICMP is responding.
    //= docs/rfc9260.txt#section-10
    //# If the association cannot be found, an implementation SHOULD ignore the ICMP message.
    pub fn packet_refused(
        &mut self,
        now: Time,
        address: PathAddress,
        quoted: &[u8],
        refusal: Refusal,
    ) -> Option<AssociationId> {
        self.now = self.now.max(now);
        let init = QuotedInit::read(quoted)?;
        let id = self.association_with(address.remote, address.udp_port, init.header.destination_port)?;
        let association = self.association_mut(id)?;
        association.quoted_init_refused(address, &init, refusal).then_some(id)
    }

    /// Ends the attempt to open an association over this path, because the operating system cannot deliver packets there. Has no
    /// effect once the peer has answered. Returns `true` if the attempt ended.
    pub fn init_refused(
        &mut self,
        now: Time,
        id: AssociationId,
        address: PathAddress,
        refusal: Refusal,
    ) -> bool {
        self.now = self.now.max(now);
        self.association_mut(id).is_some_and(|association| association.init_refused(address, refusal))
    }

    /// Returns all associations, including closed ones until they are [`forget`](Self::forget)ten.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.table.ids()
    }

    /// Removes a closed association; `false` if it is not closed, or still has a last packet to send.
    pub fn forget(&mut self, id: AssociationId) -> bool {
        let over = self.table.get(id).is_some_and(Association::is_spent);
        if over {
            self.table.remove(id);
        }
        over
    }

    /// Sets the local addresses in the order in which new peers get them. Existing associations keep their paths (see
    /// [`Association::add_local_address`]).
    pub fn set_addresses(&mut self, addresses: Vec<LocalEnd>) {
        self.locals = addresses;
    }

    /// Sets the MTUs of the interfaces of local addresses, for existing associations too: paths from a listed address are not
    /// searched beyond it, and shrink at once if their size is larger.
    pub fn set_interface_mtus(&mut self, now: Time, mtus: Vec<InterfaceMtu>) {
        self.now = self.now.max(now);
        if *mtus == *self.interface_mtus {
            return;
        }
        self.interface_mtus = mtus.into();
        let ids: Vec<AssociationId> = self.table.ids().collect();
        for id in ids {
            let mtus = Arc::clone(&self.interface_mtus);
            if let Some(association) = self.association_mut(id) {
                association.set_interface_mtus(mtus);
            }
        }
    }

    /// Returns the counts of dropped packets, by reason.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    /// Returns the maximum length of a reply to a packet without an association.
    fn longest_reply(&self, to: Origin) -> usize {
        if self.config.guard.is_some() { REPLY_FACTOR as usize * to.bytes } else { usize::MAX }
    }

    /// Queues a reply to a packet without an association, unless it exceeds the maximum length.
    fn reply(&mut self, to: Origin, bytes: Vec<u8>) -> Handled {
        if bytes.len() > self.longest_reply(to) {
            return Handled::Discarded(Discard::ShortQuestion);
        }
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(Reply { to: to.address, bytes });
        }
        Handled::Replied
    }
}

/// Returns the destination of a packet that an association has written for a path.
fn transmit(id: AssociationId, association: &Association, path: PathId, packet: &PacketBuffer) -> Transmit {
    Transmit {
        address: association.destination(path),
        association: Some(id),
        may_fragment: association.outgrows(path, packet.len()),
    }
}
