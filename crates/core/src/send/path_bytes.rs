//! Byte counts of a path at the sender.

use crate::units::ChunkBytes;

/// Byte counts of a path, defined by [`PathFacts`](crate::policy::PathFacts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathBytes {
    pub(crate) in_flight: ChunkBytes,
    pub(crate) lost_unsent: ChunkBytes,
    pub(crate) bound: ChunkBytes,
    pub(crate) held: ChunkBytes,
    pub(crate) sent: ChunkBytes,
    pub(crate) lost: ChunkBytes,
    pub(crate) delivered: ChunkBytes,
}
