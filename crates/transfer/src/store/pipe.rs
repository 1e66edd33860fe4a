//! Pipe or terminal that one file is written to, in order.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::block::{Hash, Root, block_at};
use crate::protocol::{Offer, Run};
use crate::store::Block;

/// Destination that accepts one file and writes it as it arrives, such as to standard output. Clones share the destination and its
/// position, which is kept over successive associations.
#[derive(Clone)]
pub struct Pipe(Arc<Mutex<State>>);

struct State {
    out: Box<dyn Write + Send>,
    /// Offer of the file that is written to the pipe, once one is accepted.
    source: Option<Offer>,
    /// Number of blocks written.
    next: u64,
    bytes: u64,
    /// Root over the blocks written.
    root: Root,
    is_done: bool,
}

/// File that is being received into the pipe.
#[derive(Debug)]
pub(crate) struct Flow {
    pipe: Pipe,
    /// Number of blocks that were written at the beginning.
    pub(crate) from: u64,
    /// Blocks that wait for earlier ones.
    early: BTreeMap<u64, (Block, Hash)>,
}

impl Pipe {
    /// Creates a pipe that writes to `out`.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        let state = State {
            out: Box::new(out),
            source: None,
            next: 0,
            bytes: 0,
            root: Root::default(),
            is_done: false,
        };
        Pipe(Arc::new(Mutex::new(state)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts the first offer, and later the same offer, which resumes. Refuses all other offers.
    pub(crate) fn open(&self, offer: &Offer) -> Option<Flow> {
        let mut state = self.lock();
        let is_same = |source: &Offer| {
            (&source.name, &source.kind, source.changed) == (&offer.name, &offer.kind, offer.changed)
        };
        if !state.source.as_ref().is_none_or(is_same) || state.is_done {
            return None;
        }
        state.source = Some(offer.clone());
        let from = state.next;
        drop(state);
        Some(Flow { pipe: self.clone(), from, early: BTreeMap::new() })
    }

    /// Returns `true` if data was written, which cannot be undone.
    pub(crate) fn is_begun(&self) -> bool {
        self.lock().next > 0
    }
}

impl Flow {
    pub(crate) fn have(&self) -> Vec<Run> {
        if self.from == 0 { Vec::new() } else { vec![Run { first: 0, count: self.from }] }
    }

    /// Accepts a verified block, writes all blocks that are due, and returns their indices and bytes.
    pub(crate) fn write(&mut self, index: u64, block: Block, hash: Hash) -> io::Result<Vec<(u64, u64)>> {
        self.early.insert(index, (block, hash));
        let mut state = self.pipe.lock();
        let mut written = Vec::new();
        while let Some((block, hash)) = self.early.remove(&state.next) {
            block.write_to(&mut state.out)?;
            state.root.add(hash);
            written.push((state.next, block.len()));
            state.next += 1;
            state.bytes += block.len();
        }
        state.out.flush()?;
        Ok(written)
    }

    /// Returns `true` if a block is allowed. Blocks are confirmed after they are written. A source that respects the window
    /// therefore sends at most one window of blocks ahead, which wait in memory.
    pub(crate) fn admits(&self, index: u64, window_blocks: usize) -> bool {
        let next = self.pipe.lock().next;
        let ahead = index.checked_sub(next).and_then(|ahead| usize::try_from(ahead).ok());
        ahead.is_some_and(|ahead| ahead < window_blocks) && !self.early.contains_key(&index)
    }

    /// Returns the number of blocks that wait for earlier blocks.
    pub(crate) fn early_blocks(&self) -> usize {
        self.early.len()
    }

    pub(crate) fn reused_bytes(&self) -> u64 {
        block_at(self.from)
    }

    pub(crate) fn is_complete(&self, size_bytes: u64) -> bool {
        self.pipe.lock().bytes >= size_bytes
    }

    /// Ends the file. Returns `true` if these are the size and the root of the data written over all associations.
    pub(crate) fn finish(&mut self, size_bytes: u64, root: Hash) -> bool {
        let mut state = self.pipe.lock();
        state.is_done = true;
        state.bytes == size_bytes && state.root.finish() == root
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("next", &self.lock().next).finish_non_exhaustive()
    }
}
