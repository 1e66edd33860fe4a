//! Operations of a test on the two endpoints and the network.

use std::num::NonZeroU16;

use anabranch_core::time::Span;
use anabranch_core::{Reliability, StreamScheduler};
use anabranch_tests::network::Side;
use proptest::prelude::*;

use crate::interaction::attack::{self, Attack};

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Lets time pass.
    Advance { ms: u32 },
    /// Lets time pass, and notifies the endpoints only at its end.
    Oversleep { ms: u32 },
    /// Sends messages.
    Send { side: Side, stream: u16, size: usize, count: usize, unordered: bool, reliability: Reliability },
    /// Reads messages or parts of them.
    Read { side: Side, count: usize },
    /// Sets if the application reads data as it arrives or only on request.
    Reading { side: Side, by_hand: bool },
    /// Requests a reset of streams; bits select them, and none means all.
    Reset { side: Side, streams: u8, incoming: bool },
    /// Sets the priority of a stream. The first one of a case also selects the stream scheduler, and I-DATA or DATA.
    Prioritise {
        side: Side,
        stream: u16,
        priority: NonZeroU16,
        scheduler: StreamScheduler,
        interleaving: bool,
    },
    /// Requests more streams.
    AddStreams { side: Side, streams: u16, incoming: bool },
    /// Cuts or restores a link.
    Cut { pair: usize, cut: bool },
    /// Changes a link. Probabilities are in thousandths.
    Impair { pair: usize, delay_ms: u32, loss: u32, duplicate: u32, reorder: u32, corrupt: u32 },
    /// Makes every link good again.
    Heal,
    /// Adds a path.
    AddPath { side: Side, local: usize, remote: usize },
    /// Removes a path.
    RemovePath { side: Side, path: usize },
    /// Requests a shutdown of a side.
    Shutdown { side: Side },
    /// Aborts a side.
    Abort { side: Side },
    /// Passes a side an earlier time.
    Backwards { side: Side, ms: u32 },
    /// Runs a side's timers although none may be due.
    Wake { side: Side },
    /// Performs a step of the attacker.
    Attack(Attack),
}

impl Op {
    /// Returns `true` if the network and the attacker change nothing and no side ends the association.
    pub(crate) fn is_calm(&self) -> bool {
        matches!(
            self,
            Op::Advance { .. } | Op::Send { .. } | Op::Read { .. } | Op::Reading { .. } | Op::Wake { .. }
        )
    }

    /// Returns `true` if the step changes streams.
    pub(crate) fn changes_streams(&self) -> bool {
        matches!(self, Op::Reset { .. } | Op::AddStreams { .. })
    }
}

pub(crate) fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::A), Just(Side::B)]
}

/// Returns short and long waits: from a part of a round trip to more than every retransmission time-out.
fn wait() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0..300_u32, 3 => 0..3_000_u32, 1 => 0..90_000_u32]
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1..100_usize, 4 => 1..3_000_usize, 2 => 1..20_000_usize]
}

fn impair() -> impl Strategy<Value = Op> {
    let rate = || prop_oneof![3 => Just(0_u32), 2 => 0..50_u32, 1 => 0..400_u32];
    (0..8_usize, 0..400_u32, rate(), rate(), rate(), rate()).prop_map(
        |(pair, delay_ms, loss, duplicate, reorder, corrupt)| Op::Impair {
            pair,
            delay_ms,
            loss,
            duplicate,
            reorder,
            corrupt,
        },
    )
}

fn send() -> impl Strategy<Value = Op> {
    (side(), 0..6_u16, size(), 1..12_usize, prop::bool::weighted(0.3), reliability()).prop_map(
        |(side, stream, size, count, unordered, reliability)| Op::Send {
            side,
            stream,
            size,
            count,
            unordered,
            reliability,
        },
    )
}

fn reset() -> impl Strategy<Value = Op> {
    (side(), prop_oneof![1 => Just(0_u8), 9 => 1..16_u8], prop::bool::weighted(0.3))
        .prop_map(|(side, streams, incoming)| Op::Reset { side, streams, incoming })
}

fn add_streams() -> impl Strategy<Value = Op> {
    (side(), 0..3_u16, any_bool()).prop_map(|(side, streams, incoming)| Op::AddStreams {
        side,
        streams,
        incoming,
    })
}

fn prioritise() -> impl Strategy<Value = Op> {
    let scheduler = prop::sample::select(StreamScheduler::ALL.to_vec());
    (side(), 0..4_u16, 1..600_u16, scheduler, any_bool()).prop_map(
        |(side, stream, priority, scheduler, interleaving)| Op::Prioritise {
            side,
            stream,
            priority: NonZeroU16::new(priority).expect("the range starts at one"),
            scheduler,
            interleaving,
        },
    )
}

/// Returns limits that messages reach before their first transmission, in flight, or rarely.
fn reliability() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        5 => Just(Reliability::Full),
        2 => (0..3_u32).prop_map(Reliability::MaxRetransmissions),
        3 => prop_oneof![0..100_u64, 0..2_000_u64]
            .prop_map(|ms| Reliability::Lifetime(Span::from_millis(ms))),
        2 => (0..4_u32).prop_map(Reliability::Priority),
    ]
}

/// Returns steps, with frequent ones weighted higher.
pub(crate) fn any() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => wait().prop_map(|ms| Op::Advance { ms }),
        2 => wait().prop_map(|ms| Op::Oversleep { ms }),
        40 => send(),
        12 => (side(), 1..20_usize).prop_map(|(side, count)| Op::Read { side, count }),
        5 => (side(), any_bool()).prop_map(|(side, by_hand)| Op::Reading { side, by_hand }),
        6 => reset(),
        1 => add_streams(),
        2 => prioritise(),
        10 => (0..8_usize, any_bool()).prop_map(|(pair, cut)| Op::Cut { pair, cut }),
        12 => impair(),
        3 => Just(Op::Heal),
        4 => (side(), 0..8_usize, 0..8_usize).prop_map(|(side, local, remote)| Op::AddPath { side, local, remote }),
        4 => (side(), 0..8_usize).prop_map(|(side, path)| Op::RemovePath { side, path }),
        1 => side().prop_map(|side| Op::Shutdown { side }),
        1 => side().prop_map(|side| Op::Abort { side }),
        2 => (side(), 0..10_000_u32).prop_map(|(side, ms)| Op::Backwards { side, ms }),
        2 => side().prop_map(|side| Op::Wake { side }),
    ]
}

/// Returns steps, including those of an attacker.
pub(crate) fn with_attacks() -> impl Strategy<Value = Op> {
    prop_oneof![3 => any(), 2 => attack::any().prop_map(Op::Attack)]
}

fn any_bool() -> impl Strategy<Value = bool> {
    prop::bool::ANY
}
