//! Key log file of running associations.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anabranch_keying::{Direction, KeyLog, LoggedKeys};

use crate::error::KeyLogError;
use crate::line;

/// File that keys are appended to. Only the current user can read it.
pub struct KeyLogFile {
    file: Mutex<File>,
    failed: Box<dyn Fn(&io::Error) + Send + Sync>,
}

impl KeyLogFile {
    /// Opens or creates the file. `failed` is called when keys cannot be written; the association continues.
    ///
    /// # Errors
    /// Returns [`KeyLogError::Readable`] if other users can read the file.
    pub fn open(
        path: &Path,
        failed: impl Fn(&io::Error) + Send + Sync + 'static,
    ) -> Result<Self, KeyLogError> {
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(KeyLogError::file(path))?;
        check_permissions(&file, path)?;
        Ok(KeyLogFile { file: Mutex::new(file), failed: Box::new(failed) })
    }
}

#[cfg(unix)]
fn check_permissions(file: &File, path: &Path) -> Result<(), KeyLogError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let metadata = file.metadata().map_err(KeyLogError::file(path))?;
    let (mode, owner) = (metadata.permissions().mode() & 0o777, metadata.uid());
    let user = rustix::process::geteuid().as_raw();
    if owner != user {
        return Err(KeyLogError::Foreign { path: path.to_owned(), owner, user });
    }
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyLogError::Readable { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_permissions(_: &File, _: &Path) -> Result<(), KeyLogError> {
    Ok(())
}

impl KeyLog for KeyLogFile {
    /// Writes each line with one call, so that the lines of several processes do not mix.
    fn log(&self, direction: Direction, keys: &LoggedKeys<'_>) {
        let line = line::write(direction, keys);
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        if let Err(error) = written {
            (self.failed)(&error);
        }
    }
}

impl fmt::Debug for KeyLogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLogFile").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anabranch_dtls::CipherSuite;

    use super::*;
    use crate::keys::KeyRing;

    fn log(path: &Path) -> Result<(), KeyLogError> {
        let file = KeyLogFile::open(path, |error| panic!("{error}"))?;
        let keys = LoggedKeys {
            suite: CipherSuite::Aes128Gcm,
            key: &[1; 16],
            sequence_number_key: &[2; 16],
            iv: &[3; 12],
        };
        file.log(Direction::FromClient, &keys);
        Ok(())
    }

    #[test]
    fn byte_order_mark_hides_no_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.log");
        log(&path).expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        fs::write(&path, format!("\u{feff}{text}")).expect("written");
        assert_eq!(KeyRing::load(&path).expect("read").len(), 1);
    }

    #[test]
    fn keys_are_added_to_a_private_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.log");
        log(&path).expect("written");
        log(&path).expect("added");
        assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), 2);
        assert_eq!(KeyRing::load(&path).expect("read").len(), 2);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
            let text = log(&path).expect_err("loose").to_string();
            assert!(text.contains("chmod 600"), "{text}");
        }
    }
}
