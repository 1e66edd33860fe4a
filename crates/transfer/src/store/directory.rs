//! Directory that stores files, and access to its locked part files.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::disk::Disk;
use super::mode::Umask;
use crate::identity::Owner;
use crate::name::Name;

/// Number of attempts to lock a part file that other transfers rename or remove at the same time.
const LOCK_TRIES: usize = 8;

/// A directory. `cap-std` resolves all paths and symbolic links below it.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) dir: Arc<Dir>,
    pub(super) disk: Disk,
    /// Owner of the unfinished files.
    pub(super) owner: Owner,
    pub(super) umask: Umask,
}

impl Directory {
    /// Opens a directory that exists.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        // Opening a file as a directory reports no error, so the kind is checked here.
        dir.dir_metadata()?;
        Ok(Directory {
            dir: Arc::new(dir),
            disk: Disk::default(),
            owner: Owner::default(),
            umask: Umask::of_process(),
        })
    }

    /// Opens a subdirectory, and creates it if it does not exist. Follows no link in any part of the path.
    pub(super) fn below(&self, name: &Name) -> io::Result<Self> {
        let mut dir = self.dir.try_clone()?;
        for part in name.as_str().split('/') {
            match dir.create_dir(part) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => dir = open_dir_nofollow(dir, part)?,
            }
        }
        Ok(Directory { dir: Arc::new(dir), ..self.clone() })
    }

    /// Returns the same directory for files of this sender.
    pub(super) fn owned_by(&self, owner: Owner) -> Self {
        Directory { owner, ..self.clone() }
    }

    /// Returns the path of the part file of a name.
    pub(super) fn part_of(&self, name: &Name) -> String {
        name.part(self.owner)
    }

    /// Returns the path of the journal of a name.
    pub(super) fn journal_of(&self, name: &Name) -> String {
        name.journal(self.owner)
    }

    /// Opens a file in the directory for reading.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        Ok(self.dir.open(name)?.into_std())
    }

    /// Opens the part file of a name, created if necessary, under an exclusive lock; `None` if another transfer holds it.
    pub(super) fn lock_part(&self, name: &Name) -> io::Result<Option<File>> {
        let path = self.part_of(name);
        for _ in 0..LOCK_TRIES {
            let file = self.open_part(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            match self.is_only_name(&path, &file) {
                Ok(NameCount::Yes) => return Ok(Some(file)),
                // The last holder has renamed or removed this file, so it is no longer the part file.
                Ok(NameCount::Gone) => {}
                // After a crash, the complete file may have both its name and the name of the part file.
                Ok(NameCount::HasAnother) => self.remove_if_there(&path)?,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns `true` if a transfer holds the part file of a name. Creates none.
    pub(super) fn is_part_held(&self, name: &Name) -> bool {
        let path = self.part_of(name);
        if !self.dir.symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            return false;
        }
        let file = self.open_file(&path);
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    #[cfg(unix)]
    fn is_only_name(&self, path: &str, file: &File) -> io::Result<NameCount> {
        use std::os::unix::fs::MetadataExt;

        use cap_std::fs::MetadataExt as _;
        let held = file.metadata()?;
        match self.dir.symlink_metadata(path) {
            Ok(found) if (found.dev(), found.ino()) != (held.dev(), held.ino()) => Ok(NameCount::Gone),
            Ok(found) if MetadataExt::nlink(&held) > 1 || found.nlink() > 1 => Ok(NameCount::HasAnother),
            Ok(_) => Ok(NameCount::Yes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(NameCount::Gone),
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn is_only_name(&self, path: &str, _file: &File) -> io::Result<NameCount> {
        Ok(if self.dir.exists(path) { NameCount::Yes } else { NameCount::Gone })
    }

    /// Opens a part file, including one that got the permissions of its source before its name.
    fn open_part(&self, path: &str) -> io::Result<File> {
        match self.open_or_create(path) {
            #[cfg(unix)]
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                use cap_std::fs::{MetadataExt, PermissionsExt};
                if self.dir.symlink_metadata(path)?.nlink() > 1 {
                    // The file has its final name, so its permissions must not change.
                    self.remove_if_there(path)?;
                    return self.open_or_create(path);
                }
                self.dir
                    .set_permissions(path, cap_std::fs::Permissions::from_mode(0o600))
                    .map_err(|_| error)?;
                self.open_or_create(path)
            }
            opened => opened,
        }
    }

    pub(super) fn open_or_create(&self, path: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            // The permissions of the source are set only when the file is complete.
            options.mode(0o600);
        }
        Ok(self.dir.open_with(path, &options)?.into_std())
    }

    /// Opens or creates a regular file at the top; `None` if another entry has the name, such as a link.
    pub(super) fn open_plain(&self, name: &str) -> io::Result<Option<File>> {
        match self.dir.symlink_metadata(name) {
            Ok(there) if !there.is_file() => return Ok(None),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.open_or_create(name).map(Some)
    }

    /// Creates a symbolic link, whose target was checked before.
    #[cfg(unix)]
    pub(super) fn symlink(&self, target: &str, name: &str) -> io::Result<()> {
        self.dir.symlink_contents(target, name)
    }

    #[cfg(not(unix))]
    pub(super) fn symlink(&self, _target: &str, _name: &str) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn remove_if_there(&self, path: &str) -> io::Result<()> {
        match self.dir.remove_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            settled => settled,
        }
    }
}

/// Opens a subdirectory of a directory, unless it is a symbolic link.
pub(super) fn open_dir_nofollow(dir: Dir, last: impl AsRef<Path>) -> io::Result<Dir> {
    cap_primitives::fs::open_dir_nofollow(&dir.into_std_file(), last.as_ref()).map(Dir::from_std_file)
}

/// Returns the identity of a file or folder, which is the same under all its names.
#[cfg(unix)]
pub(crate) fn identity_of(metadata: &Metadata) -> (u64, u64) {
    use cap_std::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Returns an equal identity for all files, because other systems provide none.
#[cfg(not(unix))]
pub(crate) fn identity_of(_metadata: &Metadata) -> (u64, u64) {
    (0, 0)
}

enum NameCount {
    Yes,
    HasAnother,
    Gone,
}
