//! Gives complete files their names, as many at a time as have come, on a thread of its own.
//!
//! Bringing one file and its folder to the disk costs a disk as much as bringing a hundred. So files wait for as long as those
//! before them are on their way, and go together then: first the content of all of them, then their names, then the folders, then
//! the record. None is told to be stored before all of that is on the disk.

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

/// From so many files or folders on, the file system is asked for all of them at once.
const MANY: usize = 4;

/// Something that is to get its name.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) id: u32,
    pub(crate) name: Name,
    pub(crate) offer: Offer,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    /// A file of which every block has arrived and agrees with its hash.
    File { part: Box<Part>, size_bytes: u64 },
    /// A symbolic link that leads there.
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

/// What came of it.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) id: u32,
    pub(crate) content: Content,
    /// The name it got, if that is another one than was offered.
    pub(crate) given: Result<Option<String>, Failure>,
    /// Why it could not be recorded; it will be compared the next time.
    pub(crate) recorded: io::Result<()>,
}

/// Commits the files of one transfer.
#[derive(Debug)]
pub(crate) struct Committer {
    folder: Folder,
    waiting: Vec<Complete>,
    is_busy: bool,
    /// `None` where the system has no thread for it: then files are committed where they come.
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    /// `None` while it is dropped.
    batches: Option<SyncSender<Vec<Complete>>>,
    /// What came of each batch. A panic goes on where the results are taken, or nobody would ever hear of the files.
    done: Receiver<std::thread::Result<Vec<Committed>>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// `wake` is called when something is done.
    pub(crate) fn new(folder: Folder, wake: impl Fn() + Send + 'static) -> Self {
        let shared = folder.clone();
        let worker = Worker::start(move |batch| commit(&shared, batch), wake).ok();
        Committer { folder, waiting: Vec::new(), is_busy: false, worker }
    }

    pub(crate) fn add(&mut self, complete: Complete) {
        self.waiting.push(complete);
    }

    /// What is done, without waiting for anything; what waits goes on its way if nothing else is.
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

    /// What is done, after waiting for all of it.
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

    /// Whether the thread is there and has taken it.
    fn take(&self, batch: Vec<Complete>) -> bool {
        self.batches.as_ref().is_some_and(|batches| batches.send(batch).is_ok())
    }
}

impl Drop for Worker {
    /// The thread holds locks on part files, so that nobody else can have them before it has ended.
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
            Ok(()) => give_name(folder, complete),
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

fn give_name(folder: &Folder, complete: &Complete) -> Result<Option<String>, Failure> {
    match &complete.content {
        Content::File { part, .. } => folder.give_name(part),
        Content::Link { target } => folder.make_link(&complete.name, target),
    }
}

/// Brings the folders of those that got their names to the disk, each once and one after the other.
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

/// Brings one folder to the disk; `inside` is a file that just got its name in it.
fn sync_folder(
    folder: &Folder,
    path: &str,
    inside: Option<&File>,
    file_systems: &mut Option<FileSystems>,
) -> io::Result<()> {
    let opened = match folder.patience.retry(|| folder.open_file(path)) {
        // A folder that may be written to and not read cannot be opened for it.
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

/// Records those that are stored under the name that was offered. After everything that changes their state.
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
    // One line about it is enough.
    batch.iter().map(|_| failed.take().map_or(Ok(()), Err)).collect()
}

/// Brings files to the disk, and returns for each whether it is there.
fn sync_all(files: &[&File]) -> Vec<io::Result<()>> {
    let mut file_systems = FileSystems::default();
    if files.len() >= MANY && files.iter().all(|file| file_systems.sync(file)) {
        return files.iter().map(|_| Ok(())).collect();
    }
    files.iter().map(|file| file.sync_all()).collect()
}

/// File systems that were brought to the disk as a whole.
#[derive(Debug, Default)]
struct FileSystems {
    #[cfg(target_os = "linux")]
    done: BTreeSet<u64>,
}

impl FileSystems {
    /// Brings the file system of a file to the disk, once; `false` where that cannot be or has failed, and nothing is known of
    /// any file.
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
        let panic = catch_unwind(AssertUnwindSafe(|| committer.settle().len())).expect_err("it goes on here");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a fault of ours"));
        drop(committer);
        assert_eq!(woken.load(Ordering::SeqCst), 1);
    }
}
