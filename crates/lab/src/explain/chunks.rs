//! Outcome of each chunk: its retransmissions, their causes, and the spurious ones among them.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

/// Number of chunks that are stored. Gap offsets of a SACK have 16 bits (RFC 9260 section 3.3.4), so older chunks cannot be
/// retransmitted.
const KEPT: usize = 1 << 16;

/// State of a chunk in the trace.
#[derive(Clone, Copy, Debug, Default)]
struct ChunkOutcome {
    /// Path of the latest transmission; `None` before the first.
    on: Option<u8>,
    sent_at: u64,
    arrived: bool,
    /// Cause of the next transmission, as a number that the caller assigns.
    again: Option<u8>,
}

/// A retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetransmissionRecord {
    /// Cause from the trace, or `None` if the trace does not contain it.
    pub(super) reason: Option<u8>,
    /// Path of the previous transmission.
    pub(super) from: usize,
    /// Set if the previous transmission had the same time.
    pub(super) at_once: bool,
    /// Set if the receiver had the chunk already.
    pub(super) spurious: bool,
}

/// Chunks of one sender that can still be retransmitted.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    fates: VecDeque<ChunkOutcome>,
    /// TSN of the first stored chunk.
    base: u64,
    /// Latest TSN, from which the next one is unwrapped.
    latest: u64,
}

impl Chunks {
    fn fate(&mut self, tsn: u32) -> Option<&mut ChunkOutcome> {
        let tsn = Tsn::new(tsn);
        if self.latest == 0 {
            // Room below the first TSN, since packets of the first window may overtake each other.
            let first = tsn.unwrap_near(1 << 40);
            self.base = first - KEPT as u64 / 2;
            self.latest = first;
        }
        let tsn = tsn.unwrap_near(self.latest);
        self.latest = self.latest.max(tsn);
        let mut at = usize::try_from(tsn.checked_sub(self.base)?).ok()?;
        // Traces never skip this many TSNs.
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

    /// Records the cause for which a chunk will be retransmitted.
    pub(super) fn send_again(&mut self, tsn: u32, reason: u8) {
        if let Some(fate) = self.fate(tsn) {
            fate.again = Some(reason);
        }
    }

    /// Records a transmission. Returns a description if it is a retransmission.
    pub(super) fn sent(&mut self, tsn: u32, path: usize, at: u64) -> Option<RetransmissionRecord> {
        let fate = self.fate(tsn)?;
        let (before, sent_at) = (fate.on.replace(path as u8), std::mem::replace(&mut fate.sent_at, at));
        let from = usize::from(before?);
        Some(RetransmissionRecord {
            reason: fate.again.take(),
            from,
            at_once: sent_at == at,
            spurious: fate.arrived,
        })
    }

    /// Records an arrival. Returns `false` if the chunk had arrived before.
    pub(super) fn arrived(&mut self, tsn: u32) -> bool {
        self.fate(tsn).is_none_or(|fate| !std::mem::replace(&mut fate.arrived, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmission_has_cause_path_and_whether_it_was_spurious() {
        let mut chunks = Chunks::default();
        assert_eq!(chunks.sent(u32::MAX, 0, 10), None);
        assert_eq!(chunks.sent(0, 1, 10), None);
        chunks.send_again(u32::MAX, 3);
        let repeat = RetransmissionRecord { reason: Some(3), from: 0, at_once: false, spurious: false };
        assert_eq!(chunks.sent(u32::MAX, 1, 20), Some(repeat));
        assert!(chunks.arrived(u32::MAX) && !chunks.arrived(u32::MAX));
        let repeat = RetransmissionRecord { reason: None, from: 1, at_once: true, spurious: true };
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
