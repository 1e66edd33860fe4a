//! One budget for the descriptors that all transfers of a process hold.
//!
//! A transfer that has used up its share waits until one of its own files is complete. No file is refused for lack of descriptors.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::protocol::MAX_OPEN_OFFERS;

/// Descriptors left to sockets, timers, records of stored files and the rest of the program.
const RESERVED: u64 = 64;
/// Descriptors that the threads of one transfer open for the duration of a call, such as the folder of a name.
const TRANSIENT: u64 = 8;
/// Smallest share of a transfer. One file takes at most two descriptors.
const LEAST: u64 = 4;
/// Largest share of a transfer: a part file and a journal for each open offer.
const MOST: u64 = 2 * MAX_OPEN_OFFERS as u64;
/// Budget on systems whose limit cannot be read.
#[cfg(not(unix))]
const UNKNOWN_LIMIT: u64 = 512;

/// Budget of descriptors. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Descriptors {
    free: Arc<Mutex<u64>>,
}

/// Share of a transfer; returned when its last clone and all descriptors held from it are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Share(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    /// Budget to which the share returns; `None` if it does not belong to one.
    budget: Option<Descriptors>,
    size: u64,
    free: Mutex<u64>,
}

/// Descriptors in use; returned to the share when dropped.
#[derive(Debug)]
pub(crate) struct HeldDescriptors {
    share: Share,
    count: u64,
}

/// Raises the limit on open files of this process to the maximum that the system allows, for programs whose transfers have many
/// files open. Call this function before the first transfer begins.
pub fn raise_open_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // If the limit stays lower, the shares are smaller.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Returns the number of descriptors that this process may have open.
fn open_file_limit() -> u64 {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    #[cfg(not(unix))]
    UNKNOWN_LIMIT
}

impl Descriptors {
    /// Returns the budget of this process, derived from its limit on open files at the first call.
    pub(crate) fn of_process() -> Self {
        static BUDGET: OnceLock<Descriptors> = OnceLock::new();
        BUDGET.get_or_init(|| Descriptors::within(open_file_limit())).clone()
    }

    /// Returns a budget for a process with this limit on open files.
    fn within(limit: u64) -> Self {
        Descriptors { free: Arc::new(Mutex::new(limit - RESERVED.min(limit / 2))) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a quarter of the free descriptors, after [`LEAST`] and [`TRANSIENT`] are reserved for each of `others` that may
    /// still begin; `None` if fewer than these are left.
    pub(crate) fn share(&self, others: usize) -> Option<Share> {
        let mut free = self.lock();
        let set_aside = (others as u64).saturating_mul(LEAST + TRANSIENT);
        let size = (free.saturating_sub(set_aside) / 4).clamp(LEAST, MOST);
        *free = free.checked_sub(size + TRANSIENT)?;
        Some(Share::new(Some(self.clone()), size))
    }
}

impl Share {
    fn new(budget: Option<Descriptors>, size: u64) -> Self {
        Share(Arc::new(Pool { budget, size, free: Mutex::new(size) }))
    }

    /// Returns a share for the connecting side, which is never refused.
    pub(crate) fn of_client() -> Self {
        Descriptors::of_process().share(0).unwrap_or_else(|| Share::new(None, LEAST))
    }

    /// Returns a share that belongs to no budget.
    pub(crate) fn unbudgeted() -> Self {
        Share::new(None, MOST)
    }

    #[cfg(test)]
    pub(crate) fn of(size: u64) -> Self {
        Share::new(None, size)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.0.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes descriptors from the share. Returns `None` if too few are free.
    pub(crate) fn hold(&self, count: u64) -> Option<HeldDescriptors> {
        let mut free = self.lock();
        *free = free.checked_sub(count)?;
        Some(HeldDescriptors { share: self.clone(), count })
    }

    /// Returns `true` if `count` descriptors are free.
    pub(crate) fn has(&self, count: u64) -> bool {
        *self.lock() >= count
    }
}

impl Drop for HeldDescriptors {
    fn drop(&mut self) {
        *self.share.lock() += self.count;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            *budget.lock() += self.size + TRANSIENT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_transfers_stay_within_the_limit_and_none_is_empty() {
        for (limit, transfers) in [(1024, 64), (256, 8), (1 << 20, 1000)] {
            let budget = Descriptors::within(limit);
            let before = *budget.lock();
            let shares: Vec<Share> = (0..transfers).rev().map_while(|others| budget.share(others)).collect();
            assert_eq!(shares.len(), transfers, "{limit}");
            let taken: u64 = shares.iter().map(|share| share.0.size + TRANSIENT).sum();
            assert!(
                taken + *budget.lock() + RESERVED <= limit && shares.iter().all(|share| share.has(LEAST))
            );
            let held = shares[0].hold(1).expect("room");
            drop(shares);
            assert!(*budget.lock() < before, "an open file keeps its share");
            drop(held);
            assert_eq!(*budget.lock(), before);
        }
    }

    #[test]
    fn exhausted_budget_refuses_a_further_share_until_one_is_dropped() {
        let budget = Descriptors::within(2 * RESERVED + 1);
        let shares: Vec<Share> = std::iter::from_fn(|| budget.share(0)).collect();
        assert!(!shares.is_empty() && budget.share(0).is_none());
        drop(shares);
        assert!(budget.share(0).is_some());
    }

    #[test]
    fn descriptors_of_a_share_are_held_until_dropped() {
        let share = Share::of(3);
        let (one, two) = (share.hold(1).expect("room"), share.hold(2).expect("room"));
        assert!(share.hold(1).is_none() && !share.has(1));
        drop(one);
        assert!(share.hold(2).is_none());
        drop(two);
        assert!(share.has(3) && share.hold(3).is_some());
    }
}
