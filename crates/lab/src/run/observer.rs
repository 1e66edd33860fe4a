//! Counts of packets, from the knowledge of both ends together.

use std::collections::VecDeque;

use anabranch_core::time::{Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{PacketEvent, PacketView, Place, Tap};
use anabranch_wire::{DataView, PacketView as SctpPacket, StreamId, Tsn};

use crate::run::address::place_of;
use crate::run::beside::Arrivals;
use crate::run::capture::Capture;
use crate::run::recorder::{ChunkRecord, PacketRecorder};

/// Counts of one path in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathCount {
    /// Packets with DATA that arrived.
    pub(crate) arrived_packets: u64,
    /// Wire bytes of the packets with DATA that arrived.
    pub(crate) arrived_bytes: u64,
    /// Packets with DATA that were sent.
    pub(crate) sent_packets: u64,
    /// Packets with DATA that links dropped.
    pub(crate) drops: u64,
}

/// Times of packets with DATA over one path in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayCount {
    /// Packets on their way in the order of transmission: the first TSN of each, and its time.
    under_way: VecDeque<(Tsn, Time)>,
    /// Sum of the times of packets that arrived.
    pub(crate) sum: Span,
    pub(crate) packets: u64,
}

impl DelayCount {
    fn count(&mut self, now: Time, event: PacketEvent, tsn: Tsn) {
        if event == PacketEvent::Sent {
            self.under_way.push_back((tsn, now));
            return;
        }
        // Links rarely reorder, so the packet is usually at the front.
        let Some(at) = self.under_way.iter().position(|(sent, _)| *sent == tsn) else { return };
        let Some((_, sent_at)) = self.under_way.remove(at) else { return };
        if event == PacketEvent::Delivered {
            self.sum += now.since(sent_at);
            self.packets += 1;
        }
    }
}

/// Set of observed TSNs, with one bit each, from the first TSN on.
#[derive(Clone, Debug, Default)]
struct TsnSet {
    first: Option<u64>,
    last: u64,
    words: Vec<u64>,
}

impl TsnSet {
    fn unwrap(&mut self, tsn: Tsn) -> u64 {
        let reference = if self.first.is_some() { self.last } else { 1 << 32 };
        let unwrapped = tsn.unwrap_near(reference);
        self.last = unwrapped;
        unwrapped
    }

    /// Adds a TSN. Returns `false` if it was present.
    fn insert(&mut self, tsn: Tsn) -> bool {
        let unwrapped = self.unwrap(tsn);
        // Packets of the first window may overtake each other.
        let first = *self.first.get_or_insert(unwrapped.saturating_sub(4096));
        let Some(at) = unwrapped.checked_sub(first).and_then(|at| usize::try_from(at).ok()) else {
            return false;
        };
        if at / 64 >= self.words.len() {
            self.words.resize(at / 64 + 64, 0);
        }
        let bit = 1 << (at % 64);
        let new = self.words[at / 64] & bit == 0;
        self.words[at / 64] |= bit;
        new
    }

    fn contains(&mut self, tsn: Tsn) -> bool {
        let Some(first) = self.first else { return false };
        let at = tsn.unwrap_near(self.last).wrapping_sub(first) as usize;
        self.words.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }
}

/// Counts of one flow in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectionCount {
    pub(crate) paths: Vec<PathCount>,
    /// Delays by path, if they are measured.
    pub(crate) delays: Vec<DelayCount>,
    /// First transmission of messages beside the bulk, with their stream.
    pub(crate) beside: Option<(StreamId, Arrivals)>,
    sent: TsnSet,
    arrived: TsnSet,
    /// Chunk bytes of unique TSNs that arrived after the warm-up.
    pub(crate) unique_chunk_bytes: u64,
    /// Retransmitted TSNs, every transmission counted.
    pub(crate) retransmissions: u64,
    /// Retransmissions sent after an earlier copy had arrived.
    pub(crate) spurious: u64,
}

/// Observer that counts packets and passes them to a capture and a trace.
pub(crate) struct Observer {
    /// Counts by flow, forward and reverse.
    pub(crate) flows: Vec<[DirectionCount; 2]>,
    pub(crate) counted_from: Time,
    pub(crate) capture: Option<Capture>,
    pub(crate) packets: Option<PacketRecorder>,
}

impl DirectionCount {
    pub(crate) fn new(paths: usize) -> Self {
        DirectionCount { paths: vec![PathCount::default(); paths], ..DirectionCount::default() }
    }

    /// Counts a DATA chunk, and returns its length. `counted` is set after the warm-up.
    fn chunk(&mut self, now: Time, event: PacketEvent, data: &DataView<'_>, counted: bool) -> u64 {
        let tsn = data.tsn();
        if let Some((stream, left)) = &mut self.beside
            && event == PacketEvent::Sent
            && data.stream() == *stream
        {
            left.see(now, data.payload());
        }
        let bytes = 16 + data.payload().len() as u64;
        match event {
            PacketEvent::Sent if !self.sent.insert(tsn) => {
                self.retransmissions += 1;
                self.spurious += u64::from(self.arrived.contains(tsn));
            }
            PacketEvent::Delivered => {
                let new = self.arrived.insert(tsn);
                if new && counted {
                    self.unique_chunk_bytes += bytes;
                }
            }
            _ => {}
        }
        bytes
    }

    /// Counts a packet with DATA on a path by its first TSN.
    fn packet(&mut self, now: Time, event: PacketEvent, path: usize, wire: WireBytes, tsn: Tsn) {
        if let Some(delays) = self.delays.get_mut(path) {
            delays.count(now, event, tsn);
        }
        if let Some(count) = self.paths.get_mut(path) {
            match event {
                PacketEvent::Sent => count.sent_packets += 1,
                PacketEvent::Delivered => {
                    count.arrived_packets += 1;
                    count.arrived_bytes += wire.get();
                }
                _ => count.drops += 1,
            }
        }
    }
}

impl Observer {
    fn count(&mut self, now: Time, event: PacketEvent, packet: &PacketView<'_>) {
        let Some(datagram) = packet.datagram else { return };
        let Some((flow, path, side)) = place_of(datagram.source) else { return };
        let Some(count) = self.flows.get_mut(flow).map(|f| &mut f[side]) else { return };
        let counted = now >= self.counted_from;
        let packets = &mut self.packets;
        let mut chunk = |count: &mut DirectionCount, data: &DataView<'_>| {
            let bytes = count.chunk(now, event, data, counted);
            if let Some(recorder) = packets {
                recorder.packet(now, ChunkRecord { flow, path, side, event, tsn: data.tsn(), bytes });
            }
        };
        if let Some(data) = packet.data {
            chunk(count, &data.view());
            return count.packet(now, event, path, packet.wire, data.data.tsn);
        }
        let Ok(sctp) = SctpPacket::parse(datagram.payload) else { return };
        let mut first_data = None;
        for data in sctp.chunks().map_while(Result::ok).filter_map(|chunk| chunk.data()) {
            first_data.get_or_insert(data.tsn());
            chunk(count, &data);
        }
        if let Some(tsn) = first_data {
            count.packet(now, event, path, packet.wire, tsn);
        }
    }
}

impl Tap for Observer {
    /// Copies counts; files are not copied.
    fn copied(&self) -> Option<Box<dyn Tap>> {
        let Observer { flows, counted_from, capture: None, packets: None } = self else { return None };
        let (flows, counted_from) = (flows.clone(), *counted_from);
        Some(Box::new(Observer { flows, counted_from, capture: None, packets: None }))
    }

    fn packet(&mut self, now: Time, place: Place<'_>, event: PacketEvent, packet: PacketView<'_>) {
        // Transmissions and deliveries of a link are not counted, because those of the hosts are.
        let at_host = matches!(place, Place::Host(_));
        let dropped = !matches!(event, PacketEvent::Sent | PacketEvent::Delivered);
        if at_host || dropped {
            self.count(now, event, &packet);
        }
        if let Some(capture) = &mut self.capture {
            capture.tap().packet(now, place, event, packet);
        }
    }

    fn follows_links(&self) -> bool {
        self.capture.is_some()
    }

    fn reads_bytes(&self) -> bool {
        self.capture.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_that_of_the_packet_that_arrived() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut delays = DelayCount::default();
        // One packet that is lost, and one that is retransmitted while its first copy is in flight.
        for (ms, event, tsn) in [
            (0, PacketEvent::Sent, 1),
            (1, PacketEvent::Sent, 2),
            (5, PacketEvent::DroppedQueue, 1),
            (20, PacketEvent::Sent, 2),
            (31, PacketEvent::Delivered, 2),
            (40, PacketEvent::Delivered, 2),
        ] {
            delays.count(at(ms), event, Tsn::new(tsn));
        }
        assert_eq!((delays.sum, delays.packets), (Span::from_millis(30 + 20), 2));
        assert!(delays.under_way.is_empty());
    }

    #[test]
    fn tsn_counts_once_in_any_order_of_arrival() {
        let mut set = TsnSet::default();
        let fresh: Vec<bool> = [5, 4, 5, 2, u32::MAX, 4].map(|t| set.insert(Tsn::new(t))).to_vec();
        assert_eq!(fresh, [true, true, false, true, true, false]);
        assert!(set.contains(Tsn::new(u32::MAX)) && !set.contains(Tsn::new(3)));
    }
}
