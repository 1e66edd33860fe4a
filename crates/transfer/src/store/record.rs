//! Record of the files of a folder that are known, without reading them, to equal a sender's.
//!
//! A file at the top of the folder has a digest for each name. The digest covers the sender, the offered version (size and time),
//! and the state of the file when it was stored or compared. The state includes the inode and the time of its last change of any
//! kind, which no program can set, so any later access that changes the file also changes the digest. A file without an entry is
//! compared. So a record that is missing, damaged, full or out of date costs time, but never causes a wrong file.
//!
//! Entries are only appended, under a lock, so that several processes may share a folder. An entry needs no separate checksum: a
//! damaged digest matches no file.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::directory::Directory;
use super::disk::{Disk, Step};
use crate::identity::Owner;
use crate::name::{Name, RECORD_NAME};
use crate::protocol::Offer;
use crate::scarcity::Scarcity;

const MAGIC: [u8; 8] = *b"ANBSTOR1";
const KEY_LEN: usize = 32;
const HEADER_LEN: usize = MAGIC.len() + KEY_LEN + SUM_LEN;
const SUM_LEN: usize = 8;
const PLACE_LEN: usize = 8;
const DIGEST_LEN: usize = 16;
const ENTRY_LEN: usize = PLACE_LEN + DIGEST_LEN;
/// Maximum number of entries of a record; beyond it the older half is dropped.
const MOST_ENTRIES: usize = 1 << 20;
/// Time for which another process may hold the record before a transfer continues without it.
const LOCKED_FOR: Duration = Duration::from_secs(1);
/// Pause between two attempts to lock it.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Time after which a record that could not be opened is retried.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

type Place = [u8; PLACE_LEN];
type Digest = [u8; DIGEST_LEN];

/// Record of a folder. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    state: Arc<Mutex<State>>,
    most: usize,
}

#[derive(Debug)]
enum State {
    /// The record has not been read, or a failed read is not repeated before `not_before`.
    Unread {
        not_before: Option<Instant>,
    },
    Open(Table),
    /// The file is not a record, or is unusable: all files are compared.
    None,
}

/// Content of the file that has been read.
#[derive(Debug)]
struct Table {
    file: File,
    key: [u8; KEY_LEN],
    entries: BTreeMap<Place, Digest>,
    /// Number of bytes of the file that were read.
    read: u64,
}

impl Default for Record {
    fn default() -> Self {
        Record { state: Arc::new(Mutex::new(State::Unread { not_before: None })), most: MOST_ENTRIES }
    }
}

/// Origin of a recorded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// The sender's offer was stored under this name.
    Stored,
    /// The file existed, and has the content of the offer.
    Equal,
}

/// Version of a sender's file, which a stored file is compared with.
pub(super) struct Version<'a> {
    pub(super) owner: Owner,
    pub(super) name: &'a Name,
    pub(super) offer: &'a Offer,
}

impl Record {
    /// Returns the provenance of a file that was recorded as this version, if it is unchanged since.
    pub(super) fn find(
        &self,
        folder: &Directory,
        version: &Version<'_>,
        file: FileState,
    ) -> Option<Provenance> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A lookup creates no record.
        if matches!(*state, State::Unread { .. }) && folder.dir.symlink_metadata(RECORD_NAME).is_err() {
            return None;
        }
        let table = state.table(folder)?;
        // Another process may have added the entry.
        table.find(version, file).or_else(|| table.catch_up().ok().and_then(|()| table.find(version, file)))
    }

    /// Records that these files are these versions.
    pub(super) fn add(
        &self,
        folder: &Directory,
        files: &[(Version<'_>, FileState)],
        provenance: Provenance,
        disk: &Disk,
    ) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(table) = state.table(folder) else { return Ok(()) };
        let entries: Vec<(Place, Digest)> =
            files.iter().filter_map(|(version, file)| table.entry(version, *file, provenance)).collect();
        if entries.is_empty() {
            return Ok(());
        }
        disk.before(Step::Record)?;
        lock(&table.file)?;
        let added = table.append(&entries, self.most);
        table.file.unlock()?;
        added
    }
}

impl State {
    fn table(&mut self, folder: &Directory) -> Option<&mut Table> {
        if let State::Unread { not_before } = self
            && not_before.is_none_or(|at| Instant::now() >= at)
        {
            *self = match Table::open(folder) {
                Ok(Some(table)) => State::Open(table),
                Err(error) if error.is_scarcity() || error.kind() == ErrorKind::WouldBlock => {
                    State::Unread { not_before: Some(Instant::now() + READ_AGAIN_AFTER) }
                }
                Ok(None) | Err(_) => State::None,
            };
        }
        match self {
            State::Open(table) => Some(table),
            State::Unread { .. } | State::None => None,
        }
    }
}

impl Table {
    /// Opens or creates the record; `None` if another file has its name.
    fn open(folder: &Directory) -> io::Result<Option<Self>> {
        let file = match folder.open_plain(RECORD_NAME)? {
            Some(file) => file,
            None => return Ok(None),
        };
        lock(&file)?;
        let opened = Table::read_header(file);
        if let Ok(Some(table)) = &opened {
            table.file.unlock()?;
        }
        opened.and_then(|table| table.map_or(Ok(None), |mut table| table.catch_up().map(|()| Some(table))))
    }

    fn read_header(mut file: File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_LEN];
        if file.metadata()?.len() == 0 {
            return Table::create(file).map(Some);
        }
        file.seek(SeekFrom::Start(0))?;
        match file.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Table::retake(file),
            Err(error) => return Err(error),
        }
        let key: [u8; KEY_LEN] = header[MAGIC.len()..][..KEY_LEN].try_into().expect("the length of a key");
        if header != header_of(&key) {
            return Table::retake(file);
        }
        Ok(Some(Table { file, key, entries: BTreeMap::new(), read: HEADER_LEN as u64 }))
    }

    /// Restarts a record whose header is damaged, and leaves any other file unchanged.
    fn retake(mut file: File) -> io::Result<Option<Self>> {
        let mut magic = [0; MAGIC.len()];
        file.seek(SeekFrom::Start(0))?;
        let is_ours = file.read_exact(&mut magic).is_ok() && magic == MAGIC;
        if is_ours { Table::create(file).map(Some) } else { Ok(None) }
    }

    fn create(mut file: File) -> io::Result<Self> {
        let mut key = [0; KEY_LEN];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header_of(&key))?;
        Ok(Table { file, key, entries: BTreeMap::new(), read: HEADER_LEN as u64 })
    }

    /// Reads entries that were added since the last time, by any process.
    fn catch_up(&mut self) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        if len < self.read {
            // The record was restarted or truncated.
            self.entries.clear();
            self.read = HEADER_LEN as u64;
        }
        let (whole, most) = ((len.saturating_sub(self.read)) / ENTRY_LEN as u64, MOST_ENTRIES as u64);
        // A record with more entries than the maximum was not written by this program. Only the latest entries are used.
        self.read += whole.saturating_sub(most) * ENTRY_LEN as u64;
        self.file.seek(SeekFrom::Start(self.read))?;
        let mut entries = io::BufReader::new(&self.file).take(whole.min(most) * ENTRY_LEN as u64);
        let mut entry = [0; ENTRY_LEN];
        while entries.limit() > 0 {
            entries.read_exact(&mut entry)?;
            let (place, digest) = entry.split_at(PLACE_LEN);
            let place = place.try_into().expect("the length of a place");
            self.entries.insert(place, digest.try_into().expect("the length of a digest"));
            self.read += ENTRY_LEN as u64;
        }
        Ok(())
    }

    /// Adds entries, which are few compared with `most`. The file is locked.
    fn append(&mut self, entries: &[(Place, Digest)], most: usize) -> io::Result<()> {
        self.catch_up()?;
        let is_new = |(place, digest): &&(Place, Digest)| self.entries.get(place) != Some(digest);
        let fresh: Vec<(Place, Digest)> = entries.iter().filter(is_new).copied().collect();
        if (self.read - HEADER_LEN as u64) / ENTRY_LEN as u64 + fresh.len() as u64 > most as u64 {
            self.drop_older(most / 2)?;
        }
        let bytes: Vec<u8> =
            fresh.iter().flat_map(|(place, digest)| place.iter().chain(digest)).copied().collect();
        // A partial entry of another process is overwritten.
        self.file.seek(SeekFrom::Start(self.read))?;
        self.file.write_all(&bytes)?;
        self.entries.extend(fresh);
        self.read += bytes.len() as u64;
        Ok(())
    }

    /// Keeps this many of the latest entries. A crash during this loses entries, but no files.
    fn drop_older(&mut self, kept: usize) -> io::Result<()> {
        let kept_bytes = (kept * ENTRY_LEN) as u64;
        self.file.seek(SeekFrom::Start(self.read - kept_bytes))?;
        let mut latest = Vec::with_capacity(kept * ENTRY_LEN);
        (&mut self.file).take(kept_bytes).read_to_end(&mut latest)?;
        self.file.set_len(HEADER_LEN as u64)?;
        self.file.seek(SeekFrom::Start(HEADER_LEN as u64))?;
        self.file.write_all(&latest)?;
        self.read = HEADER_LEN as u64;
        self.entries.clear();
        self.catch_up()
    }

    fn find(&self, version: &Version<'_>, file: FileState) -> Option<Provenance> {
        let is_recorded = |provenance: &Provenance| {
            let entry = self.entry(version, file, *provenance);
            entry.is_some_and(|(place, digest)| self.entries.get(&place) == Some(&digest))
        };
        [Provenance::Stored, Provenance::Equal].into_iter().find(is_recorded)
    }

    /// Returns the entry of a file; `None` if the system does not report whether it was changed.
    fn entry(
        &self,
        version: &Version<'_>,
        file: FileState,
        provenance: Provenance,
    ) -> Option<(Place, Digest)> {
        let mut place = blake3::Hasher::new_keyed(&self.key);
        place.update(b"name").update(version.owner.as_bytes()).update(version.name.as_str().as_bytes());
        let place = place.finalize();
        let offered = (&version.offer.kind, version.offer.changed, file.0?);
        let offered = postcard::to_stdvec(&offered).expect("a vector takes everything");
        let mut digest = blake3::Hasher::new_keyed(&self.key);
        let label: &[u8] = match provenance {
            Provenance::Stored => b"stored",
            // Label of all entries in the format without provenance.
            Provenance::Equal => b"state",
        };
        digest.update(label).update(place.as_bytes()).update(&offered);
        let first = |hash: blake3::Hash| -> [u8; DIGEST_LEN] {
            *hash.as_bytes().first_chunk().expect("a hash is longer")
        };
        let place = *first(place).first_chunk().expect("a place is shorter");
        Some((place, first(digest.finalize())))
    }
}

/// Locks the record. Other processes hold it briefly; a process that is stopped while it holds the lock delays no transfer.
fn lock(file: &File) -> io::Result<()> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if since.elapsed() >= LOCKED_FOR => {
                return Err(io::Error::new(ErrorKind::WouldBlock, "another process has locked it"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

fn header_of(key: &[u8; KEY_LEN]) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[MAGIC.len()..][..KEY_LEN].copy_from_slice(key);
    let sum = blake3::keyed_hash(key, &MAGIC);
    header[HEADER_LEN - SUM_LEN..].copy_from_slice(&sum.as_bytes()[..SUM_LEN]);
    header
}

/// State of a file: its size, device and inode, and the times of the last change of its content and of its metadata. `None` on
/// systems without a time that programs cannot set: there no record is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState(Option<[u64; 7]>);

impl FileState {
    /// Returns the state of an open file.
    pub(crate) fn of(file: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
            FileState::from_parts([file.len(), file.dev(), file.ino()], times)
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            FileState(None)
        }
    }

    /// Returns the state of a file from its metadata. The file need not be readable.
    pub(super) fn of_found(file: &cap_std::fs::Metadata) -> Self {
        #[cfg(unix)]
        {
            use cap_std::fs::MetadataExt;
            let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
            FileState::from_parts([file.len(), file.dev(), file.ino()], times)
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            FileState(None)
        }
    }

    #[cfg(unix)]
    fn from_parts([len, device, inode]: [u64; 3], times: [i64; 4]) -> Self {
        let [modified, modified_nanos, changed, changed_nanos] = times.map(i64::cast_unsigned);
        FileState(Some([len, device, inode, modified, modified_nanos, changed, changed_nanos]))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::SenderId;
    use crate::protocol::{FileTime, Kind};

    /// A folder with a file of this name, from the view of one process.
    struct Process {
        folder: Directory,
        record: Record,
    }

    impl Process {
        fn new(dir: &TempDir, most: usize) -> Self {
            let folder = Directory::open(dir.path()).expect("a folder");
            Process { folder, record: Record { most, ..Record::default() } }
        }

        fn holds(&self, owner: u8, name: &str, seconds: i64) -> bool {
            let state =
                FileState::of(&self.folder.open_file(name).expect("open").metadata().expect("metadata"));
            let (name, offer) = (Name::new(name).expect("a name"), offer(name, seconds));
            let version =
                Version { owner: SenderId::from_bytes([owner; 16]).owner(), name: &name, offer: &offer };
            self.record.find(&self.folder, &version, state).is_some()
        }

        fn add(&self, owner: u8, name: &str, seconds: i64) {
            let state =
                FileState::of(&self.folder.open_file(name).expect("open").metadata().expect("metadata"));
            let (name, offer) = (Name::new(name).expect("a name"), offer(name, seconds));
            let version =
                Version { owner: SenderId::from_bytes([owner; 16]).owner(), name: &name, offer: &offer };
            self.record
                .add(&self.folder, &[(version, state)], Provenance::Stored, &Disk::default())
                .expect("added");
        }
    }

    fn offer(name: &str, seconds: i64) -> Offer {
        let kind = Kind::File { size_bytes: 7, first: None };
        Offer { id: 0, name: name.into(), kind, changed: FileTime { seconds, nanos: 0 }, mode: 0o644 }
    }

    fn with_file(name: &str) -> TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join(name), "content").expect("written");
        dir
    }

    /// Changes a file until its time stamps differ, and hides that as well as a program can.
    fn tamper(path: &Path, change: impl Fn()) {
        let before = fs::metadata(path).expect("metadata");
        while FileState::of(&fs::metadata(path).expect("metadata")) == FileState::of(&before) {
            std::thread::sleep(Duration::from_millis(5));
            change();
            let file = fs::File::options().write(true).open(path).expect("open");
            file.set_modified(before.modified().expect("a time")).expect("set");
        }
    }

    #[test]
    fn latest_version_of_a_sender_is_known_to_every_process() {
        let dir = with_file("file");
        let (one, two) = (Process::new(&dir, 100), Process::new(&dir, 100));
        assert!(!two.holds(1, "file", 5), "it has read the record before it is written");
        one.add(1, "file", 5);
        assert!(one.holds(1, "file", 5) && two.holds(1, "file", 5));
        assert!(Process::new(&dir, 100).holds(1, "file", 5));
        assert!(!one.holds(2, "file", 5), "another sender");
        assert!(!one.holds(1, "file", 6), "another time");
        two.add(1, "file", 6);
        assert!(one.holds(1, "file", 6) && !one.holds(1, "file", 5), "the latest counts");
    }

    #[test]
    fn changed_file_is_not_trusted_after_any_change() {
        let path = |dir: &TempDir| dir.path().join("file");
        let rewrite = |dir: &TempDir| fs::write(path(dir), "CONTENT").expect("written");
        let allow = |dir: &TempDir| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(path(dir), mode).expect("set");
        };
        let replace = |dir: &TempDir| {
            fs::copy(path(dir), dir.path().join("copy")).expect("copied");
            fs::rename(dir.path().join("copy"), path(dir)).expect("renamed");
        };
        for change in [&rewrite as &dyn Fn(&TempDir), &allow, &replace] {
            let dir = with_file("file");
            let process = Process::new(&dir, 100);
            process.add(1, "file", 5);
            assert!(process.holds(1, "file", 5));
            tamper(&path(&dir), || change(&dir));
            assert!(!process.holds(1, "file", 5));
        }
    }

    #[test]
    fn a_record_keeps_to_its_size_and_forgets_the_oldest() {
        let dir = tempfile::tempdir().expect("a folder");
        let process = Process::new(&dir, 8);
        let names: Vec<String> = (0..20).map(|number| format!("{number}")).collect();
        for name in &names {
            fs::write(dir.path().join(name), "content").expect("written");
            process.add(1, name, 5);
            let length = fs::metadata(dir.path().join(RECORD_NAME)).expect("there").len();
            assert!(length <= (HEADER_LEN + 8 * ENTRY_LEN) as u64, "{length}");
        }
        assert!(process.holds(1, "19", 5) && process.holds(1, "17", 5));
        assert!(!process.holds(1, "0", 5));
        assert!(!Process::new(&dir, 8).holds(1, "0", 5) && Process::new(&dir, 8).holds(1, "19", 5));
    }

    #[test]
    fn foreign_record_is_unchanged_and_ignored() {
        let dir = with_file("file");
        let path = dir.path().join(RECORD_NAME);
        fs::write(&path, "somebody's notes").expect("written");
        let process = Process::new(&dir, 100);
        process.add(1, "file", 5);
        assert!(!process.holds(1, "file", 5));
        assert_eq!(fs::read(&path).expect("there"), b"somebody's notes");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("file", &path).expect("linked");
        let process = Process::new(&dir, 100);
        process.add(1, "file", 5);
        assert!(!process.holds(1, "file", 5));
        assert_eq!(fs::read(dir.path().join("file")).expect("there"), b"content");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn corrupt_record_invents_no_entry_and_recording_continues(
            cut in 0_usize..300,
            garbled in prop::collection::vec((0_usize..300, any::<u8>()), 0..8),
        ) {
            let dir = with_file("file");
            let names: Vec<String> = (0..8).map(|number| format!("{number}")).collect();
            let process = Process::new(&dir, 100);
            for name in &names {
                fs::write(dir.path().join(name), "content").expect("written");
                process.add(1, name, 5);
            }
            let path = dir.path().join(RECORD_NAME);
            let mut bytes = fs::read(&path).expect("there");
            bytes.truncate(cut);
            for (at, byte) in garbled {
                if let Some(there) = bytes.get_mut(at) {
                    *there = byte;
                }
            }
            let is_ours = bytes.len() < MAGIC.len() && bytes.is_empty() || bytes.starts_with(&MAGIC);
            fs::write(&path, bytes).expect("written");
            for again in [process, Process::new(&dir, 100)] {
                prop_assert!(!again.holds(1, "file", 5));
                prop_assert!(names.iter().all(|name| !again.holds(1, name, 6) && !again.holds(2, name, 5)));
            }
            let again = Process::new(&dir, 100);
            again.add(1, "file", 5);
            prop_assert_eq!(again.holds(1, "file", 5), is_ours);
        }
    }
}
