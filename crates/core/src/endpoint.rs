//! An endpoint: it finds the association of each packet, sets associations up without keeping state for unknown peers, and
//! drives those it has.

mod announcements;
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
use crate::config::{AssociationConfig, EndpointConfig, Integrity, InterfaceMtu};
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
use crate::protection::{Cover, RestartContext};
use crate::source::Source;
use crate::stats::{Discard, Discards};
use crate::time::{Span, Time};

/// How long a cookie secret is in use; the one before it still opens cookies.
const SECRET_PERIOD: Span = Span::from_secs(600);

/// The most replies to strangers that wait to be sent.
const MAX_REPLIES: usize = 1024;

/// Names an association of an endpoint; never reused. One that began earlier comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId {
    serial: u64,
    /// Its place in the endpoint's table, which another may take once it is forgotten.
    slot: u32,
}

impl AssociationId {
    /// Its number: an endpoint counts its associations from 1.
    pub const fn number(self) -> u64 {
        self.serial + 1
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It opened an association.
    New(AssociationId),
    /// It went to an association.
    Delivered(AssociationId),
    /// It was answered without one.
    Replied,
    /// It was dropped and counted.
    Discarded(Discard),
}

/// Where the packet that was written is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its addresses.
    pub address: PathAddress,
    /// The association it belongs to, if any.
    pub association: Option<AssociationId>,
    /// It is larger than what its path is known to carry and no probe: a chunk that was cut for a larger packet is retransmitted.
    /// IP may fragment it.
    pub may_fragment: bool,
}

/// A packet to someone with whom there is no association.
#[derive(Debug)]
struct Reply {
    to: PathAddress,
    bytes: Vec<u8>,
}

/// An SCTP endpoint without sockets, clock or randomness of its own.
///
/// The driver calls [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout) or a method of an
/// association, in any order and number; then drains [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event) until they give nothing, and waits until [`poll_timeout`](Self::poll_timeout). After
/// `handle_timeout(t)` and draining, the next deadline is later than `t`.
///
/// What comes out depends on configuration, entropy and the sequence of calls, and on nothing else.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    /// Our addresses, in the order in which peers are told.
    locals: Vec<LocalEnd>,
    entropy: Entropy,
    jar: CookieJar,
    gates: Option<Gates>,
    spent: SpentCookies,
    table: Table,
    now: Time,
    replies: VecDeque<Reply>,
    /// Memory to gather those in whose deadline has come.
    due: Vec<AssociationId>,
    events: VecDeque<(AssociationId, AssociationEvent)>,
    discards: Discards,
    /// Memory to decrypt a record in.
    record: Vec<u8>,
    /// Associations that are accepted acknowledge with NR-SACK.
    accept_announces_nr_sack: bool,
    integrity: Integrity,
    contents: Contents,
    interface_mtus: Arc<[InterfaceMtu]>,
}

impl Endpoint {
    /// An endpoint that begins at `now`, with 32 bytes of entropy for tags, TSNs, cookies and nonces.
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
            interface_mtus: Arc::default(),
        }
    }

    /// The same endpoint without checksums: associations that begin from here on leave the field zero in their packets, and no
    /// packet's is looked at. It is for two endpoints in one process between which nothing changes a byte, such as hosts of a
    /// simulated network; what they do is the same, at less cost.
    #[must_use]
    pub fn without_checksums(self) -> Self {
        Endpoint { integrity: Integrity::Driver, ..self }
    }

    /// The same endpoint without what users send: packets of associations that begin from here on have room for user data, in which
    /// stands whatever was there, and whoever receives reads as many zeros. It is for two endpoints of a simulated network where
    /// nobody looks at messages; all else is the same, at less cost. Both have to be without. Protected associations carry what is
    /// sent nevertheless: their keys are agreed on with messages.
    #[must_use]
    pub fn without_contents(self) -> Self {
        Endpoint { contents: Contents::Counted, ..self }
    }

    /// Opens an association over the given paths, the first being the primary one.
    ///
    /// # Errors
    /// [`ConnectError`] if there is no path, too many, or no room.
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
            // One that is given twice is one path.
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

    /// Takes in a packet. Bad input is counted and dropped, or answered as the standard says; it is never an error.
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
        if self.integrity == Integrity::Checksum && !packet.checksum_is_valid() {
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

    /// Whether associations may be opened or restarted from there.
    fn may_open(&self, origin: Origin) -> bool {
        self.config.accept_from.admits(origin.address.remote)
    }

    /// Finds the association by our tag and checks that the rest fits.
    fn deliver(
        &mut self,
        origin: Origin,
        header: Header,
        first: &RawChunk<'_>,
        packet: &PacketView<'_>,
    ) -> Handled {
        match self.find(origin, header, first) {
            Some(id) => self.deliver_to(id, origin, packet, 0),
            // RFC 9260 section 8.4 would have most of these answered. To those who may open nothing, nobody is here.
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

    /// `record` is memory to decrypt in.
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
            Ok(None) => (packet.chunks(), Cover::Plain),
            Ok(Some(content)) => (Chunks::of(content), Cover::Record),
            Err(reason) => return Handled::Discarded(reason),
        };
        if cover == Cover::Record
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
        self.hand_over(id, origin, chunks, cover)
    }

    fn hand_over(&mut self, id: AssociationId, origin: Origin, chunks: Chunks<'_>, cover: Cover) -> Handled {
        if let Some(association) = self.table.get_mut(id) {
            association.handle_chunks(origin, chunks, cover, &mut self.discards);
            if let Some(bytes) = association.take_reply(origin) {
                let _ = self.reply(origin, bytes);
            }
        }
        Handled::Delivered(id)
    }

    fn find(&self, origin: Origin, header: Header, first: &RawChunk<'_>) -> Option<AssociationId> {
        // RFC 9260 section 8.5.1 B and C: ABORT and SHUTDOWN-COMPLETE carry our tag, or the peer's own if they say so.
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
            // Before the peer has named its tag, zero stands in its place and must not be a way in.
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

    /// The association with a peer at this address, UDP port and SCTP port. One that whoever is there has never answered may have
    /// been opened in its name, with a cookie that was sent elsewhere: it stands in nobody's way.
    fn by_address(&self, origin: Origin, sctp_port: u16) -> Option<AssociationId> {
        self.table.by_peer(PeerKey::new(&origin.address, sctp_port), Association::was_answered)
    }

    /// The association that has a path to this address and UDP port of a peer with this SCTP port, if there is one that is not
    /// over.
    pub fn association_with(
        &mut self,
        remote: IpAddr,
        udp_port: Option<u16>,
        sctp_port: u16,
    ) -> Option<AssociationId> {
        self.table.refresh_peers();
        self.table.by_peer(PeerKey { remote, udp_port, sctp_port }, |_| true)
    }

    /// Returns the source that an association was opened from: that of the address to which its cookie was sent. `None` if this side has
    /// opened it.
    pub fn opened_by(&self, id: AssociationId) -> Option<Source> {
        self.table.opened_by(id)
    }

    /// Refuses associations that peers want to open from now on; those there are go on.
    pub fn stop_accepting(&mut self) {
        self.config.accept = None;
    }

    /// Runs everything that is due at `now`.
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

    /// Writes the next packet into `buf`, replacing what it held; `None` when nothing is to be sent now.
    pub fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Transmit> {
        self.now = self.now.max(now);
        if let Some(reply) = self.poll_reply(buf) {
            return Some(reply);
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

    /// The same for a packet of this association alone: a driver answers with it what has arrived, and what other associations
    /// have to send waits.
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

    /// The same for a reply to someone with whom there is no association.
    pub fn poll_reply(&mut self, buf: &mut PacketBuffer) -> Option<Transmit> {
        let reply = self.replies.pop_front()?;
        buf.clear();
        buf.extend_from_slice(&reply.bytes);
        Some(Transmit { address: reply.to, association: None, may_fragment: false })
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<(AssociationId, AssociationEvent)> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.table.collect_events(&mut self.events);
        self.events.pop_front()
    }

    /// The same for associations that have nothing more to send or have [ended their turn](Self::end_turn). It is for a driver
    /// that takes in packets before it sends the rest of its own.
    pub fn poll_settled_event(&mut self) -> Option<(AssociationId, AssociationEvent)> {
        self.events.pop_front()
    }

    /// The association whose packets [`poll_transmit`](Self::poll_transmit) returns now goes behind the others that may have
    /// something to send. A driver that stops to ask for packets although there may be more calls this, or that association
    /// alone might send for as long as its window moves on.
    pub fn end_turn(&mut self) {
        let Some(id) = self.table.next_busy() else { return };
        // Whoever learns that an association is over expects that its last packet has left.
        if let Some(association) = self.table.get_mut(id).filter(|association| !association.is_closed()) {
            while let Some(event) = association.poll_event() {
                self.events.push_back((id, event));
            }
        }
        self.table.end_turn();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is wanted next.
    pub fn poll_timeout(&mut self) -> Option<Time> {
        // Many packets may have come and gone since the last time: each would have moved its association's deadline.
        self.table.refresh_deadlines();
        self.table.earliest()
    }

    /// An association, to look at.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.table.get(id)
    }

    /// An association, to use.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        let now = self.now;
        let association = self.table.get_mut(id)?;
        association.clock(now);
        Some(association)
    }

    /// The driver could not send a packet of this many bytes, because it is longer than the interface takes: a probe of a path's
    /// MTU need not be waited for then. Other packets are lost, as far as the endpoint is concerned.
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

    /// Handles the report that a packet of ours was not delivered, by the system that was to send it or by an ICMP message. `quoted` is
    /// the beginning of the packet. Ends the attempt on this path if the packet is an unanswered INIT with our tag, and ignores every
    /// other report. Returns the association whose INIT it was.
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

    /// Ends the attempt to open an association over this path, because the system cannot deliver packets there. Has no effect once the
    /// peer has answered. Returns `true` if the attempt ended.
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

    /// The associations there are, closed ones included until they are [`forget`](Self::forget)ten.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.table.ids()
    }

    /// Forgets a closed association; `false` if it is not closed, or still has a last packet to send.
    pub fn forget(&mut self, id: AssociationId) -> bool {
        let over = self.table.get(id).is_some_and(Association::is_spent);
        if over {
            self.table.remove(id);
        }
        over
    }

    /// Our addresses from now on, in the order in which new peers are told; associations that are up keep the paths they have
    /// (see [`Association::add_local_address`]).
    pub fn set_addresses(&mut self, addresses: Vec<LocalEnd>) {
        self.locals = addresses;
    }

    /// The largest IP packets that the interfaces of our addresses take from now on, in associations that are up as well: paths
    /// from an address that is listed are searched for no larger size, and shrink at once if theirs is larger.
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

    /// What was dropped, and why.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    /// How long an answer to a stranger's packet may be.
    fn longest_reply(&self, to: Origin) -> usize {
        if self.config.guard.is_some() { REPLY_FACTOR as usize * to.bytes } else { usize::MAX }
    }

    /// Answers a stranger's packet, unless it is not worth that many bytes.
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

/// A packet that an association has written for a path.
fn transmit(id: AssociationId, association: &Association, path: PathId, packet: &[u8]) -> Transmit {
    Transmit {
        address: association.destination(path),
        association: Some(id),
        may_fragment: association.outgrows(path, packet.len()),
    }
}
