//! Ctrl-C: the first one ends the command with what is finished, the second one ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use indicatif::ProgressBar;

use crate::exit::Status;
use crate::output;

static STOP: AtomicBool = AtomicBool::new(false);
static PRESSED: AtomicBool = AtomicBool::new(false);
/// What to say when it happens, and the bar to say it above.
static BAR: Mutex<(&str, Option<ProgressBar>)> = Mutex::new(("", None));
static INSTALLED: Once = Once::new();

/// Watches for Ctrl-C from here on. What is returned becomes true once runs shall end.
pub(crate) fn watch(bar: &ProgressBar) -> &'static AtomicBool {
    watch_saying(bar, "stopping, and giving up the runs under way; press Ctrl-C again to stop without a word")
}

/// Like [`watch`], where something else is to be said to whoever presses it.
pub(crate) fn watch_saying(bar: &ProgressBar, notice: &'static str) -> &'static AtomicBool {
    STOP.store(false, Ordering::SeqCst);
    PRESSED.store(false, Ordering::SeqCst);
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = (notice, Some(bar.clone()));
    INSTALLED.call_once(|| {
        // Without a handler of ours Ctrl-C ends the process, which will do.
        drop(ctrlc::set_handler(pressed));
    });
    &STOP
}

/// Whether Ctrl-C was pressed since [`watch`].
pub(crate) fn was_pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}

fn pressed() {
    if PRESSED.swap(true, Ordering::SeqCst) {
        std::process::exit(i32::from(Status::Interrupted.code()));
    }
    // Whoever holds the bar may be waiting for a reader that does not read, and the next Ctrl-C has to come through.
    thread::spawn(|| {
        let (notice, bar) = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match bar {
            Some(bar) => bar.suspend(|| output::notice(notice)),
            None => output::notice(notice),
        }
        STOP.store(true, Ordering::SeqCst);
    });
}
