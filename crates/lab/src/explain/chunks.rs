//! What became of each chunk: which transmissions were repeats, why they were made, and which of them nobody needed.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

/// A SACK's gap offsets have 16 bits (RFC 9260 section 3.3.4), so no chunk further back than this can be sent again.
const KEPT: usize = 1 << 16;

/// What the trace said of a chunk.
#[derive(Clone, Copy, Debug, Default)]
struct ChunkOutcome {
    /// The path of its latest transmission; `None` before the first.
    on: Option<u8>,
    sent_at: u64,
    arrived: bool,
    /// Why it is to be sent again, as a number that the caller knows.
    again: Option<u8>,
}

/// A transmission after a chunk's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    /// What had been said of it; `None` if nothing had.
    pub(super) why: Option<u8>,
    /// The path of the transmission before.
    pub(super) from: usize,
    /// Whether the transmission before left at the same time.
    pub(super) at_once: bool,
    /// Whether the receiver had the chunk already.
    pub(super) needless: bool,
}

/// The chunks of one sender, as far back as any can still be sent again.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    fates: VecDeque<ChunkOutcome>,
    /// The TSN of the first one kept.
    base: u64,
    /// The TSN seen last, by which the next one is unwrapped.
    latest: u64,
}

impl Chunks {
    fn fate(&mut self, tsn: u32) -> Option<&mut ChunkOutcome> {
        let tsn = Tsn::new(tsn);
        if self.latest == 0 {
            // Room below, since packets of the first window may pass each other.
            let first = tsn.unwrap_near(1 << 40);
            self.base = first - KEPT as u64 / 2;
            self.latest = first;
        }
        let tsn = tsn.unwrap_near(self.latest);
        self.latest = self.latest.max(tsn);
        let mut at = usize::try_from(tsn.checked_sub(self.base)?).ok()?;
        // A TSN this far ahead follows no other in a trace.
        if at >= 4 * KEPT {
            return None;
        }
        while at >= self.fates.len() {
            self.fates.push_back(ChunkOutcome::default());
            if self.fates.len() > 2 * KEPT {
                self.fates.pop_front();
                self.base += 1;
                at -= 1;
            }
        }
        self.fates.get_mut(at)
    }

    /// A chunk is to be sent again, for a reason.
    pub(super) fn send_again(&mut self, tsn: u32, why: u8) {
        if let Some(fate) = self.fate(tsn) {
            fate.again = Some(why);
        }
    }

    /// A chunk left; what there is to say if it was not for the first time.
    pub(super) fn sent(&mut self, tsn: u32, path: usize, at: u64) -> Option<Repeat> {
        let fate = self.fate(tsn)?;
        let (before, sent_at) = (fate.on.replace(path as u8), std::mem::replace(&mut fate.sent_at, at));
        let from = usize::from(before?);
        Some(Repeat { why: fate.again.take(), from, at_once: sent_at == at, needless: fate.arrived })
    }

    /// A chunk arrived; `false` if it had before.
    pub(super) fn arrived(&mut self, tsn: u32) -> bool {
        self.fate(tsn).is_none_or(|fate| !std::mem::replace(&mut fate.arrived, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_knows_why_and_whence_and_whether_it_was_needed() {
        let mut chunks = Chunks::default();
        assert_eq!(chunks.sent(u32::MAX, 0, 10), None);
        assert_eq!(chunks.sent(0, 1, 10), None);
        chunks.send_again(u32::MAX, 3);
        let repeat = Repeat { why: Some(3), from: 0, at_once: false, needless: false };
        assert_eq!(chunks.sent(u32::MAX, 1, 20), Some(repeat));
        assert!(chunks.arrived(u32::MAX) && !chunks.arrived(u32::MAX));
        let repeat = Repeat { why: None, from: 1, at_once: true, needless: true };
        assert_eq!(chunks.sent(u32::MAX, 0, 20), Some(repeat));
    }

    #[test]
    fn the_latest_chunks_are_kept_however_many_there_were() {
        let mut chunks = Chunks::default();
        let many = 10 * KEPT as u32;
        for tsn in 0..many {
            assert_eq!(chunks.sent(tsn, 0, u64::from(tsn)), None);
        }
        assert!(chunks.fates.len() <= 2 * KEPT);
        assert!(chunks.sent(many - 60_000, 0, 0).is_some());
    }
}
