//! Order of the packets of each flow at the receiver.
//!
//! Packets of a flow arrive over paths with different delays. The receiver holds a packet until all earlier packets of its flow have
//! arrived, or until they would have arrived with the longest recent delay. The wait is at most [`MAX_HOLD`].

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::delays::Delays;
use crate::message::Packet;

/// Maximum time for which a packet waits for earlier packets of its flow.
pub const MAX_HOLD: Duration = Duration::from_millis(200);
/// Maximum number of bytes that wait, in all flows of an association.
const MAX_HELD_BYTES: usize = 8 << 20;
/// Bytes that a waiting packet counts for in addition to its own.
const HELD_OVERHEAD: usize = 128;

/// Packets of an association that wait for earlier ones.
#[derive(Debug)]
pub struct Reorder {
    flows: BTreeMap<u16, Flow>,
    /// End of the wait of each flow with waiting packets.
    deadlines: BTreeSet<(Instant, u16)>,
    held_bytes: usize,
    delays: Delays,
    late: u64,
    expired: u64,
}

#[derive(Debug, Default)]
struct Flow {
    /// Number of the next packet to deliver.
    next: u64,
    held: BTreeMap<u64, Held>,
    deadline: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    payload: Bytes,
    until: Instant,
}

impl Reorder {
    /// Returns the state of a new association. `now` is the origin of its clock.
    pub fn new(now: Instant) -> Self {
        Reorder {
            flows: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            held_bytes: 0,
            delays: Delays::new(now),
            late: 0,
            expired: 0,
        }
    }

    /// Number of packets that arrived after their successors were delivered.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Number of waits that ended without the missing packet.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Returns the time of the next call of [`expire`](Self::expire).
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Accepts a packet, and passes the packets to `deliver` that are next in its flow.
    pub fn push(&mut self, now: Instant, packet: Packet, mut deliver: impl FnMut(Bytes)) {
        let hold = self.delays.remaining(now, packet.sent_us).min(MAX_HOLD);
        let flow = self.flows.entry(packet.flow).or_default();
        // The distance to the expected number is below 2^31 (RFC 1982).
        let ahead = packet.sequence.wrapping_sub(flow.next as u32) as i32;
        if ahead < 0 {
            // A packet that is too late is useful to its receiver all the same: both TCP and UDP programs sort packets.
            self.late += 1;
            return deliver(packet.payload);
        }
        let number = flow.next + u64::from(ahead as u32);
        if let Entry::Vacant(place) = flow.held.entry(number) {
            self.held_bytes += packet.payload.len() + HELD_OVERHEAD;
            place.insert(Held { payload: packet.payload, until: now + hold });
        }
        self.held_bytes -= flow.release(&mut deliver);
        self.schedule(packet.flow);
        while self.held_bytes > MAX_HELD_BYTES && self.skip(&mut deliver) {}
        // A receiver that is never idle calls this only.
        self.expire(now, deliver);
    }

    /// Delivers the packets whose wait has ended.
    pub fn expire(&mut self, now: Instant, mut deliver: impl FnMut(Bytes)) {
        while self.deadline().is_some_and(|deadline| deadline <= now) && self.skip(&mut deliver) {}
    }

    /// Ends the wait of the flow with the earliest deadline. Returns `false` if no flow waits.
    fn skip(&mut self, deliver: &mut impl FnMut(Bytes)) -> bool {
        let Some((_, number)) = self.deadlines.first().copied() else { return false };
        if let Some(flow) = self.flows.get_mut(&number) {
            if let Some(first) = flow.held.keys().next() {
                flow.next = *first;
            }
            self.expired += 1;
            self.held_bytes -= flow.release(deliver);
        }
        self.schedule(number);
        true
    }

    fn schedule(&mut self, number: u16) {
        let Some(flow) = self.flows.get_mut(&number) else { return };
        let deadline = flow.held.values().next().map(|held| held.until);
        if deadline == flow.deadline {
            return;
        }
        if let Some(old) = std::mem::replace(&mut flow.deadline, deadline) {
            self.deadlines.remove(&(old, number));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, number));
        }
    }
}

impl Flow {
    /// Delivers the packets that are next, and returns the bytes that they counted for.
    fn release(&mut self, deliver: &mut impl FnMut(Bytes)) -> usize {
        let mut released = 0;
        while let Some(entry) = self.held.first_entry()
            && *entry.key() == self.next
        {
            let held = entry.remove();
            released += held.payload.len() + HELD_OVERHEAD;
            self.next += 1;
            deliver(held.payload);
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Packet number `sequence` of a flow, whose content is its number.
    fn packet(flow: u16, sequence: u32, sent: Duration) -> Packet {
        let payload = Bytes::copy_from_slice(&sequence.to_be_bytes());
        Packet { flow, sequence, sent_us: sent.as_micros() as u32, payload }
    }

    struct Bench {
        start: Instant,
        reorder: Reorder,
        delivered: Vec<u32>,
    }

    impl Bench {
        fn new() -> Self {
            let start = Instant::now();
            Bench { start, reorder: Reorder::new(start), delivered: Vec::new() }
        }

        fn push(&mut self, now: u64, packet: Packet) {
            let delivered = &mut self.delivered;
            self.reorder.push(self.start + ms(now), packet, |payload| delivered.push(number(&payload)));
        }

        fn expire(&mut self, now: u64) {
            let delivered = &mut self.delivered;
            self.reorder.expire(self.start + ms(now), |payload| delivered.push(number(&payload)));
        }
    }

    fn number(payload: &Bytes) -> u32 {
        payload[..4].try_into().map(u32::from_be_bytes).expect("a number")
    }

    #[test]
    fn packets_over_a_slower_path_are_delivered_in_order() {
        let mut bench = Bench::new();
        bench.push(10, packet(1, 0, ms(0)));
        bench.push(50, packet(1, 1, ms(0)));
        bench.push(60, packet(1, 3, ms(50)));
        assert_eq!(bench.delivered, [0, 1]);
        bench.push(90, packet(1, 2, ms(40)));
        assert_eq!(bench.delivered, [0, 1, 2, 3]);
        assert_eq!((bench.reorder.late(), bench.reorder.held_bytes), (0, 0));
    }

    #[test]
    fn missing_packet_costs_the_longest_recent_delay_and_no_more() {
        let mut bench = Bench::new();
        // The delays are 10 and 50 ms.
        bench.push(10, packet(1, 0, ms(0)));
        bench.push(50, packet(1, 1, ms(0)));
        bench.push(110, packet(1, 3, ms(100)));
        let deadline = bench.reorder.deadline().expect("a deadline") - bench.start;
        assert!(deadline > ms(149) && deadline < ms(160), "{deadline:?}");
        bench.expire(149);
        assert_eq!(bench.delivered, [0, 1]);
        bench.expire(160);
        assert_eq!(bench.delivered, [0, 1, 3]);
        bench.push(170, packet(1, 2, ms(99)));
        assert_eq!(bench.delivered, [0, 1, 3, 2], "a late packet is delivered at once");
        assert_eq!((bench.reorder.late(), bench.reorder.expired()), (1, 1));
    }

    #[test]
    fn wait_is_bounded_for_any_delay() {
        let mut bench = Bench::new();
        bench.push(0, packet(1, 0, ms(0)));
        bench.push(100_000, packet(1, 1, ms(0)));
        bench.push(100_000, packet(1, 3, ms(100_000)));
        assert_eq!(bench.reorder.deadline(), Some(bench.start + ms(100_000) + MAX_HOLD));
    }

    #[test]
    fn wait_ends_in_time_while_packets_of_other_flows_arrive() {
        let mut bench = Bench::new();
        bench.push(0, packet(1, 1, ms(0)));
        let deadline = bench.reorder.deadline().expect("it waits") - bench.start;
        bench.push(deadline.as_millis() as u64 + 1, packet(2, 0, deadline));
        assert_eq!(bench.delivered, [0, 1]);
    }

    #[test]
    fn gap_of_one_flow_delays_no_other_flow() {
        let mut bench = Bench::new();
        bench.push(10, packet(1, 1, ms(0)));
        bench.push(10, packet(2, 0, ms(0)));
        assert_eq!(bench.delivered, [0]);
    }

    #[test]
    fn numbers_wrap_around() {
        let mut bench = Bench::new();
        bench.reorder.flows.insert(1, Flow { next: u64::from(u32::MAX), ..Flow::default() });
        bench.push(10, packet(1, 0, ms(0)));
        bench.push(10, packet(1, u32::MAX, ms(0)));
        bench.push(10, packet(1, 1, ms(0)));
        assert_eq!(bench.delivered, [u32::MAX, 0, 1]);
    }

    #[test]
    fn waiting_packets_have_bounded_memory() {
        let mut bench = Bench::new();
        for sequence in 0..1000 {
            for flow in 0..100 {
                let mut packet = packet(flow, 1 + 2 * sequence, ms(0));
                packet.payload = vec![0; 1400].into();
                bench.push(1, packet);
                assert!(bench.reorder.held_bytes <= MAX_HELD_BYTES);
            }
        }
        bench.expire(1000);
        assert_eq!((bench.delivered.len(), bench.reorder.held_bytes), (100_000, 0));
    }

    #[test]
    fn repeated_packet_is_delivered_once_while_it_waits() {
        let mut bench = Bench::new();
        bench.push(1, packet(1, 1, ms(0)));
        bench.push(1, packet(1, 1, ms(0)));
        bench.push(1, packet(1, 0, ms(0)));
        assert_eq!(bench.delivered, [0, 1]);
    }

    proptest! {
        #[test]
        fn each_packet_of_any_peer_is_delivered_within_the_bound(
            packets in prop::collection::vec((0..4u16, any::<u32>(), any::<u32>(), 0..50u64), 1..200)
        ) {
            let mut bench = Bench::new();
            let mut now = 0;
            let mut sequences = std::collections::BTreeSet::new();
            for (flow, sequence, sent_us, pause) in packets {
                now += pause;
                sequences.insert((flow, sequence));
                let payload = Bytes::copy_from_slice(&sequence.to_be_bytes());
                bench.push(now, Packet { flow, sequence, sent_us, payload });
                let deadline = bench.reorder.deadline();
                prop_assert!(deadline.is_none_or(|deadline| deadline <= bench.start + ms(now) + MAX_HOLD));
            }
            bench.expire(now + 200);
            prop_assert!(bench.delivered.len() >= sequences.len());
            prop_assert_eq!((bench.reorder.held_bytes, bench.reorder.deadline()), (0, None));
        }

        #[test]
        fn shuffled_packets_are_delivered_in_order(seed in prop::collection::vec(0..20u64, 1..100)) {
            let mut bench = Bench::new();
            // The first packet shows the longest delay.
            bench.push(20, packet(1, 0, ms(0)));
            let mut arrivals: Vec<(u64, u32)> =
                (1..).zip(&seed).map(|(number, delay)| (100 + u64::from(number) + delay, number)).collect();
            arrivals.sort_unstable();
            for (now, number) in arrivals {
                bench.expire(now);
                bench.push(now, packet(1, number, ms(100 + u64::from(number))));
            }
            bench.expire(10_000);
            let sorted: Vec<u32> = (0..=seed.len() as u32).collect();
            prop_assert_eq!(bench.delivered, sorted);
        }
    }
}
