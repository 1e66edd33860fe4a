//! An endpoint with one association, whose steps are all checked against the invariants of endpoints.

use std::net::IpAddr;

use anabranch_core::policy::PathFacts;
use anabranch_core::protection::KEY_MANAGEMENT_PPID;
use anabranch_core::time::Time;
use anabranch_core::{
    Association, AssociationConfig, AssociationEvent, AssociationId, Endpoint, ErrorDetection, Handled,
    PacketBuffer, PathAddress, PathState, Transmit,
};
use anabranch_wire::{Chunk, ChunkType, DataView, PacketView, RawChunk, Tsn};

use crate::network::{Packet, Side};

/// Maximum number of packets of a call, which exceeds all legitimate ones.
const MOST_PACKETS: usize = 40_000;

/// A checked endpoint.
#[derive(Debug)]
pub struct Node {
    /// Side of the endpoint.
    pub side: Side,
    /// Protocol endpoint of the node.
    pub endpoint: Endpoint,
    /// Identifier of its association, once there is one.
    pub id: Option<AssociationId>,
    /// Event that ended the association.
    pub ended: Option<AssociationEvent>,
    /// All events so far.
    pub told: Vec<AssociationEvent>,
    /// Highest sent TSN.
    highest_tsn: Option<Tsn>,
    /// Number of packets sent after the end of its association.
    last_words: usize,
    lost_counts: bool,
    /// Set if packets may have a zero checksum (RFC 9653).
    over_dtls: bool,
}

/// State just before a packet was requested.
struct Before {
    paths: Vec<PathFacts>,
    promotions: u64,
    abandoned_chunks: u64,
}

impl Node {
    /// Checks `endpoint` with this configuration. Packets need a checksum unless both sides have DTLS below SCTP.
    pub fn new(side: Side, endpoint: Endpoint, configs: &[AssociationConfig; 2]) -> Self {
        Node {
            side,
            endpoint,
            id: None,
            ended: None,
            told: Vec::new(),
            highest_tsn: None,
            last_words: 0,
            lost_counts: configs[side.index()].profile.lost_counts_until_resent,
            over_dtls: configs.iter().all(|c| c.error_detection == ErrorDetection::LowerLayerDtls),
        }
    }

    /// Returns its association.
    ///
    /// # Panics
    /// Panics if the node has no association yet.
    pub fn association(&self) -> &Association {
        self.try_association().expect("there is an association")
    }

    /// Returns its association, if there is one.
    pub fn try_association(&self) -> Option<&Association> {
        self.endpoint.association(self.id?)
    }

    /// Returns its association for changes, if there is one.
    pub fn try_association_mut(&mut self) -> Option<&mut Association> {
        self.endpoint.association_mut(self.id?)
    }

    /// Returns `true` if such an event occurred.
    pub fn was_told(&self, event: &AssociationEvent) -> bool {
        self.told.contains(event)
    }

    /// Processes a packet.
    pub fn handle(&mut self, now: Time, packet: &Packet) -> Handled {
        let address = PathAddress::from((packet.destination, packet.source));
        let handled = self.endpoint.handle_datagram(now, address, &packet.bytes);
        if self.id.is_none()
            && let Handled::New(id) = handled
        {
            self.id = Some(id);
        }
        self.check();
        handled
    }

    /// Checks an association that the peer opened in place of an ended one.
    pub fn adopt(&mut self, id: AssociationId) {
        assert!(self.ended.is_some(), "{:?}: a second association was opened", self.side);
        self.id = Some(id);
        self.ended = None;
        self.told.clear();
        self.highest_tsn = None;
        self.last_words = 0;
    }

    /// Runs timers.
    pub fn timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.check();
    }

    /// Requests one packet and checks it.
    pub fn transmit(&mut self, now: Time) -> Option<Packet> {
        let before = self.before();
        let mut bytes = PacketBuffer::new();
        let transmit = self.endpoint.poll_transmit(now, &mut bytes);
        self.check();
        let transmit = transmit?;
        self.check_packet(&before, &transmit, &bytes);
        let (source, destination) = (transmit.address.local, transmit.address.remote);
        let bytes = bytes.to_vec();
        Some(Packet { from: self.side, source, destination, bytes, may_fragment: transmit.may_fragment })
    }

    /// Requests packets until there are no more.
    pub fn drain(&mut self, now: Time, packets: &mut Vec<Packet>) {
        for _ in 0..MOST_PACKETS {
            let Some(packet) = self.transmit(now) else { return };
            packets.push(packet);
        }
        panic!("{:?}: draining does not end", self.side);
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Option<AssociationEvent> {
        let (id, event) = self.endpoint.poll_event()?;
        assert_eq!(id, *self.id.get_or_insert(id), "{:?}: an event of another association", self.side);
        assert_eq!(self.ended, None, "{:?}: {event:?} after the end", self.side);
        if matches!(event, AssociationEvent::Closed | AssociationEvent::Aborted(_)) {
            self.ended = Some(event.clone());
        }
        self.told.push(event.clone());
        Some(event)
    }

    /// Compares all counters with a recount.
    pub fn check(&self) {
        if let Some(association) = self.try_association() {
            association.check_invariants();
        }
    }

    fn before(&self) -> Before {
        let association = self.try_association();
        Before {
            paths: association.map(|a| a.paths().to_vec()).unwrap_or_default(),
            promotions: association.map_or(0, |a| a.statistics().promotions),
            abandoned_chunks: association.map_or(0, |a| a.statistics().abandoned.chunks),
        }
    }

    fn check_packet(&mut self, before: &Before, transmit: &Transmit, bytes: &[u8]) {
        let packet = PacketView::parse(bytes).expect("a packet is well formed");
        let permits_zero = |chunk: RawChunk<'_>| {
            !matches!(chunk.kind(), ChunkType::INIT | ChunkType::COOKIE_ECHO | ChunkType::ASCONF)
        };
        let has_zero = self.over_dtls && packet.checksum_field() == 0;
        let may_have_zero = has_zero && packet.chunks().flatten().all(permits_zero);
        assert!(may_have_zero || packet.checksum_is_valid(), "a packet carries its checksum");
        assert!(packet.chunks().next().is_some(), "a packet holds a chunk");
        if transmit.association.is_some() && self.ended.is_some() {
            self.last_words += 1;
            assert!(self.last_words <= 1, "{:?}: speaks on after the end", self.side);
        }
        let is_protected = transmit.association.is_some()
            && self.try_association().is_some_and(Association::requires_protection);
        if is_protected {
            let kinds: Vec<_> = packet.chunks().flatten().map(|chunk| chunk.kind()).collect();
            assert_eq!(kinds, [ChunkType::DTLS], "{:?}: a packet without protection", self.side);
        }
        for chunk in packet.chunks() {
            let chunk = chunk.expect("a chunk is well formed");
            match chunk.decode().expect("a chunk is well formed") {
                Chunk::Data(data) => self.check_data(before, transmit, &data),
                Chunk::Sack(sack) => check_sack(&sack),
                _ => {}
            }
        }
    }

    fn check_data(&mut self, before: &Before, transmit: &Transmit, data: &DataView<'_>) {
        let tsn = data.tsn();
        // Before there are keys, only the key management sends to unconfirmed addresses.
        let association = self.association();
        let awaits_keys = association.protection().is_some() && !association.requires_protection();
        let early = awaits_keys && data.ppid() == KEY_MANAGEMENT_PPID;
        let new = self.highest_tsn.is_none_or(|highest| tsn.offset_from(highest) > 0);
        let path = self.path_of(transmit.address.local, transmit.address.remote);
        let promoted = self.association().statistics().promotions > before.promotions;
        let Some(facts) = before.paths.iter().find(|p| p.id.index() == path) else {
            panic!("DATA on a path that did not exist");
        };
        assert!(
            early || facts.state != PathState::Unconfirmed,
            "{:?}: DATA on an unconfirmed path {path}",
            self.side
        );
        if !new {
            return;
        }
        self.highest_tsn = Some(tsn);
        // Chunks that were abandoned before the packet was built have left the flight.
        let abandoned = self.association().statistics().abandoned.chunks > before.abandoned_chunks;
        if promoted || abandoned {
            return;
        }
        assert!(
            early || facts.state == PathState::Active,
            "{:?}: new DATA on path {path}, which is {:?}",
            self.side,
            facts.state
        );
        let lost = if self.lost_counts { facts.lost_unsent.get() } else { 0 };
        let outstanding = facts.in_flight.get() + lost;
        // The state before the packet counts: the last one may overshoot (RFC 9260 section 6.1 B).
        assert!(
            outstanding < facts.cwnd.get(),
            "{:?}: new DATA {tsn:?} on path {path} with {outstanding} of {:?} outstanding",
            self.side,
            facts.cwnd
        );
    }

    /// Returns the index of the path between these addresses.
    pub fn path_of(&self, local: IpAddr, remote: IpAddr) -> usize {
        let association = self.association();
        let ids = association.paths().iter().map(|p| p.id);
        let found = ids.clone().find(|&id| association.path_address(id) == Some((local, remote).into()));
        found
            .unwrap_or_else(|| panic!("a packet left between {local} and {remote}, which is no path"))
            .index()
    }
}

fn check_sack(sack: &anabranch_wire::SackView<'_>) {
    let mut end = 0;
    for gap in sack.gaps() {
        assert!(gap.start > end + 1 && gap.end >= gap.start, "gap blocks ascend and leave holes between");
        end = gap.end;
    }
}
