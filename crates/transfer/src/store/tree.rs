//! Traversal of a whole tree with a fixed number of descriptors at any depth.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, DirEntry, Metadata};

use super::batch::Batch;
use super::directory::open_dir_nofollow;
use crate::name::MAX_PARTS;

/// An entry of a tree.
#[derive(Clone, Copy)]
pub(super) struct TreeEntry<'a> {
    pub(super) name: &'a OsStr,
    pub(super) metadata: &'a Metadata,
    /// Set for an entry at the top of the tree.
    pub(super) is_top: bool,
}

/// Folder that is being read. Its descriptor is closed while a subfolder is read.
struct Level {
    path: PathBuf,
    folders: Batch,
}

/// Passes each entry below a folder to `see`, which returns `true` for each folder whose entries are to follow. Symbolic links are
/// not followed, and unreadable entries are skipped. Returns `false` if the tree has more than `most_entries`, or is deeper than a
/// name can be.
///
/// # Errors
/// Fails if the folder itself cannot be read.
pub(super) fn read_tree(
    root: &Dir,
    most_entries: usize,
    mut see: impl FnMut(TreeEntry<'_>) -> bool,
) -> io::Result<bool> {
    let mut read = Reading { root, left: most_entries, is_over: false, is_whole: true, see: &mut see };
    let mut levels = vec![read.level(PathBuf::new())?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut().filter(|_| !read.is_over) else { break };
        match level.folders.take() {
            Some(_) if depth > MAX_PARTS => read.is_whole = false,
            Some(name) => {
                let path = level.path.join(name);
                levels.extend(read.level(path));
            }
            None if level.folders.begin_next() => {
                let _ = read.entries(level);
            }
            None => drop(levels.pop()),
        }
    }
    Ok(read.is_whole)
}

struct Reading<'a> {
    root: &'a Dir,
    /// Number of entries that may still be read.
    left: usize,
    /// Set if the tree has more entries than the maximum.
    is_over: bool,
    is_whole: bool,
    see: &'a mut dyn FnMut(TreeEntry<'_>) -> bool,
}

impl Reading<'_> {
    fn level(&mut self, path: PathBuf) -> io::Result<Level> {
        let mut level = Level { path, folders: Batch::default() };
        self.entries(&mut level)?;
        Ok(level)
    }

    fn entries(&mut self, level: &mut Level) -> io::Result<()> {
        let is_top = level.path.as_os_str().is_empty();
        // Files were passed when the level was read for the first time.
        let is_first = level.folders.is_first();
        for entry in self.open(&level.path)?.entries()? {
            if is_first && self.left == 0 {
                (self.is_over, self.is_whole) = (true, false);
                break;
            }
            self.left -= usize::from(is_first);
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            let is_seen = is_first || (is_folder(&entry) && level.folders.admits(&name));
            let Some(metadata) = entry.metadata().ok().filter(|_| is_seen) else { continue };
            if (self.see)(TreeEntry { name: &name, metadata: &metadata, is_top }) && metadata.is_dir() {
                level.folders.add(&name);
            }
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> io::Result<Dir> {
        path.iter().try_fold(self.root.try_clone()?, open_dir_nofollow)
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

#[cfg(all(test, unix))]
mod tests {
    #[cfg(target_os = "linux")]
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::super::batch::MAX_BATCH_BYTES;
    #[cfg(target_os = "linux")]
    use super::super::testing::open_below;
    use super::super::{Folder, Unfinished};
    use super::*;
    use crate::protocol::OnClash;

    /// Creates paths below a folder, as deep as a name can be.
    fn deep() -> TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("x/".repeat(MAX_PARTS - 1));
        fs::create_dir_all(&path).expect("made");
        fs::write(path.join(".file.anabranch-part"), "12345").expect("written");
        dir
    }

    fn open(path: &Path) -> Dir {
        Dir::open_ambient_dir(path, cap_std::ambient_authority()).expect("a folder")
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn deep_tree_is_read_with_a_fixed_number_of_descriptors() {
        let dir = deep();
        let (most, entries) = (Cell::new(0), Cell::new(0));
        let is_whole = read_tree(&open(dir.path()), usize::MAX, |_| {
            most.set(most.get().max(open_below(dir.path())));
            entries.set(entries.get() + 1);
            true
        });
        assert!(is_whole.expect("read"));
        assert_eq!(entries.get(), MAX_PARTS);
        assert!((2..=5).contains(&most.get()), "{} descriptors", most.get());
    }

    #[test]
    fn deep_tree_is_counted_and_summed() {
        let dir = deep();
        let folder = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
        let found = folder.unfinished(1_000).expect("read");
        assert_eq!(found, Unfinished { files: 1, bytes: 5, oldest: None, is_all: true });
        assert!(!folder.unfinished(MAX_PARTS - 1).expect("read").is_all);
        assert!(folder.quota_bytes() >= 5);
    }

    #[test]
    fn folders_beyond_one_batch_are_read_once_and_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let count = 2 * MAX_BATCH_BYTES / 40;
        for number in 0..count {
            let path = dir.path().join(format!("{number:040}"));
            fs::create_dir(&path).expect("made");
            fs::write(path.join("file"), "1").expect("written");
        }
        fs::write(dir.path().join("top"), "1").expect("written");
        symlink(".", dir.path().join("link")).expect("made");
        let mut files = 0;
        let is_whole = read_tree(&open(dir.path()), 2 * count + 2, |entry| {
            files += usize::from(entry.metadata.is_file());
            true
        });
        assert!(is_whole.expect("read"));
        assert_eq!(files, count + 1);
    }
}
