//! Requests to the peer for changes of addresses while the association is up (RFC 5061), one ASCONF at a time.
//!
//! [`asconf_in`](super::asconf_in) handles the peer's requests.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_wire::{AsconfAckView, CauseCode, ChunkType, NoSpace, PacketWriter, Param, RawCauses};
use arrayvec::ArrayVec;

use crate::address::LocalEnd;
use crate::association::Association;
use crate::association::asconf_in::{Inbound, LONGEST_CHUNK, chunk_value};
use crate::association::control::Control;
use crate::error::{AbortReason, PathError};
use crate::path_id::{MAX_PATHS, PathId};
use crate::paths::{AddressValidation, PathSource};
use crate::stats::Discard;
use crate::time::Time;

/// Maximum number of requests in one ASCONF.
const MOST_REQUESTS: usize = 4;

/// Maximum number of waiting requests; more would mean that addresses change faster than ASCONFs can report them.
const LONGEST_QUEUE: usize = 32;

/// Maximum number of announcements of an address for a path that does not answer.
const MOST_ANNOUNCEMENTS: u8 = 8;

/// Transmissions of an ASCONF from the address that it adds before other paths are tried in between.
const TRIES_FROM_NEW_ADDRESS: u32 = 2;

/// Request to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Addition of the source address of this path's packets, as NATs translate it (RFC 5061 section 4.2.1).
    AddSource { path: PathId, local: IpAddr },
    /// Addition of this address, at which this path begins.
    AddNamed { path: PathId, local: IpAddr },
    /// Addition of this address, at which no path begins.
    Report { local: IpAddr },
    /// Deletion of an address.
    Delete { local: IpAddr },
    /// Deletion of all addresses except the source address of the packet (RFC 5061 section 4.2.2).
    DeleteOthers { family: IpAddr },
    /// Preference for an address.
    SetPrimary { local: IpAddr },
}

impl Request {
    /// Returns the path whose address is added, and the address.
    fn added_path(&self) -> Option<(PathId, IpAddr)> {
        match *self {
            Request::AddSource { path, local } | Request::AddNamed { path, local } => Some((path, local)),
            _ => None,
        }
    }

    fn param<'p>(&self, correlation: u32) -> Param<'p> {
        match *self {
            Request::AddSource { local, .. } => Param::AddIp { correlation, address: any_address(local) },
            Request::AddNamed { local, .. } | Request::Report { local } => {
                Param::AddIp { correlation, address: local }
            }
            Request::Delete { local } => Param::DeleteIp { correlation, address: local },
            Request::DeleteOthers { family } => Param::DeleteIp { correlation, address: any_address(family) },
            Request::SetPrimary { local } => Param::SetPrimary { correlation, address: local },
        }
    }
}

/// Returns the unspecified address of the same IP version.
fn any_address(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// ASCONF that waits for its answer.
#[derive(Clone, Debug)]
struct Sent {
    serial: u32,
    /// Chunk value; it is retransmitted unchanged (RFC 5061 section 5.1 B4).
    value: Vec<u8>,
    requests: ArrayVec<(u32, Request), MOST_REQUESTS>,
    path: PathId,
    tries: u32,
    /// Expiry of T4, at which the chunk is retransmitted (RFC 5061 section 5.1).
    t4: Option<Time>,
}

/// State of ASCONF of an association.
#[derive(Clone, Debug)]
pub(crate) struct Asconf {
    next_serial: u32,
    correlation: u32,
    queue: VecDeque<Request>,
    sent: Option<Sent>,
    /// Set if the peer refused a request although it had announced support for ASCONF. It gets no further requests (RFC 5061
    /// sections 5.1 A9 and 5.3 F3).
    refused: bool,
    pub(super) inbound: Inbound,
}

impl Asconf {
    /// Returns the initial state: sequence numbers start with the initial TSNs (RFC 5061 section 5.1 A2).
    pub(crate) fn new(our_initial_tsn: u32, peer_initial_tsn: u32) -> Self {
        Asconf {
            next_serial: our_initial_tsn,
            correlation: 0,
            queue: VecDeque::new(),
            sent: None,
            refused: false,
            inbound: Inbound::new(peer_initial_tsn.wrapping_sub(1)),
        }
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        let sent = self.sent.iter().flat_map(|sent| sent.requests.iter().map(|(_, request)| request));
        self.queue.iter().chain(sent)
    }

    /// Returns the expiry of T4.
    pub(crate) fn t4(&self) -> Option<Time> {
        self.sent.as_ref().and_then(|sent| sent.t4)
    }

    /// Stops T4 if it has expired. Returns `true` if it had.
    pub(crate) fn take_expired_t4(&mut self, now: Time) -> bool {
        self.sent.as_mut().is_some_and(|sent| sent.t4.take_if(|at| *at <= now).is_some())
    }

    /// Stops T4, because the association is closed.
    pub(crate) fn stop_timer(&mut self) {
        if let Some(sent) = &mut self.sent {
            sent.t4 = None;
        }
    }

    /// Returns `true` if a request to add the address of this path waits or is unanswered.
    pub(crate) fn is_adding(&self, path: PathId) -> bool {
        self.requests().any(|request| request.added_path().is_some_and(|(added, _)| added == path))
    }

    /// Restarts the sequence numbers after a restart of the peer, and queues unanswered requests again.
    pub(crate) fn restart(&mut self, our_initial_tsn: u32, peer_initial_tsn: u32) {
        let sent = self.sent.take().map(|sent| sent.requests).unwrap_or_default();
        let waiting = std::mem::take(&mut self.queue);
        let queue = sent.into_iter().map(|(_, request)| request).chain(waiting).collect();
        *self = Asconf { queue, ..Asconf::new(our_initial_tsn, peer_initial_tsn) };
    }
}

impl Association {
    /// Returns `true` if both sides support ASCONF.
    pub fn does_asconf(&self) -> bool {
        self.addresses.asconf().is_some_and(|asconf| !asconf.refused)
    }

    /// Asks the peer to send to this local address rather than to others (RFC 5061 section 4.2.4). The call has no effect unless
    /// both sides use ASCONF.
    ///
    /// # Errors
    /// Returns [`PathError::Unknown`] if no path begins at the address; [`PathError::Closed`].
    pub fn prefer_local_address(&mut self, now: Time, local: IpAddr) -> Result<(), PathError> {
        self.clock(now);
        if self.is_closed() {
            return Err(PathError::Closed);
        }
        let begins_here = |id: PathId| {
            let end = self.paths[id].address.local_end();
            end.address == local && !self.addresses.is_retired_end(end)
        };
        if !self.paths.live().any(begins_here) {
            return Err(PathError::Unknown);
        }
        self.ask(Request::SetPrimary { local });
        Ok(())
    }

    fn ask(&mut self, request: Request) {
        self.ask_all([request]);
    }

    /// Queues requests, and sends one ASCONF unless another one is outstanding.
    pub(super) fn ask_all(&mut self, requests: impl IntoIterator<Item = Request>) {
        let Some(asconf) = self.addresses.asconf_mut().filter(|asconf| !asconf.refused) else { return };
        for request in requests {
            // An outstanding request is not compared, because a request that reverts it may be waiting.
            if asconf.queue.len() < LONGEST_QUEUE && !asconf.queue.contains(&request) {
                asconf.queue.push_back(request);
            }
        }
        self.advance_asconf();
    }

    /// Announces the local address of a new path to the peer; the path is verified once the peer knows the address (RFC 5061
    /// section 5.3 F1). If ASCONF is not in use, the path is verified at once, because the peer may know the address.
    pub(crate) fn announce_added(&mut self, id: PathId) {
        if self.is_opening() {
            // The end of the handshake announces the address.
            return;
        }
        if self.does_asconf() {
            self.announce_again(id);
        } else {
            self.verify_path(id);
        }
    }

    /// Announces an address again. The first request identifies it by the packet's source, which passes NATs; the next one names it
    /// and takes another path: a filter may block an unknown source until the peer has sent a packet there.
    fn announce_again(&mut self, id: PathId) {
        let local = self.paths[id].address.local;
        if let Some(asconf) = self.addresses.asconf_mut() {
            // The address is back before its deletion was sent.
            asconf.queue.retain(|request| *request != Request::Delete { local });
        }
        let by_source = self.paths.count_announcement(id).is_multiple_of(2);
        self.ask(if by_source {
            Request::AddSource { path: id, local }
        } else {
            Request::AddNamed { path: id, local }
        });
    }

    /// Announces the address of an unanswered path again: a NAT may have translated it.
    pub(crate) fn consider_announcing(&mut self, id: PathId) {
        let path = &self.paths[id];
        let made_by_peer = path.source != PathSource::Named || path.validation == AddressValidation::Listed;
        if !self.paths.was_confirmed(id)
            && !made_by_peer
            && path.announcements < MOST_ANNOUNCEMENTS
            && self.does_asconf()
        {
            let adding = self.addresses.asconf().is_some_and(|asconf| asconf.is_adding(id));
            if !adding {
                self.announce_again(id);
            }
        }
    }

    /// Reports to the peer that an address is gone, unless another interface has the same address.
    pub(crate) fn announce_removed(&mut self, end: LocalEnd) {
        let local = end.address;
        let paths = self.paths.live().map(|id| self.paths[id].address.local_end());
        let mut others = paths.chain(self.addresses.local().iter().copied());
        let has_other = others
            .any(|other| other.address == local && other != end && !self.addresses.is_retired_end(other));
        drop(others);
        if has_other {
            return;
        }
        self.addresses.forget_advertised(local);
        self.ask(Request::Delete { local });
    }

    /// Removes waiting requests to add the address of a retired path.
    pub(crate) fn withdraw_announcement(&mut self, id: PathId) {
        if let Some(asconf) = self.addresses.asconf_mut() {
            asconf.queue.retain(|request| request.added_path().is_none_or(|(path, _)| path != id));
        }
    }

    /// Returns `true` if only the ASCONF that adds the local address of this path may be sent from this address (RFC 5061 section
    /// 5.3 F1).
    pub(crate) fn is_announcing(&self, id: PathId) -> bool {
        self.addresses.asconf().is_some_and(|asconf| asconf.is_adding(id))
    }

    /// Sends the next ASCONF unless one waits for its answer (RFC 5061 section 5.1 A3).
    pub(crate) fn advance_asconf(&mut self) {
        let up = self.state.takes_sacks();
        let idle = self.addresses.asconf().is_some_and(|a| a.sent.is_none() && !a.queue.is_empty());
        // Keys come first: requests are sent in records, or behind an AUTH without protection.
        if !up || !idle || !self.protection.admits_user_messages() {
            return;
        }
        let default = self.path_for_asconf(0);
        let Some(asconf) = self.addresses.asconf_mut() else { return };
        let Some(first) = asconf.queue.pop_front() else { return };
        let path = match first {
            Request::AddSource { path, .. } => path,
            _ => default,
        };
        let mut requests = ArrayVec::new();
        let mut next = Some(first);
        while let Some(request) = next {
            asconf.correlation = asconf.correlation.wrapping_add(1);
            requests.push((asconf.correlation, request));
            // Only one request may identify an address by the packet's source.
            let fits = |r: &Request| !matches!(r, Request::AddSource { .. });
            next = if requests.is_full() { None } else { asconf.queue.pop_front_if(|r| fits(r)) };
        }
        let serial = asconf.next_serial;
        asconf.next_serial = serial.wrapping_add(1);
        let lookup = match first {
            Request::AddSource { local, .. } => any_address(local),
            _ => self.paths[path].address.local,
        };
        let Some(value) = chunk_value(|writer| {
            writer.asconf(serial, lookup, requests.iter().map(|(id, request)| request.param(*id)))
        }) else {
            debug_assert!(false, "{MOST_REQUESTS} requests fit {LONGEST_CHUNK} bytes");
            return;
        };
        asconf.sent = Some(Sent { serial, value, requests, path, tries: 0, t4: None });
        self.send_asconf(path);
    }

    fn send_asconf(&mut self, path: PathId) {
        let t4 = self.now + self.paths.facts(path).rto;
        if let Some(sent) = self.addresses.asconf_mut().and_then(|asconf| asconf.sent.as_mut()) {
            sent.t4 = Some(t4);
        }
        self.outputs.statistics.asconfs_sent += 1;
        self.control.retain(|control| !matches!(control, Control::Asconf { .. }));
        self.control.push(Control::Asconf { path });
    }

    pub(super) fn write_asconf(&self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let sent = self.addresses.asconf().and_then(|asconf| asconf.sent.as_ref());
        let Some(sent) = sent else { return Ok(()) };
        if self.protection.is_required() {
            return writer.raw_parts(ChunkType::ASCONF, 0, &sent.value);
        }
        let Some(keys) = self.addresses.keys() else { return Ok(()) };
        let (repr, code_len) = keys.repr();
        let pending = writer.auth(repr, code_len)?;
        writer.raw_parts(ChunkType::ASCONF, 0, &sent.value)?;
        writer.authenticate(pending, |covered| keys.code(covered));
        Ok(())
    }

    /// Handles the expiry of T4: sends the same ASCONF again, on another path if possible (RFC 5061 section 5.1 B1 to B5).
    pub(crate) fn handle_t4(&mut self) {
        let Some(sent) = self.addresses.asconf_mut().and_then(|asconf| asconf.sent.as_mut()) else {
            return;
        };
        sent.tries += 1;
        let (before, tries) = (sent.path, sent.tries);
        let new = match sent.requests.first() {
            Some((_, Request::AddSource { path, local })) => Some((*path, *local)),
            _ => None,
        };
        if !self.paths[before].removed {
            self.paths.back_off(before);
            let unanswered = self.reachability.errors() + 1;
            self.count_error(before, true);
            // Section 5.1 B2 counts this error even on an address that never answered.
            self.reachability.count_errors_to(unanswered);
        }
        if self.is_closed() {
            return;
        }
        let serves = |(path, local): &(PathId, IpAddr)| {
            let begins = self.begins_at(*path, *local);
            begins && !self.addresses.is_retired_end(self.paths[*path].address.local_end())
        };
        let new = new.filter(serves).map(|(path, _)| path);
        let path = match new {
            Some(path) if tries < TRIES_FROM_NEW_ADDRESS || tries.is_multiple_of(2) => path,
            Some(_) => self.path_for_asconf(0),
            None => self.path_for_asconf(tries),
        };
        if let Some(sent) = self.addresses.asconf_mut().and_then(|asconf| asconf.sent.as_mut()) {
            sent.path = path;
        }
        self.send_asconf(path);
    }

    /// Returns the path for attempt `n`, as for other control chunks. A path of a removed address is used only if there is no
    /// other: an ASCONF may come from an address that the peer does not know yet (RFC 5061 section 5.3 F1).
    fn path_for_asconf(&self, n: u32) -> PathId {
        let first = self.control_path(None);
        let stays = |id: &PathId| !self.addresses.is_retired_end(self.paths[*id].address.local_end());
        let staying: ArrayVec<PathId, MAX_PATHS> = self.paths.live().filter(stays).collect();
        let chosen = if stays(&first) {
            Some(self.path_for_attempt(first, n)).filter(stays)
        } else {
            staying.get(n as usize % staying.len().max(1)).copied()
        };
        chosen.unwrap_or(first)
    }

    /// Returns `true` if a path is still the one that began at this address.
    fn begins_at(&self, path: PathId, local: IpAddr) -> bool {
        self.paths.get_live(path).is_some_and(|p| p.address.local == local)
    }

    /// Handles an ASCONF-ACK: settles the requests of its ASCONF.
    pub(crate) fn handle_asconf_ack(&mut self, ack: &AsconfAckView<'_>) -> Result<(), Discard> {
        let Some(asconf) = self.addresses.asconf_mut() else { return Err(Discard::Unexpected) };
        // RFC 5061 section 5.3 F0.
        if ack.serial().wrapping_sub(asconf.next_serial) as i32 >= 0 {
            self.refuse_asconf_ack();
            return Ok(());
        }
        let sent = asconf.sent.take_if(|sent| sent.serial == ack.serial()).ok_or(Discard::Unexpected)?;
        self.control.retain(|control| !matches!(control, Control::Asconf { .. }));
        self.reachability.note_answer();
        let mut failed = false;
        for (correlation, request) in sent.requests {
            let outcome = outcome_of(ack, correlation, failed);
            failed |= outcome.is_err();
            self.settle_request(request, outcome);
        }
        self.advance_asconf();
        Ok(())
    }

    fn refuse_asconf_ack(&mut self) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push(Control::AbortIllegalAsconfAck { path });
        self.abort_with(AbortReason::Protocol("ASCONF-ACK for an ASCONF that was never sent"));
    }

    fn settle_request(&mut self, request: Request, outcome: Result<(), Option<CauseCode>>) {
        // RFC 5061 section 5.3 F3: a request that the peer does not understand is not repeated.
        if outcome == Err(Some(CauseCode::UNRECOGNIZED_PARAMETERS))
            && let Some(asconf) = self.addresses.asconf_mut()
        {
            asconf.refused |= !matches!(request, Request::SetPrimary { .. });
        }
        match (request.added_path(), outcome) {
            (Some((path, local)), Ok(())) if self.begins_at(path, local) => {
                self.reset_unanswered_path(path);
                self.verify_path(path);
            }
            // RFC 5061 section 5.3 F10: a path whose address the peer refuses is removed. The last one stays.
            (Some((path, local)), Err(_)) if self.begins_at(path, local) => {
                let _ = self.retire_path(path);
            }
            _ => {}
        }
        if let (Request::Delete { local }, Err(Some(CauseCode::UNRESOLVABLE_ADDRESS))) = (request, outcome) {
            self.delete_by_others(local);
        }
    }

    /// Resets the RTO and errors of a path without answers: the wait for the ASCONF-ACK is no evidence about the path.
    fn reset_unanswered_path(&mut self, path: PathId) {
        if self.paths.facts(path).rtt.smoothed.is_none() {
            self.paths.reset_rto(path);
            self.paths.clear_errors(path);
        }
    }

    /// Deletes an address that the peer knows under another value, as behind a NAT. If only one address is left, all others can be
    /// deleted without naming them.
    fn delete_by_others(&mut self, local: IpAddr) {
        let mut left = self.paths.live().map(|id| self.paths[id].address.local);
        let Some(first) = left.next() else { return };
        let only = left.all(|other| other == first);
        drop(left);
        let retired = self.addresses.is_retired(local);
        if only && retired {
            self.ask(Request::DeleteOthers { family: first });
        }
    }

    /// Handles the peer's report that it does not know ASCONF (RFC 5061 section 5.1 A9).
    pub(crate) fn asconf_is_unknown_to_peer(&mut self) {
        let Some(asconf) = self.addresses.asconf_mut() else { return };
        asconf.refused = true;
        let waiting = std::mem::take(&mut asconf.queue);
        let sent = asconf.sent.take().map(|sent| sent.requests).unwrap_or_default();
        for request in sent.into_iter().map(|(_, request)| request).chain(waiting) {
            if let Some((path, local)) = request.added_path()
                && self.begins_at(path, local)
            {
                self.verify_path(path);
            }
        }
    }
}

/// Returns the result of a request: its answer in the ASCONF-ACK, or what earlier answers imply (RFC 5061 section 5.1 A7, A8).
fn outcome_of(
    ack: &AsconfAckView<'_>,
    correlation: u32,
    failed_before: bool,
) -> Result<(), Option<CauseCode>> {
    let said = ack.params().flatten().find_map(|param| match param {
        Param::Success { correlation: id } if id == correlation => Some(Ok(())),
        Param::ErrorCause { correlation: id, causes } if id == correlation => {
            let cause = RawCauses::parse(causes).next().and_then(Result::ok);
            Some(Err(cause.map(|raw| raw.code())))
        }
        _ => None,
    });
    said.unwrap_or(if failed_before { Err(None) } else { Ok(()) })
}
