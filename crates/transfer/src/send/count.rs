//! Counts files and bytes ahead of the walk, so that both ends know the size of the transfer early.
//!
//! The walk pauses when the receiver's window of open offers is full. Counting reads names and sizes only. It stores the names of
//! folders that are still to be read, and opens one directory at a time.

use std::rc::Rc;

use tokio::sync::oneshot;

use super::unsized_file::is_read_as_pipe;
use super::walk::{InspectedEntry, Opened, Place, Selection, SendSource, SourceKind, locate};
use crate::name::Name;
use crate::protocol::{Links, Message};
use crate::report::Report;
use crate::store::{Folder, identity_of};

/// Maximum number of folders that wait to be read. Beyond this number, the size is unknown until the walk is complete.
const MAX_WAITING_FOLDERS: usize = 1 << 16;

/// Number of files of a transfer, and their user bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    files: u64,
    /// `None` if one of them is a pipe.
    bytes: Option<u64>,
}

/// Size of a transfer, announced once on each association.
pub(super) struct Total {
    counting: Option<oneshot::Receiver<Count>>,
    known: Option<Count>,
    is_announced: bool,
    has_pipe: bool,
}

impl Total {
    /// Starts to count on a separate thread. Requires a tokio runtime.
    pub(super) fn new(sources: &[SendSource]) -> Self {
        let (caller, counting) = oneshot::channel();
        let sources = sources.to_vec();
        let has_pipe = sources.iter().any(SendSource::is_pipe);
        tokio::task::spawn_blocking(move || {
            if let Some(count) = count(&sources, MAX_WAITING_FOLDERS, &|| caller.is_closed()) {
                // The caller may have been dropped.
                let _ = caller.send(count);
            }
        });
        Total { counting: Some(counting), known: None, is_announced: false, has_pipe }
    }

    /// Announces the size again, on another association.
    pub(super) fn restart(&mut self) {
        self.is_announced = false;
    }

    /// Takes the size from a complete walk if counting has not returned one.
    pub(super) fn complete_from_walk(&mut self, report: &Report) {
        let totals = report.totals();
        let bytes = (!self.has_pipe).then_some(totals.found_bytes);
        self.known.get_or_insert(Count { files: totals.found_files, bytes });
    }

    /// Returns the message with the size when it is known, once on each association. Cancel-safe.
    pub(super) async fn next(&mut self, report: &Report) -> Message {
        if self.is_announced {
            return std::future::pending().await;
        }
        let Some(Count { files, bytes }) = self.known().await else { return std::future::pending().await };
        self.is_announced = true;
        report.expect(files, bytes);
        Message::Total { files, bytes }
    }

    async fn known(&mut self) -> Option<Count> {
        if let (None, Some(counting)) = (self.known, &mut self.counting) {
            self.known = counting.await.ok();
            self.counting = None;
        }
        self.known
    }
}

/// Counts the files that the walk offers. Returns `None` if counting is cancelled, or too many folders wait.
fn count(sources: &[SendSource], max_waiting: usize, is_cancelled: &dyn Fn() -> bool) -> Option<Count> {
    let mut total = Count { files: 0, bytes: Some(0) };
    for source in sources {
        let counter = Counter { selection: source.selection(), max_waiting, is_cancelled, total: &mut total };
        counter.source(&source.what)?;
    }
    Some(total)
}

/// A folder to read.
struct OpenFolder {
    place: Place,
    name: String,
    /// Identities of the folder and of the folders that contain it, to which a link may lead back.
    within: Vec<(u64, u64)>,
}

/// A name in a folder that waits to be read.
struct Waiting {
    parent: Rc<OpenFolder>,
    last: String,
}

/// Result of inspecting one name.
enum Inspected {
    File(u64),
    Folder(Box<OpenFolder>),
    /// Anything else, or an entry that is not offered.
    Other,
}

struct Counter<'a> {
    selection: Selection,
    max_waiting: usize,
    is_cancelled: &'a dyn Fn() -> bool,
    total: &'a mut Count,
}

impl Counter<'_> {
    fn source(mut self, source: &SourceKind) -> Option<()> {
        match source {
            SourceKind::Stream { .. } | SourceKind::Piped { .. } => {
                self.total.files += 1;
                self.total.bytes = None;
                Some(())
            }
            SourceKind::Path(path) if is_read_as_pipe(path) => {
                self.total.files += 1;
                self.total.bytes = None;
                Some(())
            }
            SourceKind::Path(path) => match locate(path, &mut Opened::default()) {
                Ok((place, name)) => self.tree(place, name),
                // The walk reports the error.
                Err(_) => Some(()),
            },
            SourceKind::Inside { folder, name } if name.is_empty() => self.all_of(folder),
            SourceKind::Inside { folder, name } => self.tree(in_folder(folder, name), name.clone()),
        }
    }

    fn all_of(&mut self, folder: &Folder) -> Option<()> {
        for entry in folder.entries("").into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string() {
                self.tree(in_folder(folder, &name), name)?;
            }
        }
        Some(())
    }

    /// Counts a file, or all files below a folder.
    fn tree(&mut self, place: Place, name: String) -> Option<()> {
        let mut waiting = Vec::new();
        match self.inspect(place, name, &[]) {
            Inspected::File(size_bytes) => self.add(size_bytes),
            Inspected::Folder(folder) => self.read(*folder, &mut waiting)?,
            Inspected::Other => {}
        }
        while let Some(Waiting { parent, last }) = waiting.pop() {
            if let Inspected::Folder(folder) = self.inspect_below(&parent, &last) {
                self.read(*folder, &mut waiting)?;
            }
        }
        Some(())
    }

    /// Counts the files in a folder, and adds its folders to those that wait.
    fn read(&mut self, folder: OpenFolder, waiting: &mut Vec<Waiting>) -> Option<()> {
        let folder = Rc::new(folder);
        // Entries that cannot be read are not offered either.
        let entries = folder.place.folder.entries(&folder.place.path);
        for entry in entries.into_iter().flatten().flatten() {
            if (self.is_cancelled)() || waiting.len() > self.max_waiting {
                return None;
            }
            let Ok(last) = entry.file_name().into_string() else { continue };
            match self.inspect_below(&folder, &last) {
                Inspected::File(size_bytes) => self.add(size_bytes),
                // The list contains only the name of the folder, so that no descriptor stays open.
                Inspected::Folder(_) => waiting.push(Waiting { parent: Rc::clone(&folder), last }),
                Inspected::Other => {}
            }
        }
        Some(())
    }

    fn add(&mut self, size_bytes: u64) {
        let total = &mut self.total;
        total.files = total.files.saturating_add(1);
        total.bytes = total.bytes.map(|bytes| bytes.saturating_add(size_bytes));
    }

    fn inspect_below(&self, folder: &OpenFolder, last: &str) -> Inspected {
        self.inspect(folder.place.below(last), format!("{}/{last}", folder.name), &folder.within)
    }

    fn inspect(&self, place: Place, name: String, within: &[(u64, u64)]) -> Inspected {
        let Ok(checked) = Name::new(&name) else { return Inspected::Other };
        if !self.selection.takes(&place, &checked).unwrap_or(false) {
            return Inspected::Other;
        }
        let Ok(InspectedEntry::Place(place)) = self.selection.inspect(&place, &checked) else {
            return Inspected::Other;
        };
        match place.folder.metadata_behind(&place.path) {
            Ok(there) if there.is_file() => Inspected::File(there.len()),
            Ok(there) if there.is_dir() => {
                let mut within = within.to_vec();
                if self.selection.links == Links::Follow {
                    let identity = identity_of(&there);
                    if within.contains(&identity) {
                        return Inspected::Other;
                    }
                    within.push(identity);
                }
                Inspected::Folder(Box::new(OpenFolder { place, name, within }))
            }
            _ => Inspected::Other,
        }
    }
}

fn in_folder(folder: &Folder, name: &str) -> Place {
    Place { folder: folder.clone(), root: None, path: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::filter::{Filters, Rule};

    fn tree() -> TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        for number in 0..40 {
            fs::create_dir_all(at(&format!("top/{}/{number}", number % 3))).expect("a folder");
            fs::write(at(&format!("top/{}/{number}/file", number % 3)), vec![1; number]).expect("written");
        }
        fs::write(at("top/raw.o"), [0; 1000]).expect("written");
        fs::write(at("top/.x.anabranch-part"), [0; 7]).expect("written");
        dir
    }

    fn count_of(sources: &[SendSource]) -> Option<Count> {
        count(sources, MAX_WAITING_FOLDERS, &|| false)
    }

    fn path(dir: &TempDir, name: &str) -> SendSource {
        SendSource::path(dir.path().join(name))
    }

    #[test]
    fn count_of_folder_is_what_walk_offers() {
        let dir = tree();
        let below_forty: u64 = (0..40).sum();
        let all = Some(Count { files: 41, bytes: Some(below_forty + 1000) });
        assert_eq!(count_of(&[path(&dir, "top")]), all);
        let folder = Folder::open(&dir.path().join("top"), crate::OnClash::Refuse).expect("a folder");
        assert_eq!(count_of(&[SendSource::inside(folder.clone(), "")]), all);
        assert_eq!(
            count_of(&[SendSource::inside(folder, "0/39")]),
            Some(Count { files: 1, bytes: Some(39) })
        );
    }

    #[test]
    fn excluded_names_are_not_counted() {
        let dir = tree();
        let rule = Rule { includes: false, pattern: "*.o".to_owned() };
        let filters = Filters::new(vec![rule]).expect("a pattern");
        let counted = count_of(&[path(&dir, "top").with_filters(filters)]);
        assert_eq!(counted.map(|count| count.files), Some(40));
    }

    #[test]
    fn pipe_among_sources_leaves_bytes_unknown() {
        let dir = tree();
        let sources = [path(&dir, "top/raw.o"), SendSource::stream("tar", &b""[..])];
        assert_eq!(count_of(&sources), Some(Count { files: 2, bytes: None }));
    }

    #[cfg(unix)]
    #[test]
    fn link_to_containing_folder_is_followed_once() {
        let dir = tree();
        std::os::unix::fs::symlink(Path::new(".."), dir.path().join("top/0/up")).expect("a link");
        let followed = path(&dir, "top").with_links(Links::Follow);
        assert_eq!(count_of(&[followed]).map(|count| count.files), Some(41));
    }

    #[test]
    fn too_many_waiting_folders_end_the_count() {
        let dir = tree();
        assert_eq!(count(&[path(&dir, "top")], 20, &|| false).map(|count| count.files), Some(41));
        assert_eq!(count(&[path(&dir, "top")], 5, &|| false), None);
    }

    #[test]
    fn count_ends_when_sender_is_dropped() {
        let dir = tree();
        assert_eq!(count(&[path(&dir, "top")], MAX_WAITING_FOLDERS, &|| true), None);
    }
}
