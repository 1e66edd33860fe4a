//! Ctrl-C: the first one ends the command with the finished results, the second one ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use indicatif::ProgressBar;

use crate::exit::Status;
use crate::output;

static STOP: AtomicBool = AtomicBool::new(false);
static PRESSED: AtomicBool = AtomicBool::new(false);
/// Notice for the first Ctrl-C, and the bar above which it is printed.
static BAR: Mutex<(&str, Option<ProgressBar>)> = Mutex::new(("", None));
static INSTALLED: Once = Once::new();

/// Watches for Ctrl-C from now on. The returned flag becomes true when runs have to end.
pub(crate) fn watch(bar: &ProgressBar) -> &'static AtomicBool {
    watch_with_notice(bar, "stopping after aborting the current runs; press Ctrl-C again to stop at once")
}

/// Like [`watch`], with another notice.
pub(crate) fn watch_with_notice(bar: &ProgressBar, notice: &'static str) -> &'static AtomicBool {
    STOP.store(false, Ordering::SeqCst);
    PRESSED.store(false, Ordering::SeqCst);
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = (notice, Some(bar.clone()));
    INSTALLED.call_once(|| {
        // If the handler cannot be installed, Ctrl-C ends the process, which is acceptable.
        drop(ctrlc::set_handler(pressed));
    });
    &STOP
}

/// Returns `true` if Ctrl-C was pressed since [`watch`].
pub(crate) fn was_interrupted() -> bool {
    PRESSED.load(Ordering::SeqCst)
}

fn pressed() {
    if PRESSED.swap(true, Ordering::SeqCst) {
        std::process::exit(i32::from(Status::Interrupted.code()));
    }
    // The thread that holds the bar may be blocked by a slow reader. The handler must not wait for it, so that the next Ctrl-C is
    // handled.
    thread::spawn(|| {
        let (notice, bar) = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match bar {
            Some(bar) => bar.suspend(|| output::notice(notice)),
            None => output::notice(notice),
        }
        STOP.store(true, Ordering::SeqCst);
    });
}
