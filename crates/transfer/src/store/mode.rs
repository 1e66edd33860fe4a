//! Permissions of stored files and folders.
//!
//! The lower nine bits come from the source, less those of the receiver's file mode creation mask (umask), as for other programs.
//! Set-uid and set-gid are never set: they would lend rights of the receiving user or group. The sticky bit is kept on folders,
//! where it only restricts rights; without it any user could remove every entry of a world-writable folder.

use std::fs::File;
use std::io;

use crate::protocol::{FILE_BITS, FOLDER_BITS};

/// Rights that the owner of a folder keeps, so that an interrupted transfer resumes and received entries can be removed.
const OWNER_RIGHTS: u16 = 0o700;

/// File mode creation mask of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Umask(u16);

impl Umask {
    #[cfg(unix)]
    pub(super) fn of_process() -> Self {
        use std::sync::{Mutex, PoisonError};

        use rustix::fs::Mode;
        // It can only be read by setting it. A file created in between is private.
        static READING: Mutex<()> = Mutex::new(());
        let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
        let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
        rustix::process::umask(mask);
        Umask(u16::try_from(mask.as_raw_mode() & 0o777).unwrap_or(0o077))
    }

    #[cfg(not(unix))]
    pub(super) fn of_process() -> Self {
        Umask(0)
    }

    #[cfg(test)]
    pub(super) fn of(mask: u16) -> Self {
        Umask(mask)
    }

    /// Returns the permissions of a file from the offered ones.
    pub(super) fn of_file(self, offered: u16) -> u16 {
        offered & FILE_BITS & !self.0
    }

    /// Returns the permissions of a folder from the offered ones.
    pub(super) fn of_folder(self, offered: u16) -> u16 {
        (offered & FOLDER_BITS & !self.0) | OWNER_RIGHTS
    }
}

#[cfg(unix)]
pub(super) fn set_file_mode(file: &File, mode: u16) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(u32::from(mode)))
}

/// Sets permissions of a folder. It keeps the set-gid bit that it may have inherited from its parent.
#[cfg(unix)]
pub(super) fn set_folder_mode(folder: &File, mode: u16) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let inherited = folder.metadata()?.permissions().mode() & 0o2000;
    folder.set_permissions(std::fs::Permissions::from_mode(u32::from(mode) | inherited))
}

#[cfg(not(unix))]
pub(super) fn set_file_mode(_file: &File, _mode: u16) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn set_folder_mode(_folder: &File, _mode: u16) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn umask_applies_and_special_bits_are_dropped_except_sticky_folders() {
        let (usual, private, none) = (Umask::of(0o022), Umask::of(0o077), Umask::of(0));
        assert_eq!([usual, private, none].map(|mask| mask.of_file(0o7777)), [0o755, 0o700, 0o777]);
        assert_eq!([usual, private, none].map(|mask| mask.of_folder(0o7777)), [0o1755, 0o1700, 0o1777]);
        assert_eq!([usual, private, none].map(|mask| mask.of_folder(0)), [0o700; 3]);
    }
}
