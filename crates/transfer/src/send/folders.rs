//! Folders that were offered and whose end is not done.

use crate::protocol::{FileTime, Kind};

use super::files::Entry;
use super::walk::Origin;

/// They are offered again on another association, where their ends would otherwise come from nowhere. A walk goes depth first, so
/// these are as many as a name has parts, and those whose ends are under way.
#[derive(Default)]
pub(super) struct OpenFolders(Vec<OpenFolder>);

struct OpenFolder {
    name: String,
    changed: FileTime,
    mode: u16,
    /// The receiver did not take it, and has said why.
    is_refused: bool,
}

impl OpenFolders {
    pub(super) fn begin(&mut self, name: &str, changed: FileTime, mode: u16) {
        self.0.push(OpenFolder { name: name.to_owned(), changed, mode, is_refused: false });
    }

    pub(super) fn refuse(&mut self, name: &str) {
        if let Some(folder) = self.0.iter_mut().rfind(|folder| folder.name == name) {
            folder.is_refused = true;
        }
    }

    /// Its end is done. Whether it had been refused.
    pub(super) fn end(&mut self, name: &str) -> bool {
        match self.0.iter().rposition(|folder| folder.name == name) {
            Some(at) => self.0.remove(at).is_refused,
            None => false,
        }
    }

    /// All of them, those first that others are in, to be offered again.
    pub(super) fn offers(&self) -> Vec<Entry> {
        let entry = |folder: &OpenFolder| {
            let OpenFolder { name, changed, mode, .. } = folder;
            let mut entry = Entry::new(name.clone(), Kind::Folder, *changed, *mode, Origin::None);
            // It was reported when it was offered first.
            entry.is_counted = true;
            entry
        };
        self.0.iter().map(entry).collect()
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
        let names: Vec<String> = folders.offers().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a"]);
    }
}
