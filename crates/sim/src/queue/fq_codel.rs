//! FQ-CoDel, RFC 8290: a queue with CoDel for each flow, served by deficit round robin, new flows first.

use std::collections::VecDeque;

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;

use super::codel::{CoDel, CoDelState};
use super::fifo::{Fifo, Queued};
use crate::error::{ConfigError, require};
use crate::route::RouteId;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDel {
    /// CoDel of each flow's queue.
    pub codel: CoDel,
    /// Bytes that a flow sends in a round.
    pub quantum: WireBytes,
    /// Number of queues, onto which flows are hashed.
    pub flows: u32,
}

impl Default for FqCoDel {
    /// Returns the values of RFC 8290, section 5.2.
    fn default() -> Self {
        FqCoDel { codel: CoDel::default(), quantum: WireBytes::new(1514), flows: 1024 }
    }
}

/// Largest number of queues of a link.
const MAX_FLOWS: u32 = 65_536;
/// Largest quantum: credits of flows fit into 64 bits with a sign.
const MAX_QUANTUM: WireBytes = WireBytes::new(1 << 30);
/// Packets dropped at once from the longest queue when the limit is exceeded (RFC 8290, section 4.1).
const DROP_BATCH: u32 = 64;

impl FqCoDel {
    /// Checks the ranges of the parameters.
    ///
    /// # Errors
    /// Returns an error if a parameter of CoDel is out of its range, the quantum is zero or above 1 GiB, or the number of queues is
    /// zero or above 65,536.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.codel.validate()?;
        let quantum = !self.quantum.is_zero() && self.quantum <= MAX_QUANTUM;
        require(quantum, "fq-codel quantum", "must be from 1 byte to 1 GiB")?;
        require((1..=MAX_FLOWS).contains(&self.flows), "fq-codel flows", "must be from 1 to 65536")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FlowList {
    #[default]
    Inactive,
    New,
    Old,
}

#[derive(Clone, Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    codel: CoDelState,
    credits: i64,
    list: FlowList,
}

/// State of FQ-CoDel.
#[derive(Clone, Debug)]
pub(super) struct FqCoDelState {
    config: FqCoDel,
    perturbation: u64,
    flows: Vec<FlowQueue>,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    packets: u64,
    bytes: WireBytes,
}

impl FqCoDelState {
    pub(super) fn new(config: FqCoDel, perturbation: u64) -> Self {
        let room = config.flows as usize;
        FqCoDelState {
            config,
            perturbation,
            flows: std::iter::repeat_with(FlowQueue::default).take(room).collect(),
            new_flows: VecDeque::with_capacity(room),
            old_flows: VecDeque::with_capacity(room),
            packets: 0,
            bytes: WireBytes::ZERO,
        }
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) fn bytes(&self) -> WireBytes {
        self.bytes
    }

    /// Returns the time of arrival of the packet that has waited longest.
    pub(super) fn oldest(&self) -> Option<Time> {
        let active = self.new_flows.iter().chain(&self.old_flows);
        active.filter_map(|flow| Some(self.flows[*flow as usize].fifo.front()?.since)).min()
    }

    /// Returns the queue of the packets of a route.
    fn queue_of(&self, route: RouteId) -> u32 {
        let hash = mix(u64::from(route.0) ^ self.perturbation);
        ((u128::from(hash) * u128::from(self.config.flows)) >> 64) as u32
    }

    pub(super) fn enqueue(&mut self, queued: Queued, route: RouteId) {
        let number = self.queue_of(route);
        let flow = &mut self.flows[number as usize];
        flow.fifo.push(queued);
        self.packets += 1;
        self.bytes += queued.size;
        if flow.list == FlowList::Inactive {
            flow.list = FlowList::New;
            flow.credits = self.config.quantum.get() as i64;
            self.new_flows.push_back(number);
        }
    }

    /// Drops half of the bytes of the queue with the most, but at most 64 packets, from its head.
    pub(super) fn drop_from_longest(&mut self, mut drop: impl FnMut(Queued)) {
        let Some(longest) = (0..self.flows.len()).rev().max_by_key(|index| self.flows[*index].fifo.bytes())
        else {
            return;
        };
        let fifo = &mut self.flows[longest].fifo;
        let half = WireBytes::new(fifo.bytes().get() / 2);
        let mut dropped = WireBytes::ZERO;
        for _ in 0..DROP_BATCH {
            let Some(head) = fifo.pop() else { break };
            dropped += head.size;
            self.packets -= 1;
            self.bytes -= head.size;
            drop(head);
            if dropped >= half {
                break;
            }
        }
    }

    pub(super) fn dequeue(&mut self, now: Time, mut drop: impl FnMut(Queued)) -> Option<Queued> {
        loop {
            let number = *self.new_flows.front().or_else(|| self.old_flows.front())?;
            let flow = &mut self.flows[number as usize];
            if flow.credits <= 0 {
                flow.credits += self.config.quantum.get() as i64;
                self.rotate(number);
                continue;
            }
            let (packets, bytes) = (&mut self.packets, &mut self.bytes);
            let mut leave = |queued: &Queued| {
                *packets -= 1;
                *bytes -= queued.size;
            };
            let head = flow.codel.dequeue(&self.config.codel, now, &mut flow.fifo, |queued| {
                leave(&queued);
                drop(queued);
            });
            let Some(head) = head else {
                self.retire(number);
                continue;
            };
            leave(&head);
            flow.credits -= head.size.get() as i64;
            return Some(head);
        }
    }

    /// Moves the first flow to the end of the old ones.
    fn rotate(&mut self, number: u32) {
        self.remove_first(number);
        self.old_flows.push_back(number);
        self.flows[number as usize].list = FlowList::Old;
    }

    /// Removes a flow whose queue is empty. A new one passes the old ones first, so that a flow that sends a packet each time its
    /// queue runs empty does not starve them.
    fn retire(&mut self, number: u32) {
        if self.flows[number as usize].list == FlowList::New && !self.old_flows.is_empty() {
            return self.rotate(number);
        }
        self.remove_first(number);
        self.flows[number as usize].list = FlowList::Inactive;
    }

    fn remove_first(&mut self, number: u32) {
        let list = match self.flows[number as usize].list {
            FlowList::New => &mut self.new_flows,
            _ => &mut self.old_flows,
        };
        debug_assert_eq!(list.front(), Some(&number));
        list.pop_front();
    }
}

/// Applies the finaliser of SplitMix64 (Steele, Lea and Flood 2014), which maps different numbers to different numbers.
fn mix(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fifo::tests::packets;

    fn state() -> FqCoDelState {
        FqCoDelState::new(FqCoDel::default(), 7)
    }

    fn fill(state: &mut FqCoDelState, route: u32, count: usize, size: u64) {
        packets(count).for_each(|queued| {
            state.enqueue(Queued { size: WireBytes::new(size), ..queued }, RouteId(route));
        });
    }

    /// Takes packets out and returns their sizes.
    fn sizes(state: &mut FqCoDelState, count: usize) -> Vec<u64> {
        let take = |_| state.dequeue(Time::ZERO, |_| {}).map(|queued| queued.size.get());
        (0..count).filter_map(take).collect()
    }

    #[test]
    fn flows_share_bytes_and_not_packets() {
        let mut state = state();
        fill(&mut state, 1, 300, 1500);
        fill(&mut state, 2, 1500, 300);
        let taken = sizes(&mut state, 600);
        let bytes = |size: u64| taken.iter().filter(|taken| **taken == size).sum::<u64>();
        assert!(bytes(1500).abs_diff(bytes(300)) <= 2 * 1514, "{} {}", bytes(1500), bytes(300));
    }

    #[test]
    fn new_flow_is_served_before_old_ones_once() {
        let mut state = state();
        fill(&mut state, 1, 20, 1500);
        assert_eq!(sizes(&mut state, 4), [1500; 4]);
        fill(&mut state, 2, 1, 100);
        assert_eq!(sizes(&mut state, 2), [100, 1500]);
        // The queue of the second flow is empty, but keeps its place among the old ones for a round.
        fill(&mut state, 2, 1, 100);
        assert_eq!(sizes(&mut state, 3), [100, 1500, 1500]);
    }

    #[test]
    fn overflow_drops_half_of_the_longest_queue_and_at_most_64_packets() {
        for (count, expected) in [(1, 1), (10, 5), (500, 64)] {
            let mut state = state();
            fill(&mut state, 1, count, 1500);
            fill(&mut state, 2, 1, 1000);
            let mut dropped = Vec::new();
            state.drop_from_longest(|queued| dropped.push(queued.size.get()));
            assert_eq!(dropped, vec![1500; expected]);
            assert_eq!(state.packets(), (count + 1 - expected) as u64);
            let bytes = 1500 * (count - expected) as u64 + 1000;
            assert_eq!(state.bytes(), WireBytes::new(bytes));
        }
    }

    #[test]
    fn queue_that_overflow_emptied_leaves_its_list() {
        let mut state = state();
        fill(&mut state, 1, 1, 1500);
        state.drop_from_longest(|_| {});
        assert_eq!((sizes(&mut state, 1), state.oldest()), (vec![], None));
        fill(&mut state, 1, 1, 1500);
        assert_eq!(sizes(&mut state, 2), [1500]);
    }

    #[test]
    fn flows_are_spread_over_the_queues() {
        let state = state();
        let mut used: Vec<_> = (0..1024).map(|route| state.queue_of(RouteId(route))).collect();
        assert!(used.iter().all(|queue| *queue < 1024));
        used.sort_unstable();
        used.dedup();
        // Of 1024 balls in 1024 urns, 1 - 1/e of the urns get one.
        assert!(used.len().abs_diff(647) < 40, "{}", used.len());
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let valid = FqCoDel::default();
        assert!(valid.validate().is_ok());
        assert!(FqCoDel { flows: 0, ..valid }.validate().is_err());
        assert!(FqCoDel { flows: MAX_FLOWS + 1, ..valid }.validate().is_err());
        assert!(FqCoDel { quantum: WireBytes::ZERO, ..valid }.validate().is_err());
        assert!(FqCoDel { quantum: WireBytes::new(u64::MAX), ..valid }.validate().is_err());
    }
}
