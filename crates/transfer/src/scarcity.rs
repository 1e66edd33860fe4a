//! Retries of calls that fail because the system temporarily lacks file descriptors or memory.

use std::io;
use std::time::{Duration, Instant};

use crate::cancel::Cancel;
use crate::protocol::{Failure, Reason};

/// Maximum time for which a call is retried while the system lacks resources.
pub(crate) const SCARCE_FOR: Duration = Duration::from_secs(60);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Error that can report a temporary lack of resources.
pub(crate) trait Scarcity {
    /// Returns `true` if the same call may succeed once other programs have released descriptors or memory.
    fn is_scarcity(&self) -> bool;
}

impl Scarcity for io::Error {
    fn is_scarcity(&self) -> bool {
        #[cfg(unix)]
        {
            use rustix::io::Errno;
            let scarce = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
            self.raw_os_error().is_some_and(|code| scarce.iter().any(|errno| errno.raw_os_error() == code))
        }
        #[cfg(not(unix))]
        {
            self.kind() == io::ErrorKind::OutOfMemory
        }
    }
}

impl Scarcity for Failure {
    fn is_scarcity(&self) -> bool {
        self.reason == Reason::Resources
    }
}

/// Retries of calls that fail by scarcity. The calling thread sleeps between the attempts. Clones share the cancellation token.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScarcityRetries {
    cancel: Cancel,
}

impl ScarcityRetries {
    /// Returns a value that retries until this token is cancelled.
    pub(crate) fn until(cancel: &Cancel) -> Self {
        ScarcityRetries { cancel: cancel.clone() }
    }

    /// Calls `call` until its result is not an error of scarcity. Returns the last error of scarcity after [`SCARCE_FOR`], or once
    /// the token is cancelled.
    pub(crate) fn retry<T, E: Scarcity>(&self, mut call: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        let mut since = None;
        loop {
            let error = match call() {
                Err(error) if error.is_scarcity() => error,
                settled => return settled,
            };
            let since: &Instant = since.get_or_insert_with(Instant::now);
            if since.elapsed() >= SCARCE_FOR || self.cancel.is_cancelled() {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn scarce() -> io::Error {
        io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error())
    }

    #[test]
    fn scarcity_is_waited_for_and_other_errors_are_returned_at_once() {
        let mut results = vec![Ok(7), Err(scarce()), Err(scarce())];
        assert_eq!(
            ScarcityRetries::default().retry(|| results.pop().expect("a result")).expect("it ends"),
            7
        );
        let mut calls = 0;
        let denied = ScarcityRetries::default().retry(|| {
            calls += 1;
            Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied))
        });
        assert_eq!((denied.expect_err("denied").kind(), calls), (io::ErrorKind::PermissionDenied, 1));
    }

    #[test]
    fn cancelled_wait_returns_the_scarcity() {
        let cancel = Cancel::default();
        cancel.cancel();
        let ended = ScarcityRetries::until(&cancel).retry(|| Err::<(), _>(scarce()));
        assert!(ended.expect_err("scarce").is_scarcity());
    }
}
