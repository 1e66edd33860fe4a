//! What a test may do to the two endpoints and the network, one step at a time.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_tests::network::Side;
use proptest::prelude::*;

use crate::attack::{self, Attack};

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Time passes.
    Advance { ms: u32 },
    /// Time passes, and the endpoints hear of it all at once.
    Oversleep { ms: u32 },
    /// Messages are sent.
    Send { side: Side, stream: u16, size: usize, count: usize, unordered: bool, reliability: Reliability },
    /// Messages or parts are read.
    Read { side: Side, count: usize },
    /// Whether the application reads whatever comes as it comes.
    Reading { side: Side, by_hand: bool },
    /// A link is cut or mended.
    Cut { pair: usize, cut: bool },
    /// A link changes. Probabilities in thousandths.
    Impair { pair: usize, delay_ms: u32, loss: u32, duplicate: u32, reorder: u32, corrupt: u32 },
    /// Every link is good again.
    Heal,
    /// A path is added.
    AddPath { side: Side, local: usize, remote: usize },
    /// A path is removed.
    RemovePath { side: Side, path: usize },
    /// A side wants to shut down.
    Shutdown { side: Side },
    /// A side aborts.
    Abort { side: Side },
    /// A side is told an earlier time.
    Backwards { side: Side, ms: u32 },
    /// A side's timers are run although none may be due.
    Wake { side: Side },
    /// Somebody on the way does something.
    Attack(Attack),
}

impl Op {
    /// Whether the network and the attacker leave everything as it is, and nobody ends anything.
    pub(crate) fn is_calm(&self) -> bool {
        matches!(
            self,
            Op::Advance { .. } | Op::Send { .. } | Op::Read { .. } | Op::Reading { .. } | Op::Wake { .. }
        )
    }
}

pub(crate) fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::A), Just(Side::B)]
}

/// Short and long waits: from within a round trip to beyond every retransmission time-out.
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

/// Limits that are reached before anything leaves, in flight, and hardly ever.
fn reliability() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        5 => Just(Reliability::Full),
        2 => (0..3_u32).prop_map(Reliability::MaxRetransmissions),
        3 => prop_oneof![0..100_u64, 0..2_000_u64]
            .prop_map(|ms| Reliability::Lifetime(Span::from_millis(ms))),
        2 => (0..4_u32).prop_map(Reliability::Priority),
    ]
}

/// Steps, the everyday ones more often.
pub(crate) fn any() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => wait().prop_map(|ms| Op::Advance { ms }),
        2 => wait().prop_map(|ms| Op::Oversleep { ms }),
        40 => send(),
        12 => (side(), 1..20_usize).prop_map(|(side, count)| Op::Read { side, count }),
        5 => (side(), any_bool()).prop_map(|(side, by_hand)| Op::Reading { side, by_hand }),
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

/// Steps, and those of an attacker among them.
pub(crate) fn with_attacks() -> impl Strategy<Value = Op> {
    prop_oneof![3 => any(), 2 => attack::any().prop_map(Op::Attack)]
}

fn any_bool() -> impl Strategy<Value = bool> {
    prop::bool::ANY
}
