//! Quota of a folder: maximum number of bytes of its files.
//!
//! Sizes of regular files below the folder and allocated bytes of unfinished ones are counted. Names, folders, symbolic links and
//! the program's own records are not. The files are counted when a transfer begins and no other transfer is counting. So the count
//! survives restarts, and includes removals by other programs.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a folder, shared by all transfers into it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    bytes: u64,
    transfers: usize,
}

impl Usage {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a transfer. `count` counts the folder unless another transfer is doing so.
    pub(crate) fn begin(&self, limit: u64, count: impl FnOnce() -> u64) -> Quota {
        let mut counted = self.lock();
        if counted.transfers == 0 {
            counted.bytes = count();
        }
        counted.transfers += 1;
        Quota(Arc::new(Counting { usage: self.clone(), limit }))
    }
}

/// Quota of one transfer. Clones belong to the same transfer.
#[derive(Clone, Debug)]
pub(crate) struct Quota(Arc<Counting>);

#[derive(Debug)]
struct Counting {
    usage: Usage,
    limit: u64,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.usage.lock().transfers -= 1;
    }
}

impl Quota {
    /// Charges a file of which `there` bytes are counted and `missing` are not.
    ///
    /// # Errors
    /// Returns [`ErrorKind::QuotaExceeded`] if the bytes exceed the quota.
    pub(super) fn charge(&self, there: u64, missing: u64) -> io::Result<Charge> {
        let mut charge = Charge { quota: self.clone(), there, charged: 0 };
        charge.grow(missing)?;
        Ok(charge)
    }
}

/// Bytes charged for a file that is not complete.
#[derive(Debug)]
pub(crate) struct Charge {
    quota: Quota,
    there: u64,
    charged: u64,
}

impl Charge {
    /// Charges further bytes for a stream that grows.
    ///
    /// # Errors
    /// Returns [`ErrorKind::QuotaExceeded`] if the bytes exceed the quota.
    pub(super) fn grow(&mut self, bytes: u64) -> io::Result<()> {
        let Counting { usage, limit } = &*self.quota.0;
        let mut counted = usage.lock();
        let after = counted.bytes.saturating_add(bytes);
        if bytes > 0 && after > *limit {
            let text = format!(
                "it needs {bytes} B more, and {} B of the quota of {limit} B are used (quota in authorized_keys there)",
                counted.bytes
            );
            return Err(io::Error::new(ErrorKind::QuotaExceeded, text));
        }
        counted.bytes = after;
        self.charged = self.charged.saturating_add(bytes);
        Ok(())
    }

    /// Replaces the charged bytes by the bytes `now` of the file on the disk, minus the bytes of the file that it has replaced.
    pub(super) fn settle(&mut self, now: u64, replaced: u64) {
        let mut counted = self.quota.0.usage.lock();
        let before = counted.bytes.saturating_sub(self.charged).saturating_sub(self.there);
        counted.bytes = before.saturating_add(now).saturating_sub(replaced);
        (self.there, self.charged) = (now, 0);
    }
}

impl Drop for Charge {
    /// Releases the charge: the file was not settled, so none of its bytes are on the disk.
    fn drop(&mut self) {
        let mut counted = self.quota.0.usage.lock();
        counted.bytes = counted.bytes.saturating_sub(self.charged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnClash;
    use crate::cancel::Cancel;
    use crate::name::Name;
    use crate::protocol::{FileTime, Kind, Offer};
    use crate::store::{Begin, Folder};

    fn take(folder: &Folder, name: &str) -> Result<Begin, String> {
        let kind = Kind::File { size_bytes: 8, first: None };
        let offer =
            Offer { id: 0, name: name.into(), kind, changed: FileTime { seconds: 5, nanos: 0 }, mode: 0o644 };
        let name = Name::new(name).expect("a name");
        folder.take(&name, &offer, &Cancel::default()).map_err(|failure| failure.text.raw().to_owned())
    }

    #[test]
    fn file_that_another_transfer_holds_is_busy_and_not_over_quota() {
        let dir = tempfile::tempdir().expect("a folder");
        let usage = Usage::default();
        let open = || {
            let folder = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
            folder.with_quota(usage.begin(10, || 0))
        };
        let (dead, again) = (open(), open());
        let held = take(&dead, "film").expect("8 of 10 B");
        assert!(matches!(held, Begin::Take(_)));
        assert!(matches!(take(&again, "film"), Ok(Begin::Busy)));
        let refused = take(&again, "other").expect_err("16 of 10 B");
        assert!(refused.contains("quota of 10 B"), "{refused}");
        drop(held);
        assert!(matches!(take(&again, "film"), Ok(Begin::Take(_))));
    }

    #[test]
    fn bytes_are_charged_before_they_come_and_settled_afterwards() {
        let usage = Usage::default();
        let quota = usage.begin(100, || 30);
        let other = usage.begin(100, || unreachable!("it is counted"));
        let mut first = quota.charge(10, 50).expect("80 of 100");
        let error = other.charge(0, 21).expect_err("101 of 100");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert!(error.to_string().contains("21 B more") && error.to_string().contains("80 B of"), "{error}");
        first.grow(20).expect("100 of 100");
        assert!(first.grow(1).is_err());
        // 25 of its 80 B have arrived.
        first.settle(25, 0);
        drop(other.charge(0, 50).expect("95 of 100"));
        let mut second = other.charge(0, 55).expect("100 of 100");
        // The file is complete and has replaced a file of 40 B.
        second.settle(55, 40);
        assert!(quota.charge(0, 41).is_err());
        quota.charge(0, 40).expect("100 of 100").settle(0, 0);
        drop((quota, other, first, second));
        let full = usage.begin(100, || 100);
        full.charge(7, 0).expect("an empty file always fits").settle(7, 0);
        assert!(full.charge(0, 1).is_err());
    }
}
