//! Queue of the packets that wait for the association: FQ-CoDel (RFC 8290).
//!
//! Flows take turns by bytes, so that a download does not delay a keystroke. CoDel (RFC 8289) drops packets of a flow whose queue does
//! not drain, which the sender of the flow takes as a sign of congestion. A full queue drops the oldest packet of the longest flow.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;

use crate::codel::Codel;

/// Maximum number of waiting bytes.
const MAX_BYTES: usize = 4 << 20;
/// Bytes that a flow sends in its turn.
const QUANTUM: i64 = 1514;

/// Packets that wait for the association.
#[derive(Debug, Default)]
pub struct FlowQueue {
    flows: BTreeMap<u16, Flow>,
    /// Flows with packets, in the order of their turns. Flows that had none go first (RFC 8290 section 4.1).
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    bytes: usize,
    dropped: u64,
}

#[derive(Debug, Default)]
struct Flow {
    packets: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    deficit: i64,
    codel: Codel,
    is_listed: bool,
}

impl FlowQueue {
    /// Returns `true` if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Number of dropped packets.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds a packet.
    pub fn push(&mut self, now: Instant, number: u16, packet: Bytes) {
        let flow = self.flows.entry(number).or_default();
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(number);
        }
        flow.bytes += packet.len();
        self.bytes += packet.len();
        flow.packets.push_back((now, packet));
        while self.bytes > MAX_BYTES {
            self.drop_oldest();
        }
    }

    /// Removes the next packet, with its flow.
    pub fn pop(&mut self, now: Instant) -> Option<(u16, Bytes)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = self.flows.get_mut(&number)?;
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = flow.bytes;
            let next = flow.next(now, &mut self.dropped);
            self.bytes -= before - flow.bytes;
            if let Some(packet) = next {
                flow.deficit -= packet.len() as i64;
                return Some((number, packet));
            }
            list.pop_front();
            match is_new && !self.old.is_empty() {
                // It ends behind the old flows, so that a flow of single packets does not always go first.
                true => self.old.push_back(number),
                false => drop(self.flows.remove(&number)),
            }
        }
    }

    fn drop_oldest(&mut self) {
        let Some(flow) = self.flows.values_mut().max_by_key(|flow| flow.bytes) else { return };
        if let Some((_, packet)) = flow.packets.pop_front() {
            flow.bytes -= packet.len();
            self.bytes -= packet.len();
            self.dropped += 1;
        }
    }
}

impl Flow {
    /// Removes the next packet that CoDel does not drop.
    fn next(&mut self, now: Instant, dropped: &mut u64) -> Option<Bytes> {
        loop {
            let (queued, packet) = self.packets.pop_front()?;
            self.bytes -= packet.len();
            if !self.codel.drops(now, now.duration_since(queued), self.bytes) {
                return Some(packet);
            }
            *dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn bytes(length: usize) -> Bytes {
        vec![0; length].into()
    }

    #[test]
    fn flow_with_single_packets_passes_a_long_queue() {
        let (mut queue, now) = (FlowQueue::default(), Instant::now());
        for _ in 0..100 {
            queue.push(now, 1, bytes(1400));
        }
        assert_eq!(queue.pop(now).expect("a packet").0, 1);
        assert_eq!(queue.pop(now).expect("a packet").0, 1);
        queue.push(now, 2, bytes(60));
        assert_eq!(queue.pop(now).expect("a packet").0, 2);
    }

    #[test]
    fn flows_share_by_bytes() {
        let (mut queue, now) = (FlowQueue::default(), Instant::now());
        for _ in 0..300 {
            queue.push(now, 1, bytes(1400));
            queue.push(now, 2, bytes(700));
        }
        let mut sent = [0; 2];
        for _ in 0..300 {
            let (flow, packet) = queue.pop(now).expect("a packet");
            sent[usize::from(flow) - 1] += packet.len();
        }
        assert!(sent[0].abs_diff(sent[1]) < 5000, "{sent:?}");
    }

    #[test]
    fn full_queue_drops_the_oldest_packet_of_the_longest_flow() {
        let (mut queue, now) = (FlowQueue::default(), Instant::now());
        queue.push(now, 2, bytes(100));
        for _ in 0..4000 {
            queue.push(now, 1, bytes(1400));
            assert!(queue.bytes <= MAX_BYTES);
        }
        assert!(queue.dropped() > 900);
        let popped: Vec<u16> = std::iter::from_fn(|| queue.pop(now)).map(|(flow, _)| flow).collect();
        assert_eq!(popped.iter().filter(|flow| **flow == 2).count(), 1);
        assert!(queue.is_empty() && queue.flows.is_empty());
    }

    #[test]
    fn queue_that_does_not_drain_loses_packets() {
        let (mut queue, start) = (FlowQueue::default(), Instant::now());
        // 2 packets come each millisecond, and one is taken.
        for millisecond in 0..1000 {
            let now = start + Duration::from_millis(millisecond);
            queue.push(now, 1, bytes(500));
            queue.push(now, 1, bytes(500));
            queue.pop(now);
        }
        assert!(queue.dropped() > 10, "{}", queue.dropped());
    }

    proptest! {
        #[test]
        fn each_packet_is_popped_or_counted(steps in prop::collection::vec((0..5u16, 1..3000usize, 0..3u8), 1..300)) {
            let (mut queue, start) = (FlowQueue::default(), Instant::now());
            let (mut pushed, mut popped, mut now) = (0, 0, start);
            for (flow, length, pops) in steps {
                queue.push(now, flow, bytes(length));
                pushed += 1;
                now += Duration::from_millis(1);
                popped += (0..pops).filter(|_| queue.pop(now).is_some()).count();
            }
            while queue.pop(now).is_some() {
                popped += 1;
            }
            prop_assert_eq!(popped as u64 + queue.dropped(), pushed);
            prop_assert!(queue.is_empty() && queue.flows.is_empty() && queue.new.is_empty() && queue.old.is_empty());
        }
    }
}
