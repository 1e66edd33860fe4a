//! A folder that a server may fill, with links that lead out of it, next to a tree that must not change.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anabranch_transfer::{Folder, Hash, OnClash, Store};
use tempfile::TempDir;

/// Content of every file outside of the inbox, and of no file inside.
pub const MARKER: &[u8] = b"this is outside of the inbox";

/// Time of the latest change of all files: in the past, so that a change is visible.
const CHANGED: Duration = Duration::from_secs(1_000_000_000);

/// Files, folders and links below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    modified: (i64, i64),
    inode: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    File(u64, Hash),
    Folder,
    Link(PathBuf),
    Other,
}

impl Tree {
    /// Reads all entries below `path`, including `path` itself, and follows no link.
    ///
    /// # Errors
    /// Returns an error if an entry cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut tree = Tree(BTreeMap::new());
        let mut left = vec![PathBuf::new()];
        while let Some(inside) = left.pop() {
            // Joined with an empty path it would end in a slash, which is invalid for a file.
            let at = if inside.as_os_str().is_empty() { path.to_owned() } else { path.join(&inside) };
            let metadata = fs::symlink_metadata(&at)?;
            let what = if metadata.is_dir() {
                for entry in fs::read_dir(&at)? {
                    left.push(inside.join(entry?.file_name()));
                }
                What::Folder
            } else if metadata.is_symlink() {
                What::Link(fs::read_link(&at)?)
            } else if metadata.is_file() {
                What::File(metadata.len(), hash(&at)?)
            } else {
                What::Other
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let entry = Entry { mode: metadata.mode(), modified, inode: metadata.ino(), what };
            tree.0.insert(inside, entry);
        }
        Ok(tree)
    }

    /// Returns the differences of `now`, one line for each path.
    pub fn changes(&self, now: &Tree) -> Vec<String> {
        let paths = self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path)));
        paths
            .filter(|path| self.0.get(*path) != now.0.get(*path))
            .map(|path| format!("{}: {:?} became {:?}", path.display(), self.0.get(path), now.0.get(path)))
            .collect()
    }
}

/// Returns a file's hash. The file is read in pieces, so that a huge file of a peer takes no memory.
fn hash(path: &Path) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    // A huge file with holes, which would take too long to read, is identified by its length.
    if fs::metadata(path)?.len() <= 64 << 20 {
        hasher.update_reader(File::open(path)?)?;
    }
    Ok(Hash(*hasher.finalize().as_bytes()))
}

/// A folder for received files.
///
/// The folder contains files (`existing`, `empty`, `big` of two blocks), a folder `kept` with a file `inside`, a link `alias` to
/// that folder, and links that lead out: `out` and `absolute` to a folder, `link` to a file, `dangling` to a missing file, `loop`
/// to itself.
#[derive(Debug)]
pub struct Inbox {
    root: TempDir,
    outside: Tree,
    existing: BTreeMap<PathBuf, Entry>,
}

impl Inbox {
    /// Creates it in a temporary folder.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written to.
    pub fn new() -> io::Result<Self> {
        Inbox::fill(tempfile::tempdir()?)
    }

    /// Creates it in a separate folder below `path`.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written to.
    pub fn new_in(path: &Path) -> io::Result<Self> {
        Inbox::fill(tempfile::tempdir_in(path)?)
    }

    fn fill(root: TempDir) -> io::Result<Self> {
        let (inbox, outside) = (root.path().join("inbox"), root.path().join("outside"));
        fs::create_dir_all(inbox.join("kept"))?;
        fs::create_dir_all(outside.join("folder"))?;
        fs::write(outside.join("secret"), MARKER)?;
        fs::write(outside.join("folder/deep"), MARKER)?;
        fs::write(root.path().join("beside"), MARKER)?;
        fs::write(inbox.join("existing"), b"was here before")?;
        fs::write(inbox.join("empty"), b"")?;
        fs::write(inbox.join("big"), vec![7; (1 << 20) + 100])?;
        fs::write(inbox.join("kept/inside"), b"was here before, too")?;
        symlink("../outside", inbox.join("out"))?;
        symlink(&outside, inbox.join("absolute"))?;
        symlink("../outside/secret", inbox.join("link"))?;
        symlink("../outside/planted", inbox.join("dangling"))?;
        symlink("loop", inbox.join("loop"))?;
        symlink("kept", inbox.join("alias"))?;
        fs::set_permissions(inbox.join("existing"), Permissions::from_mode(0o600))?;
        fs::set_permissions(inbox.join("kept"), Permissions::from_mode(0o750))?;
        let old = ["existing", "empty", "big", "kept/inside", "kept"].map(|name| inbox.join(name));
        let secret = [outside.join("secret"), outside.join("folder/deep"), outside.join("folder")];
        for path in old.iter().chain(&secret).chain([&outside]) {
            File::open(path)?.set_times(FileTimes::new().set_modified(UNIX_EPOCH + CHANGED))?;
        }
        let existing = Tree::read(&inbox)?.0;
        Ok(Inbox { outside: outside_of(root.path())?, root, existing })
    }

    /// Returns the folder for received files.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("inbox")
    }

    /// Returns the tree that must not change.
    pub fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    /// Returns the folder as a store.
    ///
    /// # Panics
    /// Panics if the folder cannot be opened.
    pub fn store(&self, on_clash: OnClash) -> Store {
        Store::Folder(self.folder(on_clash))
    }

    /// Returns the folder for offering its files.
    ///
    /// # Panics
    /// Panics if the folder cannot be opened.
    pub fn folder(&self, on_clash: OnClash) -> Folder {
        Folder::open(&self.path(), on_clash).expect("a folder")
    }

    /// Returns changes outside of the folder, and of the files and links that it had at the beginning: there should be none.
    pub fn damage(&self) -> Vec<String> {
        self.damage_where(|_| true)
    }

    /// Returns the same, with only those changes within the folder for which `matters` is `true`.
    pub fn damage_where(&self, matters: impl Fn(&Path) -> bool) -> Vec<String> {
        let outside = outside_of(self.root.path()).map(|now| self.outside.changes(&now));
        let mut damage = outside.unwrap_or_else(|error| vec![error.to_string()]);
        let now = Tree::read(&self.path()).unwrap_or(Tree(BTreeMap::new()));
        for (path, before) in &self.existing {
            // The time of a folder changes with its entries.
            let is_same = |now: &Entry| match before.what {
                What::Folder => (now.mode, now.inode, &now.what) == (before.mode, before.inode, &before.what),
                _ => now == before,
            };
            let found = now.0.get(path);
            if matters(path) && !found.is_some_and(is_same) {
                damage.push(format!("inbox/{}: {before:?} became {found:?}", path.display()));
            }
        }
        damage
    }

    /// Returns new links that lead out of the folder at the top of their name, or that are in no folder.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn links_astray(&self) -> io::Result<Vec<String>> {
        let (now, inbox) = (Tree::read(&self.path())?, self.path().canonicalize()?);
        let is_astray = |path: &&PathBuf| {
            let entry = now.0.get(*path).map(|entry| &entry.what);
            let is_new = self.existing.get(*path).map(|entry| &entry.what) != entry;
            let top = path.components().next().filter(|_| path.components().count() > 1);
            let is_inside = |real: PathBuf| top.is_some_and(|top| real.starts_with(inbox.join(top)));
            // A dangling link leads to no other place.
            is_new
                && matches!(entry, Some(What::Link(_)))
                && (top.is_none() || inbox.join(path).canonicalize().is_ok_and(|real| !is_inside(real)))
        };
        Ok(now.0.keys().filter(is_astray).map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// Returns new files, except for the program's own hidden ones.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn new_files(&self) -> io::Result<Vec<String>> {
        let now = Tree::read(&self.path())?;
        let is_new = |path: &&PathBuf| {
            let own =
                path.extension().is_some_and(|ending| ending.to_string_lossy().starts_with("anabranch-"))
                    || path.as_os_str() == ".anabranch-stored";
            !own && self.existing.get(*path).map(|entry| &entry.what)
                != now.0.get(*path).map(|entry| &entry.what)
                && !matches!(now.0.get(*path).map(|entry| &entry.what), Some(What::Folder | What::Link(_)))
        };
        Ok(now.0.keys().filter(is_new).map(|path| path.to_string_lossy().into_owned()).collect())
    }
}

/// Returns all entries next to the inbox.
fn outside_of(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::read(&root.join("outside"))?;
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        if name != "inbox" && name != "outside" {
            let beside = Tree::read(&root.join(&name))?;
            tree.0.extend(
                beside.0.into_iter().map(|(path, entry)| (Path::new("..").join(&name).join(path), entry)),
            );
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_content_mode_time_or_number_of_files_is_damage() {
        type Change = fn(&Inbox) -> io::Result<()>;
        let changes: [Change; 6] = [
            |inbox| fs::write(inbox.outside().join("secret"), b"changed"),
            |inbox| fs::set_permissions(inbox.outside().join("folder"), Permissions::from_mode(0o700)),
            |inbox| fs::write(inbox.outside().join("planted"), b""),
            |inbox| fs::write(inbox.outside().join("../elsewhere"), b""),
            |inbox| fs::remove_file(inbox.path().join("link")),
            |inbox| {
                let file = File::open(inbox.path().join("existing"))?;
                file.set_times(FileTimes::new().set_modified(UNIX_EPOCH))
            },
        ];
        for change in changes {
            let inbox = Inbox::new().expect("made");
            assert_eq!(inbox.damage(), Vec::<String>::new());
            change(&inbox).expect("changed");
            assert!(!inbox.damage().is_empty());
        }
        let inbox = Inbox::new().expect("made");
        for (name, target) in
            [("kept/fine", "inside"), ("kept/far", "../existing"), ("top", "kept"), ("kept/none", "x")]
        {
            symlink(target, inbox.path().join(name)).expect("linked");
        }
        assert_eq!(inbox.links_astray().expect("read"), ["kept/far", "top"]);
        let inbox = Inbox::new().expect("made");
        fs::write(inbox.path().join("kept/new"), b"x").expect("written");
        assert_eq!(inbox.damage(), Vec::<String>::new());
        assert_eq!(inbox.new_files().expect("read"), ["kept/new"]);
    }
}
