//! Fair capacity and weighted fair queueing (RFC 8260 sections 3.5 and 3.6), as start-time fair queueing.
//!
//! Each stream has a virtual time at which its next message starts: the end of its previous message, but not before the start of the
//! message that was sent last. A message ends after its bytes divided by the weight of the stream. The stream that starts first
//! sends. Of several that start at the same time, the one with the largest weight sends first.
//!
//! A stream that was idle starts earlier by the time of [`CREDIT_BYTES`] at most. While it sends less than its share, its messages
//! wait for the one in transmission only, and not for one of each other stream. A stream gains no more than these bytes, because it
//! continues at the end of its previous message.

use std::num::NonZeroU16;

use super::DEFAULT_STREAM_PRIORITY;

/// Units of virtual time per byte at weight one.
const PER_BYTE: u64 = 1 << 16;

/// Bytes of the default weight that a stream sends ahead of its share after it was idle: as many as busy streams send in one turn,
/// whose messages have 16 KiB in `anabranch forward`. With fewer, a stream below its share would wait for the next round.
const CREDIT_BYTES: u64 = 16 << 10;

#[derive(Clone, Debug)]
pub(super) struct FairQueueing {
    weighted: bool,
    /// Latest start of a message that was sent.
    now: u64,
    /// End of the latest message of each stream, up to the highest stream that has sent.
    ends: Vec<u64>,
}

impl FairQueueing {
    /// Returns the state for streams with equal shares.
    pub(super) fn unweighted() -> Self {
        FairQueueing { weighted: false, now: 0, ends: Vec::new() }
    }

    /// Returns the state for streams with shares in proportion to their priorities.
    pub(super) fn weighted() -> Self {
        FairQueueing { weighted: true, ..Self::unweighted() }
    }

    /// Returns the start of a stream's next message.
    pub(super) fn start_of(&self, stream: u16) -> u64 {
        let earliest = self.now.saturating_sub(self.duration(CREDIT_BYTES, DEFAULT_STREAM_PRIORITY));
        self.ends.get(usize::from(stream)).map_or(earliest, |&end| end.max(earliest))
    }

    /// Returns the precedence among streams that start at the same time; the smallest one sends first.
    pub(super) fn precedence(&self, weight: NonZeroU16) -> u16 {
        if self.weighted { u16::MAX - weight.get() } else { 0 }
    }

    /// Records that a message with this start was sent.
    pub(super) fn charge(&mut self, stream: u16, start: u64, bytes: u64, weight: NonZeroU16) {
        let index = usize::from(stream);
        if self.ends.len() <= index {
            self.ends.resize(index + 1, 0);
        }
        self.ends[index] = start.saturating_add(self.duration(bytes, weight));
        self.now = self.now.max(start);
    }

    /// Returns the virtual time that bytes of a stream take.
    fn duration(&self, bytes: u64, weight: NonZeroU16) -> u64 {
        let weight = if self.weighted { u64::from(weight.get()) } else { 1 };
        bytes.saturating_mul(PER_BYTE) / weight
    }
}
