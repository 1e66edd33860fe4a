//! Offered folders for which the receiver has not confirmed the end of the folder.

use crate::protocol::{FileTime, Kind};

use super::files::Entry;
use super::walk::Origin;

/// Folders that are begun and not ended. The sender repeats their offers on another association, because the end of a folder must
/// follow its offer. The walk is depth first. So the number of open folders is at most the number of parts of a name, plus the
/// folders whose end is in flight.
#[derive(Default)]
pub(super) struct OpenFolders {
    open: Vec<OpenFolder>,
    /// Top-level folders that are done.
    roots: Vec<OpenFolder>,
}

struct OpenFolder {
    name: String,
    changed: FileTime,
    mode: u16,
    /// Set if the receiver has refused the folder.
    is_refused: bool,
}

impl OpenFolders {
    pub(super) fn begin(&mut self, name: &str, changed: FileTime, mode: u16) {
        self.open.push(OpenFolder { name: name.to_owned(), changed, mode, is_refused: false });
    }

    pub(super) fn refuse(&mut self, name: &str) {
        if let Some(folder) = self.open.iter_mut().rfind(|folder| folder.name == name) {
            folder.is_refused = true;
        }
    }

    /// Records that the end of a folder is done. Returns `true` if the receiver had refused the folder.
    pub(super) fn end(&mut self, name: &str) -> bool {
        let Some(at) = self.open.iter().rposition(|folder| folder.name == name) else { return false };
        let folder = self.open.remove(at);
        let is_refused = folder.is_refused;
        if !is_refused && !self.open.iter().any(|other| other.holds(name)) {
            self.roots.push(folder);
        }
        is_refused
    }

    /// Returns the offers of all open folders, each after the folder that contains it, for repetition on another association.
    /// `with_roots` adds the top-level folders that are done, to which the listings of a later deletion refer.
    pub(super) fn offers(&self, with_roots: bool) -> Vec<Entry> {
        let roots = self.roots.iter().filter(|_| with_roots);
        let roots = roots.flat_map(|root| [root.entry(Kind::Folder), root.entry(Kind::FolderEnd)]);
        roots.chain(self.open.iter().map(|folder| folder.entry(Kind::Folder))).collect()
    }
}

impl OpenFolder {
    fn entry(&self, kind: Kind) -> Entry {
        let OpenFolder { name, changed, mode, .. } = self;
        let mut entry = Entry::new(name.clone(), kind, *changed, *mode, Origin::None);
        // The folder was counted when it was first offered.
        entry.is_counted = true;
        entry
    }

    fn holds(&self, name: &str) -> bool {
        name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_offered_again_until_their_end_is_done() {
        let mut folders = OpenFolders::default();
        let changed = FileTime { seconds: 0, nanos: 0 };
        for name in ["a", "a/b", "a/b/c"] {
            folders.begin(name, changed, 0o755);
        }
        folders.refuse("a/b");
        assert!(!folders.end("a/b/c") && folders.end("a/b") && !folders.end("x"));
        let names = |folders: &OpenFolders, with_roots| {
            let offers = folders.offers(with_roots).into_iter();
            offers.map(|entry| (entry.name, entry.kind == Kind::FolderEnd)).collect::<Vec<_>>()
        };
        assert_eq!(names(&folders, true), [("a".to_owned(), false)], "only top-level folders");
        assert!(!folders.end("a") && names(&folders, false).is_empty());
        let again = [("a".to_owned(), false), ("a".to_owned(), true)];
        assert_eq!(names(&folders, true), again, "repeated while its listing is not complete");
    }
}
