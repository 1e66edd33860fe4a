//! Records which transfer of a server writes which part file, so that only that transfer is asked to release it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of the transfers that hold part files, by the files' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<BTreeMap<String, u64>>>);

impl Claims {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One transfer that claims files.
#[derive(Clone)]
pub(crate) struct Claimant {
    claims: Claims,
    number: u64,
    /// Called with the number of the transfer that holds a file which this one needs.
    contend: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Claimant {
    pub(crate) fn new(claims: Claims, number: u64, contend: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Claimant { claims, number, contend: Arc::new(contend) }
    }

    /// Returns a claimant without concurrent transfers.
    pub(crate) fn alone() -> Self {
        Claimant::new(Claims::default(), 0, |_| {})
    }

    /// Records that this transfer holds the lock of a part file.
    pub(crate) fn hold(&self, part: String) -> Claim {
        self.claims.lock().insert(part.clone(), self.number);
        Claim { claims: self.claims.clone(), number: self.number, part }
    }

    /// Asks the holder of a part file to release it, if the holder is another transfer of this server.
    pub(crate) fn contend(&self, part: &str) {
        let holder = self.claims.lock().get(part).copied();
        if let Some(holder) = holder.filter(|holder| *holder != self.number) {
            (self.contend)(holder);
        }
    }
}

impl fmt::Debug for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimant").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A part file that a transfer holds until the claim is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    number: u64,
    part: String,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claims = self.claims.lock();
        // The next transfer may have locked the file already.
        if claims.get(&self.part) == Some(&self.number) {
            claims.remove(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_of_a_file_is_asked_to_let_go_of_it() {
        let (claims, asked) = (Claims::default(), Arc::new(Mutex::new(Vec::new())));
        let claimant = |number| {
            let asked = Arc::clone(&asked);
            Claimant::new(claims.clone(), number, move |holder| asked.lock().expect("a list").push(holder))
        };
        let (one, two, three) = (claimant(1), claimant(2), claimant(3));
        let held = one.hold(".a.part".to_owned());
        let _innocent = two.hold(".b.part".to_owned());
        three.contend(".a.part");
        assert_eq!(*asked.lock().expect("a list"), [1]);
        one.contend(".a.part");
        three.contend(".c.part");
        assert_eq!(
            asked.lock().expect("a list").len(),
            1,
            "neither itself nor anybody for a file that nobody holds"
        );
        // Another transfer locks the file before the claim of the first one is removed.
        let _taken = three.hold(".a.part".to_owned());
        drop(held);
        two.contend(".a.part");
        assert_eq!(*asked.lock().expect("a list"), [1, 3]);
    }

    #[test]
    fn a_file_that_was_let_go_of_leaves_nothing_behind() {
        let claims = Claims::default();
        let claimant = Claimant::new(claims.clone(), 7, |_| {});
        drop(claimant.hold("part".to_owned()));
        assert!(claims.lock().is_empty());
    }
}
