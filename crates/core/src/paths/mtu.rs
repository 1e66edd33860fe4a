//! Packet size of a path, and probes of larger sizes (RFC 8899 section 6.2: HEARTBEAT with PAD).

use crate::path_id::PathId;
use crate::paths::mtu_search::{LEAST_WAIT, MtuSearch, Next, RAISE_AFTER, Sizes};
use crate::paths::path::PendingHeartbeat;
use crate::paths::{COMMON_HEADER_BYTES, Paths, largest_chunk};
use crate::time::{Span, Time};
use crate::units::ChunkBytes;

/// Next step of a search for the packet size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MtuStep {
    /// A probe of this many bytes is sent.
    Probe(usize),
    /// No probe is sent now.
    Rest,
}

impl Paths {
    /// Returns the user bytes that fit one chunk with this header on every path if each packet needs room for `reserved_bytes` beside
    /// it. If the path MTU is searched for, only paths in service count, because a path without answers would limit all others to the base
    /// size.
    //= docs/rfc9260.txt#section-6
    //# The size of each DATA chunk SHOULD be smaller than or equal to the Association Maximum DATA Chunk Size (AMDCS).
    //= docs/rfc9260.txt#section-6.9
    //# If its peer is multi-homed, the endpoint SHOULD choose a DATA chunk size smaller than or equal to the AMDCS.
    //= docs/rfc9260.txt#section-6.9
    //# The sender SHOULD choose a size of DATA chunks that is smaller than or equal to the AMDCS.
    //= docs/rfc9260.txt#section-7.3
    //# 2)  The sender SHOULD track an AMDCS that will be the smallest PMDCS discovered for all of the peer's destination
    //# addresses.
    //= docs/rfc9260.txt#section-7.3
    //# When fragmenting messages into multiple parts, this AMDCS SHOULD be used to calculate the size of each DATA chunk.
    #[inline]
    pub(crate) fn payload_bytes(&self, reserved_bytes: usize, chunk_header_bytes: usize) -> usize {
        //= docs/rfc9260.txt#section-6.9
        //# When determining when to fragment, the SCTP implementation MUST take into account the SCTP packet header as
        //# well as the DATA chunk header(s).
        (self.smallest_packet_bytes - COMMON_HEADER_BYTES - reserved_bytes) / 4 * 4 - chunk_header_bytes
    }

    /// Updates the size that every path carries after a change of paths, sizes or states. It is stored because each packet reads it
    /// several times.
    pub(super) fn find_smallest_packet(&mut self) {
        let searches = self.options.searches_mtu;
        let in_service = self.live().filter(|&id| searches && self.facts(id).is_active());
        let smallest = in_service.map(|id| self[id].packet_bytes).min();
        let smallest = smallest.or_else(|| self.live().map(|id| self[id].packet_bytes).min());
        self.smallest_packet_bytes = smallest.unwrap_or(self.options.default_packet_bytes);
    }

    /// Limits the search of a path to other sizes. Returns `true` if the packet size has changed.
    pub(crate) fn bound_mtu(&mut self, id: PathId, sizes: Sizes, now: Time) -> bool {
        let path = &mut self.paths[id.index()];
        let Some(search) = &mut path.mtu else { return false };
        let (before, wanted) = (search.confirmed(), search.next());
        search.bound(sizes);
        let (confirmed, next) = (search.confirmed(), search.next());
        if next != wanted {
            path.pending_mtu_probe = None;
            // A path that has no timer is not in service yet.
            path.timers.mtu = path.timers.mtu.map(|at| if next == Next::Rest { at } else { now });
        }
        if confirmed != before {
            self.adopt_packet_size(id);
        }
        confirmed != before
    }

    /// Starts the search of a path after a wait, unless it has started.
    pub(crate) fn begin_mtu_search(&mut self, id: PathId, wait: Span, now: Time) {
        let path = &mut self.paths[id.index()];
        if path.mtu.is_some() && path.timers.mtu.is_none() {
            path.timers.mtu = Some(now + wait);
        }
    }

    /// Handles the end of the wait for a probe, or the time of the next one. The loss of a probe on a path that is not active
    /// implies nothing about sizes. Returns `true` if the path is to be probed.
    pub(crate) fn mtu_timer_expired(&mut self, id: PathId) -> bool {
        let active = self.facts[id.index()].is_active();
        let path = &mut self.paths[id.index()];
        let Some(search) = &mut path.mtu else { return false };
        match path.pending_mtu_probe.take() {
            Some(_) if active => search.unanswered(),
            None if search.next() == Next::Rest => search.begin(),
            _ => {}
        }
        active
    }

    /// Starts the next step of a search, and returns it.
    pub(crate) fn begin_mtu_probe(&mut self, id: PathId, nonce: u64, now: Time) -> MtuStep {
        let wait = self.facts[id.index()].rto.max(LEAST_WAIT);
        let path = &mut self.paths[id.index()];
        match path.mtu.map(|search| search.next()) {
            None => MtuStep::Rest,
            Some(Next::Rest) => {
                path.timers.mtu = Some(now + RAISE_AFTER);
                MtuStep::Rest
            }
            Some(Next::Probe(bytes)) => {
                path.timers.mtu = Some(now + wait);
                path.pending_mtu_probe = Some((PendingHeartbeat { nonce, sent_at: now, cost: None }, bytes));
                MtuStep::Probe(bytes)
            }
        }
    }

    /// Clears the probe that waits for its answer. Returns `true` if there was one.
    pub(crate) fn forget_mtu_probe(&mut self, id: PathId) -> bool {
        self.paths[id.index()].pending_mtu_probe.take().is_some()
    }

    /// Adopts the size of the probe that this nonce answers. Returns `true` if there was one.
    pub(crate) fn answer_mtu_probe(&mut self, id: PathId, nonce: u64) -> bool {
        let Some(path) = self.paths.get_mut(id.index()) else { return false };
        let Some((_, bytes)) = path.pending_mtu_probe.take_if(|(pending, _)| pending.nonce == nonce) else {
            return false;
        };
        if let Some(search) = &mut path.mtu {
            search.answered(bytes);
        }
        self.adopt_packet_size(id);
        true
    }

    /// Ends the probe of this size that the operating system refused to send. Returns `true` if there was one.
    pub(crate) fn refuse_mtu_probe(&mut self, id: PathId, bytes: usize) -> bool {
        let path = &mut self.paths[id.index()];
        if path.pending_mtu_probe.take_if(|(_, pending)| *pending == bytes).is_none() {
            return false;
        }
        if let Some(search) = &mut path.mtu {
            search.refused(bytes);
        }
        true
    }

    fn adopt_packet_size(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        let Some(search) = path.mtu else { return };
        path.packet_bytes = search.confirmed();
        self.facts[id.index()].largest_chunk = largest_chunk(path.packet_bytes);
        self.find_smallest_packet();
    }

    /// Counts an expiry of T3. If the path no longer carries large packets, its packets shrink to the base size, and below that to
    /// the least size (RFC 8899 section 4.3). Returns `true` if they do.
    pub(crate) fn suspect_black_hole(&mut self, id: PathId, now: Time) -> bool {
        let path = &mut self.paths[id.index()];
        if !path.mtu.as_mut().is_some_and(MtuSearch::expired) {
            return false;
        }
        path.pending_mtu_probe = None;
        // The largest size was right before, so this may be an outage: the size is probed again soon, but not at once.
        path.timers.mtu = Some(now + LEAST_WAIT);
        self.adopt_packet_size(id);
        true
    }

    /// Records that a chunk has arrived in a packet of at least its size.
    pub(crate) fn note_delivered_size(&mut self, id: PathId, bytes: ChunkBytes) {
        if let Some(search) = &mut self.paths[id.index()].mtu {
            search.delivered(COMMON_HEADER_BYTES + bytes.get() as usize);
        }
    }
}
