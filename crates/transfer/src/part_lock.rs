//! Records which transfer of a server writes which part file, so that only that transfer is asked to release it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of the transfers that hold part files, by the names of the part files.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartHolders(Arc<Mutex<BTreeMap<String, u64>>>);

impl PartHolders {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Access of one transfer to the holders of part files.
#[derive(Clone)]
pub(crate) struct PartLock {
    holders: PartHolders,
    number: u64,
    /// Called with the number of the transfer that holds a part file which this transfer needs.
    contend: Arc<dyn Fn(u64) + Send + Sync>,
}

impl PartLock {
    pub(crate) fn new(
        holders: PartHolders,
        number: u64,
        contend: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        PartLock { holders, number, contend: Arc::new(contend) }
    }

    /// Returns the access of a transfer that runs alone.
    pub(crate) fn uncontended() -> Self {
        PartLock::new(PartHolders::default(), 0, |_| {})
    }

    /// Records that this transfer holds the lock of a part file.
    pub(crate) fn hold(&self, part: String) -> HeldPart {
        self.holders.lock().insert(part.clone(), self.number);
        HeldPart { holders: self.holders.clone(), number: self.number, part }
    }

    /// Asks the holder of a part file to release it, if the holder is another transfer of this server.
    pub(crate) fn contend(&self, part: &str) {
        let holder = self.holders.lock().get(part).copied();
        if let Some(holder) = holder.filter(|holder| *holder != self.number) {
            (self.contend)(holder);
        }
    }
}

impl fmt::Debug for PartLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartLock").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A part file that a transfer holds until this guard is dropped.
#[derive(Debug)]
pub(crate) struct HeldPart {
    holders: PartHolders,
    number: u64,
    part: String,
}

impl Drop for HeldPart {
    fn drop(&mut self) {
        let mut holders = self.holders.lock();
        // The next transfer may have locked the file already.
        if holders.get(&self.part) == Some(&self.number) {
            holders.remove(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_of_a_file_is_asked_to_release_it() {
        let (holders, asked) = (PartHolders::default(), Arc::new(Mutex::new(Vec::new())));
        let part_lock = |number| {
            let asked = Arc::clone(&asked);
            PartLock::new(holders.clone(), number, move |holder| asked.lock().expect("a list").push(holder))
        };
        let (one, two, three) = (part_lock(1), part_lock(2), part_lock(3));
        let held = one.hold(".a.part".to_owned());
        let _innocent = two.hold(".b.part".to_owned());
        three.contend(".a.part");
        assert_eq!(*asked.lock().expect("a list"), [1]);
        one.contend(".a.part");
        three.contend(".c.part");
        assert_eq!(
            asked.lock().expect("a list").len(),
            1,
            "neither the holder itself nor a transfer that holds another file is asked"
        );
        // Another transfer locks the file before the first one releases it.
        let _taken = three.hold(".a.part".to_owned());
        drop(held);
        two.contend(".a.part");
        assert_eq!(*asked.lock().expect("a list"), [1, 3]);
    }

    #[test]
    fn released_file_leaves_no_state() {
        let holders = PartHolders::default();
        let part_lock = PartLock::new(holders.clone(), 7, |_| {});
        drop(part_lock.hold("part".to_owned()));
        assert!(holders.lock().is_empty());
    }
}
