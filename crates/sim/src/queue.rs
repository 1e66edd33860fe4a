//! Size of a link's queue, and the discipline by which it drops packets.

mod codel;
mod discipline;
mod fifo;
mod fq_codel;
mod pie;
mod red;

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;

use crate::error::ConfigError;

pub use codel::CoDel;
pub use discipline::Discipline;
pub(crate) use discipline::{Managed, Reason};
pub(crate) use fifo::{Fifo, Queued};
pub use fq_codel::FqCoDel;
pub use pie::Pie;
pub use red::Red;

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    Unlimited,
    /// Number of packets.
    Packets(u64),
    /// Number of bytes.
    Bytes(WireBytes),
    /// Bytes that the link sends in this time at its current rate.
    Time(Span),
}

/// A queue with a limit, at which it drops the arriving packet, and a discipline that may drop earlier. A packet that finds the link
/// idle and the queue empty fits at any limit. When a changed rate shrinks a queue, packets that wait already stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// Size of the queue.
    pub limit: QueueLimit,
    /// Set if the packet being sent occupies room: with a limit of 50 packets, 49 wait behind it instead of 50.
    pub in_service_counts: bool,
    /// Rule by which packets are dropped before the queue is full.
    pub discipline: Discipline,
}

impl QueueConfig {
    /// Returns a queue without a limit.
    pub const fn unlimited() -> Self {
        Self::limited(QueueLimit::Unlimited)
    }

    /// Returns a queue for `n` packets besides the one being sent.
    pub const fn packets(n: u64) -> Self {
        Self::limited(QueueLimit::Packets(n))
    }

    /// Returns a queue for this number of bytes besides the packet being sent.
    pub const fn bytes(bytes: WireBytes) -> Self {
        Self::limited(QueueLimit::Bytes(bytes))
    }

    /// Returns a queue for the bytes that the link sends in `span`, besides the packet being sent.
    pub const fn time(span: Span) -> Self {
        Self::limited(QueueLimit::Time(span))
    }

    /// Returns ns-2's drop-tail queue: of `n` packets, `n - 1` wait and one is being sent.
    pub const fn ns2_packets(n: u64) -> Self {
        Self::packets(n).counting_in_service()
    }

    /// Returns a queue with this limit that drops packets only when it is full.
    pub const fn limited(limit: QueueLimit) -> Self {
        QueueConfig { limit, in_service_counts: false, discipline: Discipline::DropTail }
    }

    /// Counts the packet being sent too.
    pub const fn counting_in_service(self) -> Self {
        QueueConfig { in_service_counts: true, ..self }
    }

    /// Sets the discipline.
    pub const fn with_discipline(self, discipline: Discipline) -> Self {
        QueueConfig { discipline, ..self }
    }

    /// Checks the ranges of the discipline's parameters.
    ///
    /// # Errors
    /// Returns [`ConfigError::OutOfRange`] with the name of the parameter.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.discipline.validate()
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

/// Limit of a queue at a given rate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Capacity {
    Unlimited,
    Packets(u64),
    Bytes(WireBytes),
}

impl Capacity {
    /// Returns `true` if a packet of `size` fits beside `packets` with a total of `bytes`.
    pub(crate) fn fits(&self, packets: u64, bytes: WireBytes, size: WireBytes) -> bool {
        match *self {
            Capacity::Unlimited => true,
            Capacity::Packets(limit) => packets < limit,
            Capacity::Bytes(limit) => bytes + size <= limit,
        }
    }
}
