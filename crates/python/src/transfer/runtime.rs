//! Runtime that drives all endpoints of this process, and the end of their associations with the process.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handle::Handle;

/// Maximum delay of the end of the process, during which peers are notified.
const FAREWELL: Duration = Duration::from_millis(500);

static BACKGROUND: Mutex<Option<Arc<Background>>> = Mutex::new(None);

/// State beside the interpreter.
pub(super) struct Background {
    pub(super) runtime: Runtime,
    /// Cancelled when the process is about to end.
    pub(super) leaving: CancellationToken,
    /// A task for each open association, and for each endpoint that listens.
    pub(super) tasks: TaskTracker,
}

/// Returns the state of this process, which is created at first use.
pub(super) fn background() -> PyResult<Arc<Background>> {
    let mut background = BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*background {
        return Ok(Arc::clone(running));
    }
    let runtime = Builder::new_multi_thread().enable_all().thread_name("anabranch-net").build()?;
    let started =
        Arc::new(Background { runtime, leaving: CancellationToken::new(), tasks: TaskTracker::new() });
    *background = Some(Arc::clone(&started));
    Ok(started)
}

impl Background {
    /// Aborts the association when the process ends, and tracks the association until its end.
    pub(super) fn track_association(&self, handle: &Arc<Handle>) {
        let mut events = handle.association.events();
        let handle = Arc::downgrade(handle);
        let leaving = self.leaving.clone();
        let over = async move {
            loop {
                tokio::select! {
                    event = events.next() => if event.is_none() { return },
                    () = leaving.cancelled() => break,
                }
            }
            // An association without a handle is ending already.
            if let Some(handle) = Weak::upgrade(&handle) {
                handle.association.abort();
            }
            while events.next().await.is_some() {}
        };
        self.tasks.spawn_on(over, self.runtime.handle());
    }
}

/// Aborts all associations, and waits a moment until peers are notified. It is called at the end of the process.
#[pyfunction]
pub fn end_associations(py: Python<'_>) {
    let Some(background) = BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return };
    background.leaving.cancel();
    background.tasks.close();
    py.detach(|| {
        background.runtime.block_on(async {
            let _ = tokio::time::timeout(FAREWELL, background.tasks.wait()).await;
        });
    });
}

/// Leaves the runtime to the parent process after a fork, since its threads do not exist here.
#[pyfunction]
pub fn forget_runtime() {
    std::mem::forget(BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner).take());
}
