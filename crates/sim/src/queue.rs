//! How much a link's queue holds.

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;

/// What a queue is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Everything fits.
    Unlimited,
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(WireBytes),
    /// As many bytes as the link sends in this time at its present rate.
    Time(Span),
}

/// A tail-drop queue. A packet that finds the link idle is sent at once, whatever the limit; any other is
/// dropped unless it fits into the queue. When a changed rate shrinks a queue, what waits already stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// How much fits.
    pub limit: QueueLimit,
    /// Whether the packet being sent takes up room: with a limit of 50 packets, 49 wait behind it if it does,
    /// 50 if not.
    pub in_service_counts: bool,
}

impl QueueConfig {
    /// A queue in which everything fits.
    pub const fn unlimited() -> Self {
        Self::limited(QueueLimit::Unlimited)
    }

    /// Room for `n` packets besides the one being sent.
    pub const fn packets(n: u64) -> Self {
        Self::limited(QueueLimit::Packets(n))
    }

    /// Room for so many bytes besides the packet being sent.
    pub const fn bytes(bytes: WireBytes) -> Self {
        Self::limited(QueueLimit::Bytes(bytes))
    }

    /// Room for what the link sends in `span`, besides the packet being sent.
    pub const fn time(span: Span) -> Self {
        Self::limited(QueueLimit::Time(span))
    }

    /// The rule of ns-2's drop-tail queue: of `n` packets, `n - 1` wait and one is being sent.
    pub const fn ns2_packets(n: u64) -> Self {
        Self::packets(n).counting_in_service()
    }

    const fn limited(limit: QueueLimit) -> Self {
        QueueConfig { limit, in_service_counts: false }
    }

    /// The same limit, but the packet being sent counts too.
    pub const fn counting_in_service(self) -> Self {
        QueueConfig { in_service_counts: true, ..self }
    }

    pub(crate) fn capacity(&self, rate: Rate) -> Capacity {
        match self.limit {
            QueueLimit::Unlimited => Capacity::Unlimited,
            QueueLimit::Packets(n) => Capacity::Packets(n),
            QueueLimit::Bytes(bytes) => Capacity::Bytes(bytes),
            QueueLimit::Time(span) => Capacity::Bytes(bytes_in(rate, span)),
        }
    }
}

fn bytes_in(rate: Rate, span: Span) -> WireBytes {
    let bytes = u128::from(rate.as_bps()) * u128::from(span.as_nanos()) / 8_000_000_000;
    WireBytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// A limit at a given rate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Capacity {
    Unlimited,
    Packets(u64),
    Bytes(WireBytes),
}

impl Capacity {
    /// Whether a packet of `size` fits with `packets` of together `bytes`.
    pub(crate) fn fits(&self, packets: u64, bytes: WireBytes, size: WireBytes) -> bool {
        match *self {
            Capacity::Unlimited => true,
            Capacity::Packets(limit) => packets < limit,
            Capacity::Bytes(limit) => bytes + size <= limit,
        }
    }
}
