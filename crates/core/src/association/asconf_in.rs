//! Requests of the peer for changes of addresses while the association is up (RFC 5061).

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::{
    AsconfView, AuthView, CHUNK_HEADER_LEN, Cause, Chunk, ChunkType, Chunks, Header, NoSpace, PacketView,
    PacketWriter, Param, ParamList, RawParam,
};
use arrayvec::ArrayVec;

use crate::address::{LocalEnd, Origin, PathAddress};
use crate::association::control::Control;
use crate::association::packets::PacketContext;
use crate::association::{Association, AssociationEvent};
use crate::authentication::{AuthFailure, Keys};
use crate::config::ListedAddresses;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{MAX_PATHS, PathId, PathState};
use crate::protection::ChunkProtection;
use crate::stats::{Discard, Discards};

/// Number of answers kept for repeated ASCONFs.
const KEPT_ANSWERS: usize = 4;

/// Maximum length in bytes of an ASCONF or ASCONF-ACK. Every path carries more.
pub(super) const LONGEST_CHUNK: usize = 1024;

/// Number of parameters of an ASCONF whose answers always fit an ASCONF-ACK.
const MOST_SAID: usize = 8;

/// Maximum length in bytes of a packet with answers. Every path carries it.
const ANSWER_BYTES: usize = 1200;

/// Authentication of the chunks of a packet from the current one on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proof {
    #[default]
    None,
    Authenticated,
}

impl Proof {
    /// Returns the proof that a packet's cover gives for all its chunks.
    pub(crate) fn of(cover: ChunkProtection) -> Self {
        match cover {
            ChunkProtection::Plain => Proof::None,
            ChunkProtection::Record => Proof::Authenticated,
        }
    }
}

/// State of the peer's requests.
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    /// Sequence number of the latest processed ASCONF.
    latest: u32,
    /// Sequence numbers and values of answers.
    kept: VecDeque<(u32, Vec<u8>)>,
    /// Sequence numbers of the ASCONFs in the current packet.
    asked: Vec<u32>,
    /// Packet of answers that waits to be sent.
    reply: Option<Vec<u8>>,
}

impl Inbound {
    pub(super) fn new(latest: u32) -> Self {
        Inbound { latest, kept: VecDeque::new(), asked: Vec::new(), reply: None }
    }
}

/// Answers to the parameters of an ASCONF while it is processed.
#[derive(Clone, Debug, Default)]
struct Answers {
    /// Correlation identifiers, with the causes of refused parameters.
    said: Vec<(u32, Option<Vec<u8>>)>,
    failed: bool,
}

impl Answers {
    fn refuse(&mut self, correlation: u32, cause: &Cause<'_>) {
        let mut space = [0; 64];
        // Of a cause that is too long, only the code is quoted.
        let length = cause.put(&mut space).unwrap_or_else(|_| {
            space[..4].copy_from_slice(&[
                cause.code().0.to_be_bytes()[0],
                cause.code().0.to_be_bytes()[1],
                0,
                4,
            ]);
            4
        });
        self.said.push((correlation, Some(space[..length].to_vec())));
        self.failed = true;
    }

    /// Accepts a parameter. Without an earlier error, a missing answer means success (RFC 5061 section 5.1 A8).
    fn accept(&mut self, correlation: u32) {
        if self.failed {
            self.said.push((correlation, None));
        }
    }

    fn params(&self) -> impl Iterator<Item = Param<'_>> {
        self.said.iter().map(|(correlation, causes)| match causes {
            Some(causes) => Param::ErrorCause { correlation: *correlation, causes },
            None => Param::Success { correlation: *correlation },
        })
    }
}

impl Association {
    /// Checks an AUTH chunk. `covered` is the part of the packet that begins with this chunk.
    pub(crate) fn check_auth(&mut self, auth: &AuthView<'_>, covered: &[u8]) -> Result<Proof, Discard> {
        // If AUTH was not negotiated, it is an unknown chunk type whose upper bits demand that the packet is dropped.
        let keys = self.addresses.keys().ok_or(Discard::Unexpected)?;
        match keys.verify(auth, covered) {
            Ok(()) => Ok(Proof::Authenticated),
            Err(AuthFailure::UnsupportedHmac(hmac_id)) => {
                let path = self.control_path(None);
                self.control.offer(Control::UnsupportedHmac { path, hmac_id });
                Err(Discard::Unauthenticated)
            }
            Err(AuthFailure::Wrong) => Err(Discard::Unauthenticated),
        }
    }

    /// Handles a packet from an address that is not known as the peer's. Only its authenticated ASCONFs are processed; they may add
    /// that address (RFC 5061 section 5.2). Returns `true` if there was one.
    pub(crate) fn handle_asconf_from_unknown_address(
        &mut self,
        origin: Origin,
        mut chunks: Chunks<'_>,
        cover: ChunkProtection,
        discards: &mut Discards,
    ) -> bool {
        if self.addresses.asconf().is_none() || !self.state.takes_sacks() {
            return false;
        }
        let (mut proof, mut any) = (Proof::of(cover), false);
        loop {
            let covered = chunks.rest();
            let Some(Ok(raw)) = chunks.next() else { break };
            match raw.decode() {
                Ok(Chunk::Auth(auth)) => match self.check_auth(&auth, covered) {
                    Ok(proved) => proof = proved,
                    Err(reason) => {
                        discards.count(reason);
                        break;
                    }
                },
                Ok(Chunk::Asconf(view)) if proof == Proof::Authenticated => {
                    any = true;
                    if let Err(reason) = self.handle_asconf(origin, &view) {
                        discards.count(reason);
                    }
                }
                _ => {}
            }
        }
        self.answer_asconfs();
        any
    }

    /// Handles an authenticated ASCONF (RFC 5061 section 5.2).
    pub(crate) fn handle_asconf(&mut self, origin: Origin, view: &AsconfView<'_>) -> Result<(), Discard> {
        let inbound = &mut self.addresses.asconf_mut().ok_or(Discard::Unexpected)?.inbound;
        let ahead = view.serial().wrapping_sub(inbound.latest) as i32;
        if ahead > 1 {
            // E5: stale, or from an attacker.
            return Err(Discard::Unexpected);
        }
        // Only the peer can authenticate this chunk, so the peer is reachable, even if every known path has failed.
        self.reachability.note_answer();
        self.reachability.note_packet(self.now);
        if ahead < 1 {
            // E2: a repeated ASCONF gets the same answer again.
            if !inbound.kept.iter().any(|(serial, _)| *serial == view.serial()) {
                return Err(Discard::Unexpected);
            }
            inbound.asked.push(view.serial());
            return Ok(());
        }
        if inbound.asked.is_empty() {
            // E1: a peer that sends the next ASCONF has received the answers to earlier ones.
            inbound.kept.clear();
        }
        self.outputs.statistics.asconfs_received += 1;
        let mut answers = Answers::default();
        for param in view.raw_params() {
            let Ok(raw) = param else { break };
            if !self.handle_request(origin, &raw, &mut answers) {
                break;
            }
        }
        let value = chunk_value(|writer| writer.asconf_ack(view.serial(), answers.params()))
            // Later parameters without an answer count as refused (section 5.1 A7).
            .or_else(|| {
                let first = answers.params().take(MOST_SAID);
                chunk_value(|writer| writer.asconf_ack(view.serial(), first))
            });
        let Some(inbound) = self.addresses.asconf_mut().map(|asconf| &mut asconf.inbound) else {
            return Ok(());
        };
        inbound.latest = view.serial();
        if let Some(value) = value {
            inbound.kept.truncate(KEPT_ANSWERS - 1);
            inbound.kept.push_front((view.serial(), value));
            inbound.asked.push(view.serial());
        }
        Ok(())
    }

    /// Handles a parameter. Returns `true` if the next one is to be handled.
    fn handle_request(&mut self, origin: Origin, raw: &RawParam<'_>, answers: &mut Answers) -> bool {
        let quoted = raw.bytes();
        let (correlation, done) = match raw.decode() {
            // RFC 5061 section 5.3 F11: after a failure, all later additions and deletions fail.
            Ok(Param::AddIp { correlation, .. } | Param::DeleteIp { correlation, .. }) if answers.failed => {
                (correlation, Err(Cause::ResourceShortage(quoted)))
            }
            Ok(Param::AddIp { correlation, address }) => {
                (correlation, self.add_peer_address(origin, address, quoted))
            }
            Ok(Param::DeleteIp { correlation, address }) => {
                (correlation, self.delete_peer_address(origin, address, quoted))
            }
            Ok(Param::SetPrimary { correlation, address }) => {
                (correlation, self.prefer_peer_address(origin, address, quoted))
            }
            Ok(Param::AdaptationIndication(_)) => return true,
            Ok(_) => return refuse_unknown(raw, answers),
            Err(_) => (correlation_of(raw), Err(Cause::InvalidParameter)),
        };
        match done {
            Ok(()) => answers.accept(correlation),
            Err(cause) => answers.refuse(correlation, &cause),
        }
        true
    }

    fn add_peer_address<'q>(
        &mut self,
        origin: Origin,
        address: IpAddr,
        quoted: &'q [u8],
    ) -> Result<(), Cause<'q>> {
        let address = if address.is_unspecified() { origin.address.remote } else { address };
        if !is_of_one_host(address) {
            return Err(Cause::NoAuthorization(quoted));
        }
        let known = self.addresses.peer().contains(&address) || self.has_remote(address);
        let from_there = address == origin.address.remote;
        if self.takes_reports() {
            self.take_report(origin.address.remote, address);
            if !from_there {
                return Ok(());
            }
        }
        if known && !from_there {
            return Ok(());
        }
        if !known && !self.addresses.add_peer(address) {
            return Err(Cause::ResourceShortage(quoted));
        }
        self.addresses.undelete(address);
        if self.paths.find(PathAddress { remote: address, ..origin.address }).is_some() {
            return Ok(());
        }
        if !from_there && self.config.listed_addresses != ListedAddresses::Use {
            // The address is known from here on, and becomes a path when a packet comes from it.
            return Ok(());
        }
        let id = if from_there { self.learn(origin) } else { self.path_to_named(origin, address) };
        if id.is_some() || known {
            return Ok(());
        }
        self.addresses.remove_peer(address);
        Err(Cause::ResourceShortage(quoted))
    }

    /// Adds a path to an address that the peer names. The local address of the path is a guess: the local address that the fewest
    /// paths use, because a new address of a peer mostly leads over another network. The path is unconfirmed until it has answered
    /// (RFC 5061 section 5.3 F14).
    fn path_to_named(&mut self, origin: Origin, address: IpAddr) -> Option<PathId> {
        let in_use: ArrayVec<LocalEnd, MAX_PATHS> =
            self.paths.live().map(|id| self.paths[id].address.local_end()).collect();
        let uses = |local: LocalEnd| in_use.iter().filter(|used| **used == local).count();
        // Among local ends with equally few paths, the first one is chosen.
        let local = std::iter::once(origin.address.local_end())
            .chain(self.addresses.local().iter().copied())
            .chain(in_use.iter().copied())
            .filter(|local| {
                local.address.is_ipv4() == address.is_ipv4() && !self.addresses.is_retired_end(*local)
            })
            .min_by_key(|local| uses(*local))?;
        // A ninth path is refused.
        let id = self.new_path(PathAddress { remote: address, ..origin.address.from_end(local) }).ok()?;
        self.paths.mark_listed(id);
        self.outputs.report(AssociationEvent::PathAdded { path: id });
        self.verify_path(id);
        Some(id)
    }

    fn delete_peer_address<'q>(
        &mut self,
        origin: Origin,
        address: IpAddr,
        quoted: &'q [u8],
    ) -> Result<(), Cause<'q>> {
        if address.is_unspecified() {
            return self.delete_other_peer_addresses(origin, quoted);
        }
        let known = self.has_remote(address)
            || self.addresses.peer().contains(&address)
            || self.addresses.reported().contains(&address);
        if !known {
            return Err(Cause::UnresolvableAddress(quoted.get(8..).unwrap_or_default()));
        }
        // RFC 5061 section 5.3 F7, then F8.
        if !self.paths.live().any(|id| self.paths[id].address.remote != address) {
            return Err(Cause::DeleteLastAddress(quoted));
        }
        if address == origin.address.remote {
            return Err(Cause::DeleteSourceAddress(quoted));
        }
        self.forget_peer_addresses(|other| other == address);
        Ok(())
    }

    fn delete_other_peer_addresses<'q>(&mut self, origin: Origin, quoted: &'q [u8]) -> Result<(), Cause<'q>> {
        if !self.has_remote(origin.address.remote) {
            return Err(Cause::DeleteLastAddress(quoted));
        }
        self.forget_peer_addresses(|other| other != origin.address.remote);
        Ok(())
    }

    /// Removes deleted addresses and their paths. Packets from them are out of the blue (RFC 5061 section 5.3 F13).
    fn forget_peer_addresses(&mut self, is_deleted: impl Fn(IpAddr) -> bool) {
        let live = self.paths.live().map(|id| self.paths[id].address.remote);
        let known = self.addresses.peer().iter().chain(self.addresses.reported()).copied();
        let all: Vec<IpAddr> = known.chain(live).filter(|a| is_deleted(*a)).collect();
        for address in all {
            self.addresses.delete(address);
        }
        let paths: Vec<PathId> =
            self.paths.live().filter(|id| is_deleted(self.paths[*id].address.remote)).collect();
        let locals: Vec<LocalEnd> = paths.iter().map(|id| self.paths[*id].address.local_end()).collect();
        for id in paths {
            // Another path remains.
            if self.retire_path(id).is_ok() {
                self.block_source(id);
            }
        }
        // The driver knows the routes, so it pairs addresses that the peer reports.
        if self.config.address_changes.follow && !self.takes_reports() {
            self.pair_again(&locals);
        }
    }

    /// Adds another path for each local address that has lost its last one.
    fn pair_again(&mut self, locals: &[LocalEnd]) {
        for &local in locals {
            let idle = !self.paths.live().any(|id| self.paths[id].address.local_end() == local);
            if idle && !self.addresses.is_retired_end(local) {
                // If no path id is free, the address gets no path.
                let _ = self.add_local_address(self.now, local);
            }
        }
    }

    fn prefer_peer_address<'q>(
        &mut self,
        origin: Origin,
        address: IpAddr,
        quoted: &'q [u8],
    ) -> Result<(), Cause<'q>> {
        let address = if address.is_unspecified() { origin.address.remote } else { address };
        let leads_there = |id: &PathId| self.paths[*id].address.remote == address;
        let confirmed = |id: &PathId| self.paths.facts(*id).state == PathState::Active;
        let found = self
            .paths
            .live()
            .filter(leads_there)
            .find(confirmed)
            .or_else(|| self.paths.live().find(leads_there))
            .ok_or(Cause::UnresolvableAddress(quoted.get(8..).unwrap_or_default()))?;
        self.paths.set_primary(found);
        Ok(())
    }

    /// Writes the answers to the requests of the packet into one packet (RFC 5061 section 5.2 E6 and E7).
    pub(crate) fn answer_asconfs(&mut self) {
        let header = self.header();
        let Some(asconf) = self.addresses.asconf_mut() else { return };
        let asked = std::mem::take(&mut asconf.inbound.asked);
        if asked.is_empty() {
            return;
        }
        let mut bytes = PacketBuffer::new();
        let write =
            |this: &mut Self, writer: &mut PacketWriter<'_>| this.write_answers(&asked, writer).is_ok();
        let written = self.build_packet(ANSWER_BYTES, header, &mut bytes, |_, _| (), write);
        if let (Some(true), Some(asconf)) = (written, self.addresses.asconf_mut()) {
            asconf.inbound.reply = Some(bytes.to_vec()).filter(|bytes| !bytes.is_empty());
        }
    }

    /// Writes the answers to these serial numbers, as many as fit.
    fn write_answers(&self, asked: &[u32], writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let Some(asconf) = self.addresses.asconf() else { return Ok(()) };
        let keys = self.addresses.keys().filter(|_| !self.protection.is_required());
        let pending = match keys.map(Keys::repr) {
            Some((repr, code_len)) => Some(writer.auth(repr, code_len)?),
            None => None,
        };
        let kept = asked.iter().filter_map(|s| asconf.inbound.kept.iter().find(|(kept, _)| kept == s));
        for (_, value) in kept {
            if writer.raw_parts(ChunkType::ASCONF_ACK, 0, value).is_err() {
                break;
            }
        }
        if let (Some(pending), Some(keys)) = (pending, keys) {
            writer.authenticate(pending, |covered| keys.code(covered));
        }
        Ok(())
    }

    /// Takes the packet of answers for the source of the latest packet, which need not be a path.
    pub(crate) fn take_reply(&mut self, origin: Origin) -> Option<Vec<u8>> {
        let reply = self.addresses.asconf_mut()?.inbound.reply.take()?;
        let path = self.paths.find(origin.address);
        path.is_none_or(|path| self.may_send(path, reply.len())).then_some(reply)
    }
}

/// Returns `true` if an address can belong to a single host. A peer must not direct packets to a group.
pub(crate) fn is_of_one_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !broadcast
}

/// Returns the identifier at the beginning of a parameter's value.
fn correlation_of(raw: &RawParam<'_>) -> u32 {
    raw.value().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Refuses an unknown parameter by the high bits of its type (RFC 5061 section 5.2 V2). Returns `true` to continue.
fn refuse_unknown(raw: &RawParam<'_>, answers: &mut Answers) -> bool {
    let action = raw.kind().unknown_action();
    if action.reports() {
        let params = [Param::Unknown(*raw)];
        answers.refuse(correlation_of(raw), &Cause::UnrecognizedParameters(ParamList::new(&params)));
    }
    !action.stops()
}

/// Returns the value of the one chunk that `write` writes; `None` if it is longer than `LONGEST_CHUNK`.
pub(super) fn chunk_value(
    write: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
) -> Option<Vec<u8>> {
    let mut bytes = [0; LONGEST_CHUNK + CHUNK_HEADER_LEN];
    let mut writer = PacketWriter::new(&mut bytes, Header::default()).ok()?;
    write(&mut writer).ok()?;
    let length = writer.finish();
    let chunk = PacketView::parse(bytes.get(..length)?).ok()?.chunks().next()?.ok()?;
    Some(chunk.value().to_vec())
}
