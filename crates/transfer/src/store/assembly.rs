//! Assembly of a block from its segments.

use std::io::{self, Write};

use bytes::Bytes;

use crate::block::Hash;
use crate::protocol::{MAX_SEGMENT_BYTES, ProtocolError, Segment};

/// Segments of a block that have arrived.
#[derive(Debug)]
pub(crate) struct Assembly {
    block_len: u32,
    pieces: Vec<Option<Bytes>>,
    missing: usize,
    hash: Option<Hash>,
}

/// A complete block, whose content is not verified.
#[derive(Debug)]
pub(crate) struct Block {
    pieces: Vec<Bytes>,
    claimed: Hash,
}

impl Assembly {
    pub(crate) fn new(block_len: u32) -> Self {
        let count = (block_len as usize).div_ceil(MAX_SEGMENT_BYTES);
        Assembly { block_len, pieces: vec![None; count], missing: count, hash: None }
    }

    /// Adds a segment, and returns the block with the last one. All segments of a block must have the same division, so their
    /// number is bounded.
    pub(crate) fn take(&mut self, segment: Segment) -> Result<Option<Block>, ProtocolError> {
        let at = segment.offset as usize / MAX_SEGMENT_BYTES;
        let expected = (self.block_len as usize - at * MAX_SEGMENT_BYTES).min(MAX_SEGMENT_BYTES);
        if segment.block_len != self.block_len
            || !(segment.offset as usize).is_multiple_of(MAX_SEGMENT_BYTES)
            || segment.content.len() != expected
        {
            return Err(ProtocolError::Unexpected("a block is cut in another way"));
        }
        if self.pieces[at].replace(segment.content).is_some() {
            return Err(ProtocolError::Unexpected("a piece of a block came twice"));
        }
        self.missing -= 1;
        self.hash = self.hash.or(segment.hash);
        match self.hash {
            Some(claimed) if self.missing == 0 => {
                let pieces = std::mem::take(&mut self.pieces).into_iter().flatten().collect();
                Ok(Some(Block { pieces, claimed }))
            }
            _ => Ok(None),
        }
    }
}

impl Block {
    /// Returns the block's hash, if it equals the one that was sent with it.
    pub(crate) fn verified(&self) -> Option<Hash> {
        let mut hasher = blake3::Hasher::new();
        self.pieces.iter().for_each(|piece| {
            hasher.update(piece);
        });
        (*hasher.finalize().as_bytes() == self.claimed.0).then_some(self.claimed)
    }

    pub(crate) fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.pieces.iter().try_for_each(|piece| out.write_all(piece))
    }
}
