//! Files that no other user may read or change.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use zeroize::Zeroizing;

use crate::error::IdentityError;

#[cfg(unix)]
mod access;
#[cfg(not(unix))]
mod access {
    use super::*;

    pub(super) fn check(_: &File, _: &Path, _: Others) -> Result<(), IdentityError> {
        Ok(())
    }

    pub(super) fn check_place(_: &Path) -> Result<(), IdentityError> {
        Ok(())
    }
}

/// Access that other users may have to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// No access, because the file is secret.
    Nothing,
    /// Read access only.
    MayRead,
}

/// Returns the text of a regular file like [`read_any`]. Rejects other kinds of files: opening a FIFO would wait for a writer.
pub(crate) fn read(
    path: &Path,
    others: Others,
    limit: u64,
) -> Result<Option<Zeroizing<String>>, IdentityError> {
    check_regular(path, fs::metadata(path), "no regular file")?;
    read_any(path, others, limit)
}

/// Returns the text of a file or pipe of at most `limit` bytes, or `None` if it is missing. The text is wiped on drop.
pub(crate) fn read_any(
    path: &Path,
    others: Others,
    limit: u64,
) -> Result<Option<Zeroizing<String>>, IdentityError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // If other users could remove the file, they could make a known host unknown.
            access::check_place(path)?;
            return Ok(None);
        }
        opened => opened.map_err(IdentityError::file(path))?,
    };
    access::check(&file, path, others)?;
    // The buffer is allocated in full, because the remains of a growing buffer would not be wiped.
    let length = file.metadata().map_err(IdentityError::file(path))?.len().min(limit);
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1));
    file.take(limit + 1).read_to_end(&mut bytes).map_err(IdentityError::file(path))?;
    if bytes.len() as u64 > limit {
        return Err(IdentityError::TooLong { path: path.to_owned(), limit });
    }
    let text = str::from_utf8(&bytes).map_err(|_| IdentityError::content(path, "not a text in UTF-8"))?;
    // Some editors write a byte order mark at the start.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(Some(Zeroizing::new(text.to_owned())))
}

/// Creates a file atomically. If another process was faster, its file stays.
pub(crate) fn create(path: &Path, text: &str) -> Result<(), IdentityError> {
    make_folder(path).map_err(IdentityError::file(path))?;
    access::check_place(path)?;
    let draft = Draft::write(path, text).map_err(IdentityError::file(path))?;
    match fs::hard_link(&draft.0, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.exists() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = "a link to a missing file; remove it, or restore the file";
            Err(IdentityError::content(path, text))
        }
        linked => linked.and_then(|()| sync_folder(path)).map_err(IdentityError::file(path)),
    }
}

/// Changes a text file atomically, one process at a time. `change` receives the current text, and returns `None` to leave it
/// unchanged.
pub(crate) fn update(
    path: &Path,
    limit: u64,
    change: impl FnOnce(&str) -> Result<Option<String>, IdentityError>,
) -> Result<(), IdentityError> {
    make_folder(path).map_err(IdentityError::file(path))?;
    access::check_place(path)?;
    // If the path is a link, its target is changed.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let _lock = lock(path)?;
    let before = read(path, Others::MayRead, limit)?;
    let Some(after) = change(before.as_ref().map_or("", |text| text.as_str()))? else { return Ok(()) };
    if after.len() as u64 > limit {
        return Err(IdentityError::TooLong { path: path.to_owned(), limit });
    }
    let written = Draft::write(path, &after).and_then(|draft| {
        fs::rename(&draft.0, path)?;
        sync_folder(path)
    });
    written.map_err(IdentityError::file(path))
}

/// Waits until no other process changes this file. The lock is on a separate file, because the file itself is replaced. A link in
/// place of the lock file is rejected: opening it would create or lock its target.
fn lock(path: &Path) -> Result<File, IdentityError> {
    let path = with_suffix(path, ".lock");
    if path.is_symlink() {
        return Err(IdentityError::content(&path, "a link where a lock file belongs; remove it"));
    }
    check_regular(&path, path.symlink_metadata(), "no regular file where a lock file belongs")?;
    let opened = unlinked_options().create(true).truncate(false).open(&path).and_then(|lock| {
        lock.lock()?;
        Ok(lock)
    });
    opened.map_err(IdentityError::file(path))
}

/// Rejects a file that exists but is not a regular file.
fn check_regular(path: &Path, found: io::Result<fs::Metadata>, what: &str) -> Result<(), IdentityError> {
    match found {
        Ok(found) if !found.is_file() => Err(IdentityError::content(path, format!("{what}; move it away"))),
        _ => Ok(()),
    }
}

/// Temporary file next to the file that it replaces. It is removed on drop.
struct Draft(PathBuf);

impl Draft {
    fn write(path: &Path, text: &str) -> io::Result<Self> {
        /// Distinguishes the temporary files of threads of one process.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let draft = Draft(with_suffix(path, &format!(".{}-{number}", std::process::id())));
        // A file with this name is a leftover of a killed process that had the same identifier.
        let _ = fs::remove_file(&draft.0);
        let mut file = private_options().create_new(true).open(&draft.0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The file is missing after a rename.
        let _ = fs::remove_file(&self.0);
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the options for a new file that only the current user can read.
pub(crate) fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the options of [`private_options`], which also open an existing file. Rejects links.
fn unlinked_options() -> fs::OpenOptions {
    let mut options = private_options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options
}

fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Flushes the folder, so that a new name survives a power failure.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::testing::{set_mode, write};

    const LIMIT: u64 = 100;

    fn add(path: &Path) -> Result<(), String> {
        update(path, LIMIT, |before| Ok(Some(format!("{before}line\n")))).map_err(|error| error.to_string())
    }

    #[test]
    fn link_in_the_place_of_the_lock_is_refused_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, victim) = (folder.path().join("file"), folder.path().join("victim"));
        std::os::unix::fs::symlink(&victim, folder.path().join("file.lock")).expect("linked");
        let text = add(&file).expect_err("a link");
        assert!(text.contains("file.lock: a link"), "{text}");
        assert!(!victim.exists() && !file.exists());
    }

    #[test]
    fn fifo_is_refused_without_waiting_for_its_other_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        for path in [&file, &folder.path().join("other.lock")] {
            let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(path).status();
            assert!(made.expect("mkfifo").success());
        }
        let refused = read(&file, Others::Nothing, LIMIT).expect_err("a FIFO");
        assert!(refused.to_string().contains("no regular file"), "{refused}");
        for path in [&file, &other] {
            let text = add(path).expect_err("a FIFO");
            assert!(text.contains("no regular file"), "{text}");
        }
        assert!(!other.exists());
    }

    #[test]
    fn link_that_leads_to_no_file_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::os::unix::fs::symlink("nowhere", &file).expect("linked");
        let refused = create(&file, "text").expect_err("a link");
        assert!(refused.to_string().contains("a link to a missing file"), "{refused}");
    }

    #[test]
    fn folder_of_another_user_is_not_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let loose = folder.path().join("loose");
        fs::create_dir_all(loose.join("keys")).expect("folders");
        set_mode(&loose, 0o777);
        let file = loose.join("keys/file");
        assert!(add(&file).is_err() && create(&file, "text").is_err());
        assert_eq!(fs::read_dir(loose.join("keys")).expect("a folder").count(), 0);
        assert!(read(&file, Others::MayRead, LIMIT).is_err(), "who removed it is not known");
    }

    #[test]
    fn file_behind_a_chain_of_links_is_changed_where_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, one, two] = ["file", "one", "two"].map(|name| folder.path().join(name));
        write(&file, "before\n");
        std::os::unix::fs::symlink(&file, &one).expect("linked");
        std::os::unix::fs::symlink(&one, &two).expect("linked");
        add(&two).expect("added");
        assert_eq!(fs::read_to_string(&file).expect("text"), "before\nline\n");
        assert!(two.is_symlink() && one.is_symlink());
    }
}
