//! Thread that gives complete files their names, in batches of all files that are waiting.
//!
//! Syncing one file and its folder costs a disk as much as syncing a hundred. So files wait while earlier ones are being synced,
//! and form the next batch. A batch syncs the content of all its files, gives them their names, syncs the folders, and then the
//! record. A file is reported as stored only after all of these are on the disk.

use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::durability::Durability;
use super::folder::Folder;
use super::part::Part;
use super::record::Provenance;
use crate::name::Name;
use crate::protocol::{Failure, Offer};

/// Minimum number of files or folders in a batch for which the whole file system is synced instead of each file.
const MANY: usize = 4;

/// Complete file or link that waits for its name.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) id: u32,
    pub(crate) name: Name,
    pub(crate) offer: Offer,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    /// A file whose blocks have all arrived and match their hashes.
    File { part: Box<Part>, size_bytes: u64 },
    /// A symbolic link with this target.
    Link { target: String },
}

impl Content {
    fn file(&self) -> Option<&Part> {
        match self {
            Content::File { part, .. } => Some(part),
            Content::Link { .. } => None,
        }
    }
}

/// Result of a commit.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) id: u32,
    pub(crate) content: Content,
    /// Name of the stored file, if it differs from the offered one.
    pub(crate) given: Result<Option<String>, Failure>,
    /// Error of the record, if any; the file will be compared the next time.
    pub(crate) recorded: io::Result<()>,
}

/// Committer of the files of one transfer.
#[derive(Debug)]
pub(crate) struct Committer {
    folder: Folder,
    waiting: Vec<Complete>,
    is_busy: bool,
    /// `None` if the system has no thread for it: then the caller's thread commits files.
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    /// `None` only while the worker is being dropped.
    batches: Option<SyncSender<Vec<Complete>>>,
    /// Results of each batch, or a panic of the thread, which is resumed where the results are taken.
    done: Receiver<std::thread::Result<Vec<Committed>>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Creates a committer. It calls `wake` when results are available.
    pub(crate) fn new(folder: Folder, wake: impl Fn() + Send + 'static) -> Self {
        let shared = folder.clone();
        let worker = Worker::start(move |batch| commit(&shared, batch), wake).ok();
        Committer { folder, waiting: Vec::new(), is_busy: false, worker }
    }

    pub(crate) fn add(&mut self, complete: Complete) {
        self.waiting.push(complete);
    }

    /// Returns the available results without waiting, and starts the next batch if none is in progress.
    pub(crate) fn poll(&mut self) -> Vec<Committed> {
        let Some(worker) = &self.worker else {
            return commit(&self.folder, std::mem::take(&mut self.waiting));
        };
        let mut done = Vec::new();
        if self.is_busy {
            match worker.done.try_recv() {
                Ok(committed) => {
                    self.is_busy = false;
                    done = committed.unwrap_or_else(|panic| resume_unwind(panic));
                }
                Err(_) => return done,
            }
        }
        if !self.waiting.is_empty() {
            self.is_busy = worker.take(std::mem::take(&mut self.waiting));
        }
        done
    }

    /// Returns all results, after waiting for them.
    pub(crate) fn settle(&mut self) -> Vec<Committed> {
        let mut done = self.poll();
        while let (true, Some(worker)) = (self.is_busy, &self.worker) {
            self.is_busy = false;
            let committed = worker.done.recv().unwrap_or_else(|_| Ok(Vec::new()));
            done.extend(committed.unwrap_or_else(|panic| resume_unwind(panic)));
            done.extend(self.poll());
        }
        done
    }
}

impl Worker {
    fn start(
        commit: impl Fn(Vec<Complete>) -> Vec<Committed> + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (batches, jobs) = sync_channel::<Vec<Complete>>(1);
        let (tell, done) = sync_channel(1);
        let thread = std::thread::Builder::new().name("commit".to_owned()).spawn(move || {
            for batch in jobs {
                let committed = catch_unwind(AssertUnwindSafe(|| commit(batch)));
                let is_over = committed.is_err();
                if tell.send(committed).is_err() {
                    return;
                }
                wake();
                if is_over {
                    return;
                }
            }
        })?;
        Ok(Worker { batches: Some(batches), done, thread: Some(thread) })
    }

    /// Sends a batch to the thread. Returns `true` if the thread exists and has accepted it.
    fn take(&self, batch: Vec<Complete>) -> bool {
        self.batches.as_ref().is_some_and(|batches| batches.send(batch).is_ok())
    }
}

impl Drop for Worker {
    /// Waits for the thread, which holds locks on part files, so that they are released.
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

fn commit(folder: &Folder, batch: Vec<Complete>) -> Vec<Committed> {
    match folder.durability() {
        Durability::Batch => commit_together(folder, batch),
        Durability::Each => {
            batch.into_iter().flat_map(|complete| commit_together(folder, vec![complete])).collect()
        }
    }
}

fn commit_together(folder: &Folder, batch: Vec<Complete>) -> Vec<Committed> {
    let sealed: Vec<io::Result<()>> = batch.iter().map(seal).collect();
    let contents: Vec<&File> =
        batch.iter().filter_map(|complete| complete.content.file()).map(Part::file).collect();
    let mut on_disk = sync_all(&contents).into_iter();
    let mut given = Vec::new();
    for (complete, sealed) in batch.iter().zip(sealed) {
        let on_disk = complete.content.file().and_then(|_| on_disk.next()).unwrap_or(Ok(()));
        given.push(match sealed.and(on_disk) {
            Ok(()) => rename_part(folder, complete),
            Err(error) => Err(folder.failure(&complete.name, &error)),
        });
    }
    sync_parents(folder, &batch, &mut given);
    let recorded = record(folder, &batch, &given);
    let results = given.into_iter().zip(recorded);
    let committed = |(complete, (given, recorded)): (Complete, _)| {
        let Complete { id, content, .. } = complete;
        Committed { id, content, given, recorded }
    };
    batch.into_iter().zip(results).map(committed).collect()
}

fn seal(complete: &Complete) -> io::Result<()> {
    match &complete.content {
        Content::File { part, size_bytes } => part.seal(*size_bytes, &complete.offer),
        Content::Link { .. } => Ok(()),
    }
}

fn rename_part(folder: &Folder, complete: &Complete) -> Result<Option<String>, Failure> {
    match &complete.content {
        Content::File { part, .. } => folder.rename_part(part),
        Content::Link { target } => folder.make_link(&complete.name, target),
    }
}

/// Syncs the folders of the files that got their names, one by one and each once.
fn sync_parents(folder: &Folder, batch: &[Complete], given: &mut [Result<Option<String>, Failure>]) {
    if cfg!(not(unix)) {
        return;
    }
    let parent = |complete: &Complete| complete.name.parent().unwrap_or(".").to_owned();
    let mut parents: BTreeMap<String, Option<&File>> = BTreeMap::new();
    for (complete, _) in batch.iter().zip(given.iter()).filter(|(_, given)| given.is_ok()) {
        let inside = parents.entry(parent(complete)).or_default();
        *inside = inside.or(complete.content.file().map(Part::file));
    }
    let mut file_systems = (parents.len() >= MANY).then(FileSystems::default);
    for (path, inside) in parents {
        let Err(error) = sync_folder(folder, &path, inside, &mut file_systems) else { continue };
        for (complete, given) in batch.iter().zip(given.iter_mut()) {
            if given.is_ok() && parent(complete) == path {
                *given = Err(folder.failure(&complete.name, &error));
            }
        }
    }
}

/// Syncs one folder to the disk. `inside` is a file that has just got its name in the folder.
fn sync_folder(
    folder: &Folder,
    path: &str,
    inside: Option<&File>,
    file_systems: &mut Option<FileSystems>,
) -> io::Result<()> {
    let opened = match folder.retries.retry(|| folder.open_file(path)) {
        // A folder with write but no read permission cannot be opened to be synced.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return match inside {
                Some(file) if FileSystems::default().sync(file) => Ok(()),
                Some(_) if cfg!(not(target_os = "linux")) => Ok(()),
                _ => Err(error),
            };
        }
        opened => opened?,
    };
    let is_synced = file_systems.as_mut().is_some_and(|file_systems| file_systems.sync(&opened));
    if is_synced { Ok(()) } else { opened.sync_all() }
}

/// Records the files that are stored under the offered name. Call it after the last change of their state.
fn record(
    folder: &Folder,
    batch: &[Complete],
    given: &[Result<Option<String>, Failure>],
) -> Vec<io::Result<()>> {
    let mut states = Vec::new();
    for (complete, given) in batch.iter().zip(given) {
        if matches!(given, Ok(None))
            && let Some(part) = complete.content.file()
            && let Ok(state) = part.state()
        {
            states.push((&complete.name, &complete.offer, state));
        }
    }
    let mut failed = folder.record_all(&states, Provenance::Stored).err();
    // The error is reported once only.
    batch.iter().map(|_| failed.take().map_or(Ok(()), Err)).collect()
}

/// Syncs files to the disk, and returns the result for each.
fn sync_all(files: &[&File]) -> Vec<io::Result<()>> {
    let mut file_systems = FileSystems::default();
    if files.len() >= MANY && files.iter().all(|file| file_systems.sync(file)) {
        return files.iter().map(|_| Ok(())).collect();
    }
    files.iter().map(|file| file.sync_all()).collect()
}

/// File systems that were synced as a whole.
#[derive(Debug, Default)]
struct FileSystems {
    #[cfg(target_os = "linux")]
    done: BTreeSet<u64>,
}

impl FileSystems {
    /// Syncs the file system of a file, once. Returns `false` if that is impossible or failed, and the state of every file is
    /// unknown.
    #[cfg(target_os = "linux")]
    fn sync(&mut self, file: &File) -> bool {
        use std::os::unix::fs::MetadataExt;
        let Ok(metadata) = file.metadata() else { return false };
        if !self.done.contains(&metadata.dev()) {
            if rustix::fs::syncfs(file).is_err() {
                return false;
            }
            self.done.insert(metadata.dev());
        }
        true
    }

    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unused_self)]
    fn sync(&mut self, _file: &File) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::OnClash;

    #[test]
    fn a_panic_while_files_are_committed_wakes_the_transfer_and_ends_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
        let woken = Arc::new(AtomicUsize::new(0));
        let wakes = Arc::clone(&woken);
        let wake = move || {
            wakes.fetch_add(1, Ordering::SeqCst);
        };
        let worker = Worker::start(|_| panic!("a fault of ours"), wake).expect("a thread");
        assert!(worker.take(Vec::new()));
        let mut committer = Committer { folder, waiting: Vec::new(), is_busy: true, worker: Some(worker) };
        let panic = catch_unwind(AssertUnwindSafe(|| committer.settle().len()))
            .expect_err("the panic continues here");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a fault of ours"));
        drop(committer);
        assert_eq!(woken.load(Ordering::SeqCst), 1);
    }
}
