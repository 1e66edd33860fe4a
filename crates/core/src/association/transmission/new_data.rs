//! New data, packet by packet, on the paths that the scheduler chooses.

use anabranch_wire::PacketWriter;

use crate::association::MAX_OUTSTANDING_CHUNKS;
use crate::association::packets::PacketContext;
use crate::association::transmission::bound::{BoundChunks, waits_for};
use crate::association::transmission::{Outlet, PendingCopies, Source, Transmission};
use crate::data_header::DataHeader;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathSet};
use crate::policy::{Decision, Pick, SendAsk, SendKind, WaitFor};
use crate::send::Admitted;
use crate::trace::DecisionRecord;
use crate::units::ChunkBytes;

/// Choice of the scheduler for the next chunk, after the checks of core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Now(PathId),
    /// New data on the first path, and copies on the others.
    Copies(PathId, PathSet),
    Queue(PathId),
}

/// New data of the queue.
pub(super) struct NewData;

impl Source for NewData {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        if !t.new_data {
            return None;
        }
        while let Some(ask) = out.next_ask() {
            out.d.promote_if_none_active();
            match t.pick(out, &ask)? {
                Place::Now(path) => return t.new_packet(out, path, ask, buf),
                Place::Copies(path, others) => {
                    let first = out.d.sender.outstanding().next_tsn();
                    let sent = t.new_packet(out, path, ask, buf);
                    t.copies =
                        Some(PendingCopies { first, after: out.d.sender.outstanding().next_tsn(), others });
                    return sent;
                }
                Place::Queue(path) => {
                    out.bind_next(path);
                    if out.has_room(path) {
                        return BoundChunks.next(t, out, buf);
                    }
                }
            }
        }
        None
    }
}

impl Transmission {
    fn pick(&mut self, out: &mut Outlet<'_>, ask: &SendAsk) -> Option<Place> {
        let decision = out.ask_scheduler(ask);
        let place = self.guard_pick(out, ask, &decision);
        let decided = match place {
            None => DecisionRecord::Wait(waits_for(decision.choice)),
            Some(Place::Now(path)) => DecisionRecord::Schedule(path),
            Some(Place::Queue(path)) => DecisionRecord::Bind(path),
            Some(Place::Copies(path, mut paths)) => {
                paths.insert(path);
                DecisionRecord::Copies(paths)
            }
        };
        let tsn = out.d.sender.outstanding().next_tsn();
        out.d.record(decided, tsn, decision.reason, &decision.refused);
        place
    }

    /// Checks the scheduler's choice: no full, failed or burst-limited path, and no wait that no event would end.
    fn guard_pick(
        &mut self,
        out: &mut Outlet<'_>,
        ask: &SendAsk,
        decision: &Decision<Pick>,
    ) -> Option<Place> {
        let place = match decision.choice {
            Pick::Path(path) => out.is_eligible(path).then_some(Place::Now(path)),
            Pick::Copies(paths) => {
                let mut usable: PathSet = paths.iter().filter(|&path| out.is_eligible(path)).collect();
                usable.first().map(|path| {
                    usable.remove(path);
                    Place::Copies(path, usable)
                })
            }
            // A probe of a closed window is sent at once.
            Pick::Bind(path) if ask.window_probe => out.is_eligible(path).then_some(Place::Now(path)),
            Pick::Bind(path) => {
                let admitted = out.d.paths.is_in_service(path) && out.d.paths.facts(path).within_share;
                admitted.then_some(Place::Queue(path))
            }
            Pick::Wait(WaitFor::Until(at)) if self.resume_at(at, out.d.now) => return None,
            Pick::Wait(_) if !out.d.sender.is_idle() || self.pacing_ends_the_wait(&out.d) => return None,
            Pick::Wait(_) => None,
        };
        if place.is_some() {
            return place;
        }
        out.d.outputs.statistics.overruled_picks += 1;
        // Without a chunk in flight, no event would end the wait.
        let any_path_with_room =
            out.d.sender.is_idle().then(|| out.d.paths.live().find(|&id| out.is_eligible(id)));
        any_path_with_room.flatten().map(Place::Now)
    }

    /// Fills one packet for `path` with new chunks.
    fn new_packet(
        &mut self,
        out: &mut Outlet<'_>,
        path: PathId,
        ask: SendAsk,
        buf: &mut PacketBuffer,
    ) -> Option<PathId> {
        let size = out.packet_room(path);
        let chunks = out.write_packet(size, buf, |this, writer| this.fill_with_new(path, ask, writer));
        if chunks == 0 {
            return None;
        }
        self.new_packet_left(out, path);
        Some(path)
    }
}

impl Outlet<'_> {
    /// Returns the question to the scheduler; `None` if no new data may be sent.
    //= docs/rfc9260.txt#section-6.1
    //# The following general rules MUST be applied by the data sender for transmission and/or retransmission of outbound
    //# DATA chunks:
    pub(super) fn next_ask(&self) -> Option<SendAsk> {
        let payload = self.d.sender.queue().next_payload(self.payload_bytes_per_chunk())?;
        //= docs/rfc9260.txt#section-6.1
        //# C)  When the time comes for the sender to transmit, before sending new DATA chunks, the sender MUST first
        //# transmit any DATA chunks that are marked for retransmission (limited by the current cwnd).
        if self.d.sender.outstanding().len() >= MAX_OUTSTANDING_CHUNKS
            || (self.d.paths.profile().retransmissions_block_new_data && !self.d.sender.lost().is_empty())
        {
            return None;
        }
        //= docs/rfc9260.txt#section-6.1
        //# A)  At any given time, the data sender MUST NOT transmit new data to any destination transport address if its
        //# peer's rwnd indicates that the peer has no buffer space (i.e., rwnd is smaller than the size of the next DATA
        //# chunk; see Section 6.2.1), except for zero window probes.
        let window_probe = self.d.sender.exceeds_window(payload);
        // RFC 9260 section 6.1 A: one chunk may probe a closed window, but only if no chunk is outstanding.
        //= docs/rfc9260.txt#section-6.1
        //# A zero window probe SHOULD only be sent when all outstanding DATA chunks have been cumulatively acknowledged
        //# and no DATA chunks are in flight.
        if window_probe && !self.d.sender.is_idle() {
            return None;
        }
        let bytes = self.d.sender.queue().form().chunk_len(payload);
        let duplicate = self.d.sender.queue().next_is_duplicated();
        Some(SendAsk { chunk: ChunkBytes::new(bytes as u64), window_probe, duplicate })
    }

    pub(super) fn ask_scheduler(&mut self, ask: &SendAsk) -> Decision<Pick> {
        self.d.sender.refresh_facts();
        self.d.policies.pick(ask, self.d.now, self.d.paths, self.d.sender)
    }

    //= docs/rfc9260.txt#section-6.1
    //# A zero window probe MUST only be sent when the cwnd allows (see rule B below).
    //= docs/rfc9260.txt#section-6.1
    //# When the window is full (i.e., transmission is disallowed by rule A and/or rule B), the sender MAY still accept
    //# send requests from its upper layer but MUST transmit no more DATA chunks until some or all of the outstanding DATA
    //# chunks are acknowledged and transmission is allowed by rule A and rule B again.
    fn is_eligible(&self, path: PathId) -> bool {
        self.has_room(path) && self.d.paths.facts(path).within_share
    }

    /// Fills a packet with new chunks, and returns their number.
    fn fill_with_new(&mut self, path: PathId, ask: SendAsk, writer: &mut PacketWriter<'_>) -> u32 {
        let most = self.payload_bytes_per_chunk();
        let form = self.d.sender.queue().form();
        let first = form.chunk_len(self.d.sender.queue().next_payload(most).unwrap_or(0));
        //= docs/rfc9260.txt#section-6
        //# Control chunks MUST come before DATA chunks in the packet.
        //= docs/rfc9260.txt#section-6.10
        //# When bundling control chunks with DATA chunks, an endpoint MUST place control chunks first in the outbound
        //# SCTP packet.
        self.bundle_control(path, first, writer);
        let mut chunks = 0;
        while self.next_fits(most, writer.remaining(), ask, chunks) {
            let Some(mut draft) = self.d.sender.cut(most) else { break };
            draft.immediate |= self.asks_for_sack(&draft, path) || self.sets_immediate_bit(ask.window_probe);
            let header = DataHeader::new(self.d.sender.outstanding().next_tsn(), &draft);
            if self.identity.contents.write(writer, &header, &draft.payload).is_err() {
                debug_assert!(false, "next_fits promised room");
                break;
            }
            let kind = if ask.window_probe { SendKind::WindowProbe } else { SendKind::New };
            let Admitted { tsn, .. } = self.d.sender.admit(draft, path);
            self.first_transmission(tsn, kind);
            if kind == SendKind::WindowProbe {
                //= docs/rfc9260.txt#section-6.1
                //# Senders MUST support zero window probing.
                self.d.sender.begin_window_probe(tsn);
                self.d.outputs.statistics.window_probes += 1;
            }
            chunks += 1;
        }
        self.d.sender.end_packet();
        chunks
    }

    //= docs/rfc9260.txt#section-6.1
    //# The sender MUST also have an algorithm for sending new DATA chunks to avoid silly window syndrome (SWS) as
    //# described in [RFC1122].
    fn next_fits(&self, most: usize, remaining: usize, ask: SendAsk, chunks: u32) -> bool {
        let Some(payload) = self.d.sender.queue().next_payload(most) else { return false };
        let window = if ask.window_probe { chunks == 0 } else { !self.d.sender.exceeds_window(payload) };
        window
            && self.d.sender.queue().form().chunk_len(payload) <= remaining
            && (chunks == 0 || self.d.sender.queue().shares_packet())
            && self.d.sender.queue().next_is_duplicated() == ask.duplicate
            && self.d.sender.outstanding().len() < MAX_OUTSTANDING_CHUNKS
    }
}
