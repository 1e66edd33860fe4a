//! Division of a file into blocks, and the hashes of blocks and files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Length of a block, in bytes; the last block of a file may be shorter.
pub const BLOCK_BYTES: u32 = 1 << 20;

/// BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hash(pub [u8; Hash::LEN]);

impl Hash {
    /// Length of a hash, in bytes.
    pub const LEN: usize = 32;

    /// Returns the hash of a block's bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Hash(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// Root of a file: BLAKE3 over the concatenated hashes of its blocks.
#[derive(Debug, Default)]
pub(crate) struct Root(blake3::Hasher);

impl Root {
    pub(crate) fn add(&mut self, block: Hash) {
        self.0.update(&block.0);
    }

    pub(crate) fn finish(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

/// Returns the number of blocks of a file of this size.
pub(crate) fn blocks_of(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(u64::from(BLOCK_BYTES))
}

/// Returns the length of the block with this index, in bytes; 0 behind the end.
pub(crate) fn block_len(size_bytes: u64, index: u64) -> u32 {
    let before = index.saturating_mul(u64::from(BLOCK_BYTES));
    let left = size_bytes.saturating_sub(before).min(u64::from(BLOCK_BYTES));
    u32::try_from(left).unwrap_or(BLOCK_BYTES)
}

/// Returns the offset of a block in its file, in bytes.
pub(crate) fn block_at(index: u64) -> u64 {
    index.saturating_mul(u64::from(BLOCK_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_without_rest_or_overlap() {
        let block = u64::from(BLOCK_BYTES);
        for size in [0, 1, block - 1, block, block + 1, 7 * block, 7 * block + 12] {
            let blocks = blocks_of(size);
            let sum: u64 = (0..blocks).map(|index| u64::from(block_len(size, index))).sum();
            assert_eq!(sum, size);
            assert_eq!(block_len(size, blocks), 0);
            assert!(blocks == 0 || block_at(blocks - 1) < size);
        }
    }
}
