//! Fair capacity and weighted fair queueing (RFC 8260 sections 3.5 and 3.6), as start-time fair queueing.
//!
//! Each stream has a virtual time at which its next message starts: the end of its previous message, but not before the start of the
//! message that was sent last. A message ends after its bytes divided by the weight of the stream. The stream that starts first
//! sends, so a stream that was idle gets no compensation for that time. Of several that start at the same time, the one with the
//! largest weight sends first: a message of a stream that was idle then waits for the one in transmission only, and not for one of
//! each other stream.

use std::num::NonZeroU16;

/// Units of virtual time per byte at weight one.
const PER_BYTE: u64 = 1 << 16;

#[derive(Debug)]
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
        self.ends.get(usize::from(stream)).map_or(self.now, |&end| end.max(self.now))
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
        let weight = if self.weighted { u64::from(weight.get()) } else { 1 };
        self.ends[index] = start.saturating_add(bytes.saturating_mul(PER_BYTE) / weight);
        self.now = self.now.max(start);
    }
}
