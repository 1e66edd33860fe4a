//! Ends long loops over records and blocks once their result is no longer needed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Token that tells a thread that its result is no longer needed. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

/// Guard that cancels the token when it is dropped, so that dropping a future ends the future's thread.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(Cancel);

impl Cancel {
    /// Returns a token that is already cancelled.
    pub(crate) fn cancelled() -> Self {
        let cancel = Cancel::default();
        cancel.cancel();
        cancel
    }

    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Fails once the token is cancelled. Every loop over records or blocks calls it once per record or block.
    pub(crate) fn check(&self) -> io::Result<()> {
        // The error is not `Interrupted`, because the standard library repeats a read that ends with that error.
        if self.is_cancelled() { Err(io::Error::other("its result is no longer awaited")) } else { Ok(()) }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_guard_cancels_every_clone() {
        let cancel = Cancel::default();
        let guard = cancel.on_drop();
        assert!(cancel.clone().check().is_ok());
        drop(guard);
        assert!(cancel.is_cancelled() && cancel.clone().check().is_err());
    }
}
