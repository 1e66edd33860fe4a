//! Budget for the blocks that all transfers of a server keep in memory.

use std::sync::{Arc, Mutex, PoisonError};

use crate::block::BLOCK_BYTES;

/// Minimum window of a transfer.
const LEAST_WINDOW_BLOCKS: u64 = 2;
/// Memory of a transfer in addition to its window: messages that wait for the thread, and answers that wait to be sent.
const FIXED_BLOCKS: u64 = 1;

/// Budget of blocks. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    free_blocks: Arc<Mutex<u64>>,
}

/// Share of a transfer; returned when dropped.
#[derive(Debug)]
pub(super) struct Grant {
    memory: Memory,
    window_blocks: u64,
}

/// Returns the minimum budget for `transfers` concurrent transfers, in bytes.
pub(super) fn least_memory_bytes(transfers: usize) -> u64 {
    (transfers as u64).saturating_mul((LEAST_WINDOW_BLOCKS + FIXED_BLOCKS) * u64::from(BLOCK_BYTES))
}

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        Memory { free_blocks: Arc::new(Mutex::new(bytes / u64::from(BLOCK_BYTES))) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.free_blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a quarter of the free blocks, after the minimum is reserved for each of `others` that may still begin, and at most
    /// `most_blocks`; `None` if less than the minimum is left.
    pub(super) fn grant(&self, most_blocks: u32, others: usize) -> Option<Grant> {
        let mut free = self.lock();
        let set_aside = (others as u64).saturating_mul(LEAST_WINDOW_BLOCKS + FIXED_BLOCKS);
        let share = free.saturating_sub(set_aside) / 4;
        let window_blocks = share.clamp(LEAST_WINDOW_BLOCKS, u64::from(most_blocks).max(LEAST_WINDOW_BLOCKS));
        *free = free.checked_sub(window_blocks + FIXED_BLOCKS)?;
        Some(Grant { memory: self.clone(), window_blocks })
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.lock().saturating_mul(u64::from(BLOCK_BYTES))
    }
}

impl Grant {
    pub(super) fn window_blocks(&self) -> u32 {
        u32::try_from(self.window_blocks).unwrap_or(u32::MAX)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        *self.memory.lock() += self.window_blocks + FIXED_BLOCKS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::WINDOW_BLOCKS;

    const MIB: u64 = 1 << 20;

    fn fill(memory: &Memory, transfers: usize) -> Vec<Grant> {
        let grant = |others| memory.grant(WINDOW_BLOCKS, others);
        (0..transfers).rev().map_while(grant).collect()
    }

    #[test]
    fn single_transfer_has_a_full_window_and_all_stay_within_the_budget() {
        for (bytes, transfers) in
            [(512 * MIB, 64), (least_memory_bytes(64), 64), (4096 * MIB, 1000), (9 * MIB, 3)]
        {
            let memory = Memory::new(bytes);
            let grants = fill(&memory, transfers);
            assert_eq!(grants.len(), transfers, "none goes without");
            let held: u64 = grants.iter().map(|grant| u64::from(grant.window_blocks()) + FIXED_BLOCKS).sum();
            assert!(
                held * MIB + memory.free_bytes() == bytes
                    && grants.iter().all(|grant| grant.window_blocks() >= 2)
            );
            drop(grants);
            assert_eq!(memory.free_bytes(), bytes, "all is given back");
        }
        assert_eq!(fill(&Memory::new(512 * MIB), 64)[0].window_blocks(), WINDOW_BLOCKS);
    }

    #[test]
    fn transfer_without_memory_is_refused() {
        let memory = Memory::new(5 * MIB);
        let only = memory.grant(WINDOW_BLOCKS, 0).expect("enough for one");
        assert!(memory.grant(WINDOW_BLOCKS, 0).is_none());
        drop(only);
        assert!(memory.grant(WINDOW_BLOCKS, 0).is_some());
    }
}
