//! An offered file, and its progress.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::block::{BLOCK_BYTES, Root, block_len, blocks_of};
use crate::descriptors::HeldDescriptors;
use crate::protocol::{BlockMessages, FileTime, Kind, Offer, Outcome, Run};
use crate::report::Report;
use crate::scarcity::SCARCE_FOR;
use crate::store::contain;

use super::reader::Request;
use super::walk::Origin;

/// Maximum number of requests for a file's blocks on one association: the first, and another one if the receiver's kept blocks were
/// wrong.
const MOST_TAKES: u32 = 2;

/// An offer that is not done.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) changed: FileTime,
    pub(super) mode: u16,
    pub(super) origin: Origin,
    pub(super) stage: Stage,
    /// Number of times that it changed while it was sent.
    pub(super) changes: u32,
    /// User bytes of the file that the receiver has, as counted so far.
    pub(super) counted_bytes: u64,
    /// User bytes that were reported as present before.
    pub(super) reused_bytes: u64,
    /// Number of times that the receiver requested the file's blocks on this association.
    pub(super) takes: u32,
    /// Set once the bytes that the receiver had before were counted.
    pub(super) is_counted: bool,
    /// Number of blocks that are being read or that the receiver has not confirmed.
    pub(super) in_flight: usize,
    /// Blocks that were read, queued for sending, and not confirmed. The receiver can confirm only these.
    pub(super) under_way: BTreeSet<u64>,
    /// Number of blocks that arrived corrupt.
    pub(super) wrong: u32,
    /// Blocks that are read again because they arrived corrupt.
    pub(super) repeats: BTreeSet<u64>,
    /// Content that was read from a pipe and may have to be sent again.
    pub(super) kept: Kept,
    /// Descriptor of the file while it is open.
    pub(super) held: Option<HeldDescriptors>,
    /// Time since which the file cannot be opened because the system lacks descriptors or memory.
    pub(super) scarce_since: Option<Instant>,
}

/// Stage of an offer.
pub(super) enum Stage {
    /// The receiver has not answered.
    Offered,
    /// The file is being opened. All blocks except these will be sent. A file to compare is not sent at all.
    Opening(Vec<Run>),
    /// The blocks of the file are being read. The sender skips those that the receiver has.
    Sending(Sending),
    /// All blocks were read. The reader checks that the file is unchanged.
    Checking(Root),
    /// The sender is done, and waits for the receiver's result.
    Ended,
}

/// Progress of sending blocks.
pub(super) struct Sending {
    pub(super) have: Vec<Run>,
    /// Next block to request from the reader.
    pub(super) next: u64,
    /// Number of blocks that were requested from the reader for the first time and have not been read.
    pub(super) reading: usize,
    /// Root over all blocks read, including those that the receiver has. It reveals that the receiver kept different content.
    pub(super) root: Root,
}

/// Treatment of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Sent(u64),
    /// The receiver has the block, and the root needs the block's hash.
    Hashed(u64),
}

/// Content that was read from a pipe.
#[derive(Default)]
pub(super) struct Kept {
    /// Blocks that the receiver has not confirmed, with their lengths.
    pub(super) blocks: BTreeMap<u64, (BlockMessages, u32)>,
    /// Root over all blocks read.
    pub(super) root: Root,
    /// Number of blocks that were read, and number of bytes.
    pub(super) read: u64,
    pub(super) bytes: u64,
    /// Set while a block is being read.
    pub(super) is_reading: bool,
    pub(super) is_at_end: bool,
}

impl Entry {
    pub(super) fn new(name: String, kind: Kind, changed: FileTime, mode: u16, origin: Origin) -> Self {
        Entry {
            name,
            kind,
            changed,
            mode,
            origin,
            stage: Stage::Offered,
            changes: 0,
            wrong: 0,
            repeats: BTreeSet::new(),
            counted_bytes: 0,
            reused_bytes: 0,
            takes: 0,
            is_counted: false,
            in_flight: 0,
            under_way: BTreeSet::new(),
            kept: Kept::default(),
            held: None,
            scarce_since: None,
        }
    }

    /// Returns `true` if the file waits to be opened, and the time limit of the wait has not passed.
    pub(super) fn may_wait(&mut self) -> bool {
        let since = *self.scarce_since.get_or_insert_with(Instant::now);
        matches!(self.stage, Stage::Opening(_)) && since.elapsed() < SCARCE_FOR
    }

    /// Returns `true` if the receiver may request blocks now: for the first time, after a comparison, or a second time and then all
    /// blocks.
    pub(super) fn may_take(&self, stage: &Stage, have: &[Run]) -> bool {
        match stage {
            Stage::Offered => true,
            _ => self.in_flight == 0 && self.takes < MOST_TAKES && (self.takes == 0 || have.is_empty()),
        }
    }

    /// Returns the next block to read and its treatment; `None` if no block is to be read now.
    pub(super) fn next_request(&mut self, id: u32) -> Option<Request> {
        let Stage::Sending(sending) = &mut self.stage else { return None };
        match (&self.kind, &self.origin) {
            (Kind::File { size_bytes, .. }, _) => {
                let wanted = sending.take(blocks_of(*size_bytes))?;
                Some(match wanted {
                    Wanted::Sent(index) => Request::Block { id, index, block_len: self.block_len(index) },
                    Wanted::Hashed(index) => Request::Hash { id, index, block_len: self.block_len(index) },
                })
            }
            (_, Origin::Stream(from)) if !self.kept.is_reading && !self.kept.is_at_end => {
                self.kept.is_reading = true;
                Some(Request::Next { id, index: self.kept.read, from: from.clone() })
            }
            _ => None,
        }
    }

    pub(super) fn offer(&self, id: u32) -> Offer {
        let Entry { name, kind, changed, mode, .. } = self;
        Offer { id, name: name.as_str().into(), kind: kind.clone(), changed: *changed, mode: *mode }
    }

    /// Returns the size in bytes; `None` for folders, and until a pipe has ended.
    pub(super) fn size_bytes(&self) -> Option<u64> {
        match self.kind {
            Kind::File { size_bytes, .. } => Some(size_bytes),
            Kind::Stream { .. } if self.kept.is_at_end => Some(self.kept.bytes),
            Kind::Stream { .. } | Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => None,
        }
    }

    /// Reports the result, and the bytes that the receiver keeps if the file failed.
    pub(super) fn report_end(&self, report: &Report, outcome: Outcome) {
        if matches!(outcome, Outcome::Failed(_)) {
            report.kept(self.counted_bytes);
        }
        report.done(self.name.as_str(), self.size_bytes(), outcome);
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream { .. })
    }

    pub(super) fn block_len(&self, index: u64) -> u32 {
        match self.kind {
            Kind::File { size_bytes, .. } => block_len(size_bytes, index),
            _ => self.kept.blocks.get(&index).map_or(BLOCK_BYTES, |(_, bytes)| *bytes),
        }
    }

    /// Returns the user bytes in these blocks. The receiver may claim any index, so blocks that do not exist count as 0 bytes.
    pub(super) fn bytes_in(&self, runs: &[Run]) -> u64 {
        let Kind::File { size_bytes, .. } = self.kind else {
            let read = self.kept.read;
            let held = |run: &Run| run.first.saturating_add(run.count).min(read).saturating_sub(run.first);
            return (runs.iter().map(held).sum::<u64>() * u64::from(BLOCK_BYTES)).min(self.kept.bytes);
        };
        let end = blocks_of(size_bytes);
        let held = |run: &Run| {
            let last = run.first.saturating_add(run.count).min(end);
            let full = last.saturating_sub(run.first) * u64::from(BLOCK_BYTES);
            let has_short = last == end && last > run.first;
            full - u64::from(has_short)
                * u64::from(BLOCK_BYTES - block_len(size_bytes, end.saturating_sub(1)))
        };
        runs.iter().map(held).sum()
    }
}

impl Sending {
    pub(super) fn new(have: Vec<Run>) -> Self {
        Sending { have, next: 0, reading: 0, root: Root::default() }
    }

    /// Returns the next block to read of a file with `blocks` blocks.
    pub(super) fn take(&mut self, blocks: u64) -> Option<Wanted> {
        if self.next >= blocks {
            return None;
        }
        let index = self.next;
        self.next += 1;
        self.reading += 1;
        Some(if self.has(index) { Wanted::Hashed(index) } else { Wanted::Sent(index) })
    }

    /// Returns `true` if every block of a file with `blocks` blocks has been read.
    pub(super) fn is_read(&self, blocks: u64) -> bool {
        self.next >= blocks && self.reading == 0
    }

    pub(super) fn has(&self, index: u64) -> bool {
        contain(&self.have, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_in_order_and_held_ones_are_not_sent() {
        let run = |first, count| Run { first, count };
        let mut sending = Sending::new(vec![run(0, 2), run(3, 1), run(6, 100)]);
        let taken: Vec<Wanted> = std::iter::from_fn(|| sending.take(7)).collect();
        let (sent, hashed) = (Wanted::Sent, Wanted::Hashed);
        assert_eq!(taken, [hashed(0), hashed(1), sent(2), hashed(3), sent(4), sent(5), hashed(6)]);
        assert!(!sending.is_read(7));
        sending.reading = 0;
        assert!(sending.is_read(7));
    }
}
