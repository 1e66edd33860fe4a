//! File that is being received: a part file holds the received content, and a journal records which blocks that is.
//!
//! A block is written, the part file is synced, and only then the journal: a record never describes bytes that a crash could lose.
//! After each write the part file gets a chosen time stamp, the *mark*. As long as the file has that mark, no other program has
//! written to it, and the journal is trusted without reading the blocks that it records.

use std::collections::VecDeque;
use std::fs::{File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::directory::Directory;
use super::disk::{Disk, Step};
use super::held::{HeldBlocks, contain};
use super::journal::{Entry, Journal};
use super::mode::{Umask, set_file_mode};
use super::quota::Charge;
use super::record::FileState;
use super::syncer::{Batch, SharedJournal, Syncer};
use super::times::to_system_time;
use crate::block::{BLOCK_BYTES, Hash, Root, block_at, blocks_of};
use crate::cancel::Cancel;
use crate::descriptors::HeldDescriptors;
use crate::name::Name;
use crate::protocol::{Kind, MAX_RUNS, Offer, Run};
use crate::store::Block;

/// Maximum number of bytes that are written before the journal is synced.
const SYNC_BYTES: u64 = 32 << 20;
/// Maximum time between two syncs of the journal, while blocks arrive.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Number of blocks whose content is verified before a journal is trusted.
const SAMPLED: usize = 4;
/// Earliest mark, in seconds since 1970: so long ago that no clock shows it.
const MARKS_FROM: u64 = 100_000_000;

/// State of a file that is being received, new or resumed.
#[derive(Debug)]
pub(crate) struct Part {
    name: Name,
    file: Arc<File>,
    /// `None` for files of one block.
    journal: Option<SharedJournal>,
    /// Started with the first batch.
    syncer: Option<Syncer>,
    mark: SystemTime,
    held: HeldBlocks,
    /// Blocks that were present at the beginning, as reported to the source.
    told: Vec<Run>,
    told_bytes: u64,
    size_bytes: Option<u64>,
    /// Set if the size was unknown when it was offered.
    is_stream: bool,
    /// Number of blocks of a stream that are known to have room.
    room_blocks: u64,
    /// Blocks that were written to the file and are not in the journal yet.
    unsynced: Batch,
    unsynced_bytes: u64,
    last_sync: Instant,
    /// The only block of a file without a journal.
    single: Option<Hash>,
    /// Set if a part of another version of the source was discarded.
    pub(crate) restarted: bool,
    disk: Disk,
    umask: Umask,
    cancel: Cancel,
    /// Descriptors of the file and the journal.
    _held: HeldDescriptors,
    /// Charge of this part on a quota, if a quota applies.
    charge: Option<Charge>,
    is_discarded: bool,
    /// Size of the file that this part has replaced, in bytes; set when the part has its final name.
    replaced: OnceLock<u64>,
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(charge) = &mut self.charge else { return };
        let now = match self.file.metadata() {
            _ if self.is_discarded => 0,
            Ok(metadata) if self.replaced.get().is_some() => metadata.len(),
            Ok(metadata) => allocated_bytes(&metadata),
            // The charge stays until the files of the folder are counted again.
            Err(_) => self.size_bytes.unwrap_or(0),
        };
        charge.settle(now, self.replaced.get().copied().unwrap_or(0));
    }
}

#[cfg(unix)]
fn allocated_bytes(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata).saturating_mul(512)
}

#[cfg(not(unix))]
fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.len()
}

/// Returns the identity of a source. Blocks stored from a source with another identity are useless.
fn identity(offer: &Offer) -> Hash {
    let bytes = postcard::to_stdvec(&(offer.name.raw(), &offer.kind, offer.changed));
    Hash::of(&bytes.expect("a vector takes everything"))
}

fn size_of(offer: &Offer) -> Option<u64> {
    match offer.kind {
        Kind::File { size_bytes, .. } => Some(size_bytes),
        Kind::Stream { .. } | Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => None,
    }
}

/// Returns the number of descriptors that an offer uses while it is received.
pub(super) fn descriptors_of(offer: &Offer) -> u64 {
    match offer.kind {
        Kind::File { size_bytes, .. } if blocks_of(size_bytes) <= 1 => 1,
        Kind::File { .. } | Kind::Stream { .. } => 2,
        Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => 0,
    }
}

impl Part {
    /// Opens the part file of an offered file or stream, new or with its stored blocks; `None` if another transfer holds it.
    pub(super) fn open(
        folder: &Directory,
        name: Name,
        offer: &Offer,
        held: HeldDescriptors,
        cancel: &Cancel,
    ) -> io::Result<Option<Self>> {
        let Some(file) = folder.lock_part(&name)? else { return Ok(None) };
        let size_bytes = size_of(offer);
        let mut part = Part {
            name,
            file: Arc::new(file),
            journal: None,
            syncer: None,
            mark: UNIX_EPOCH,
            held: HeldBlocks::default(),
            told: Vec::new(),
            told_bytes: 0,
            size_bytes,
            is_stream: size_bytes.is_none(),
            room_blocks: 0,
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            last_sync: Instant::now(),
            single: None,
            restarted: false,
            disk: folder.disk.clone(),
            umask: folder.umask,
            cancel: cancel.clone(),
            charge: None,
            is_discarded: false,
            replaced: OnceLock::new(),
            _held: held,
        };
        if size_bytes.is_some_and(|size| blocks_of(size) <= 1) {
            part.file.set_len(0)?;
            folder.remove_if_there(&folder.journal_of(&part.name))?;
        } else {
            part.open_journal(folder, &identity(offer))?;
        }
        Ok(Some(part))
    }

    fn open_journal(&mut self, folder: &Directory, identity: &Hash) -> io::Result<()> {
        self.disk.before(Step::CreateJournal)?;
        let file = folder.open_or_create(&folder.journal_of(&self.name))?;
        let was_empty = file.metadata()?.len() == 0;
        match Journal::open(file, identity)? {
            Ok(mut journal) => {
                self.mark = mark_time(journal.mark());
                self.take_over(&mut journal)?;
                self.share(journal);
            }
            Err(file) => {
                self.restarted = !was_empty;
                self.file.set_len(0)?;
                self.share(Journal::create(file, identity, new_mark()?)?);
            }
        }
        self.set_mark()
    }

    fn share(&mut self, journal: Journal) {
        self.mark = mark_time(journal.mark());
        self.journal = Some(Arc::new(Mutex::new(journal)));
    }

    /// Determines which blocks the part file holds.
    fn take_over(&mut self, journal: &mut Journal) -> io::Result<()> {
        let is_untouched = self.file.metadata()?.modified()? == self.mark;
        let is_believed = is_untouched && self.load(journal)? && self.samples_are_right(journal)?;
        if !is_believed {
            self.erase_wrong(journal)?;
            self.load(journal)?;
        }
        self.told = self.held.runs(MAX_RUNS);
        if self.told.iter().map(|run| run.count).sum::<u64>() < self.held.count() {
            self.erase_unreported(journal)?;
            self.load(journal)?;
        }
        self.told_bytes = self.held.bytes();
        Ok(())
    }

    /// Reads the journal. Returns `true` if every record is valid; two records of one block are not.
    fn load(&mut self, journal: &mut Journal) -> io::Result<bool> {
        let (mut held, mut is_sound, size_bytes) = (HeldBlocks::default(), true, self.size_bytes);
        journal.scan(&self.cancel, |_, Entry { index, len, .. }| {
            if held.admits(size_bytes, index, len) {
                held.insert(index, len);
            } else {
                is_sound = false;
            }
            Ok(())
        })?;
        self.held = held;
        Ok(is_sound)
    }

    /// Returns `true` if the last blocks of the journal, which were written last, are in the file.
    fn samples_are_right(&self, journal: &mut Journal) -> io::Result<bool> {
        let mut last = VecDeque::new();
        journal.scan(&self.cancel, |_, entry| {
            if last.len() == SAMPLED {
                last.pop_front();
            }
            last.push_back(entry);
            Ok(())
        })?;
        let mut content = Vec::new();
        for entry in last {
            if self.read(&entry, &mut content)? != entry.hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Erases every record from the journal whose block is not in the file, or has another record.
    fn erase_wrong(&self, journal: &mut Journal) -> io::Result<()> {
        let mut held = HeldBlocks::default();
        self.erase_where(journal, |entry, content| {
            let Entry { index, len, .. } = *entry;
            let is_right =
                held.admits(self.size_bytes, index, len) && self.read(entry, content)? == entry.hash;
            if is_right {
                held.insert(index, len);
            }
            Ok(!is_right)
        })
    }

    /// Erases the records of blocks that are not reported to the source, because the source sends them again.
    fn erase_unreported(&self, journal: &mut Journal) -> io::Result<()> {
        self.erase_where(journal, |entry, _| Ok(!contain(&self.told, entry.index)))
    }

    fn erase_where(
        &self,
        journal: &mut Journal,
        mut is_wrong: impl FnMut(&Entry, &mut Vec<u8>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let (mut wrong, mut content) = (Vec::new(), Vec::new());
        journal.scan(&self.cancel, |at, entry| {
            if is_wrong(&entry, &mut content)? {
                wrong.push(at);
            }
            Ok(())
        })?;
        for at in wrong {
            self.cancel.check()?;
            journal.erase(at)?;
        }
        journal.sync()
    }

    fn read(&self, entry: &Entry, content: &mut Vec<u8>) -> io::Result<Hash> {
        content.clear();
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(block_at(entry.index)))?;
        file.take(u64::from(entry.len)).read_to_end(content)?;
        Ok(Hash::of(content))
    }

    /// Charges the bytes of the part to a quota.
    pub(super) fn charged(&mut self, charge: Charge) {
        self.charge = Some(charge);
    }

    /// Records that the part has its final name, and the size of the file that it has replaced.
    pub(super) fn named(&self, replaced_bytes: u64) {
        let _ = self.replaced.set(replaced_bytes);
    }

    /// Returns the blocks that were present at the beginning.
    pub(crate) fn reported_blocks(&self) -> &[Run] {
        &self.told
    }

    /// Returns the user bytes of the blocks that were present at the beginning.
    pub(crate) fn reused_bytes(&self) -> u64 {
        self.told_bytes
    }

    /// Returns `true` if a block is valid in this file, and not stored yet.
    pub(crate) fn admits(&self, index: u64, len: u32) -> bool {
        self.held.admits(self.size_bytes, index, len)
    }

    /// Returns `true` if a file of this size can be the received one.
    pub(crate) fn may_end_at(&self, size_bytes: u64) -> bool {
        self.size_bytes.is_none_or(|size| size == size_bytes) && self.held.is_within(size_bytes)
    }

    /// Sets the size of a stream once it is known.
    pub(crate) fn end_at(&mut self, size_bytes: u64) {
        self.size_bytes = Some(size_bytes);
    }

    /// Fails if a block of a stream lies beyond the free space of the file system: holes occupy no space, so a high index alone
    /// would not fail later. The space for files was checked when they were offered.
    pub(crate) fn check_room(&mut self, index: u64) -> io::Result<()> {
        if self.size_bytes.is_some() || index < self.room_blocks {
            return Ok(());
        }
        let free = self.disk.free_bytes(&self.file).map_or(u64::MAX, |bytes| bytes / u64::from(BLOCK_BYTES));
        // The last block may be short.
        self.room_blocks = self.held.count().saturating_add(free).saturating_add(1);
        if index < self.room_blocks { Ok(()) } else { Err(ErrorKind::StorageFull.into()) }
    }

    /// Writes a verified block.
    pub(crate) fn write(&mut self, index: u64, block: &Block, hash: Hash) -> io::Result<()> {
        // The end of a stream may be known before all of its blocks have arrived.
        if let (true, Some(charge)) = (self.is_stream, &mut self.charge) {
            charge.grow(block.len())?;
        }
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(block_at(index)))?;
        let mut written = self.disk.before(Step::WriteBlock);
        if written.is_ok() {
            written = block.write_to(&mut file);
        }
        if written.is_err() {
            // A partial block is useless, and on a full disk the journal needs the space.
            let _ = self.file.set_len(self.held.end_bytes());
        }
        // The mark also covers a partial write.
        self.set_mark()?;
        written?;
        let len = u32::try_from(block.len()).unwrap_or(BLOCK_BYTES);
        self.held.insert(index, len);
        if self.journal.is_none() {
            self.single = Some(hash);
            return Ok(());
        }
        self.unsynced.push(Entry { index, len, hash });
        // Blocks of a stream may be arbitrarily short, and their records are as long as others.
        self.unsynced_bytes += u64::from(BLOCK_BYTES);
        if self.unsynced_bytes >= SYNC_BYTES { self.sync_beside() } else { self.sync_if_due() }
    }

    fn set_mark(&self) -> io::Result<()> {
        match &self.journal {
            Some(_) => self.file.set_times(FileTimes::new().set_modified(self.mark)),
            None => Ok(()),
        }
    }

    /// Starts to sync the journal. If a sync is in progress, the next one starts later, and the caller waits once twice the bytes
    /// are unsynced.
    pub(crate) fn sync_beside(&mut self) -> io::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let syncer = match &mut self.syncer {
            Some(syncer) => syncer,
            none => {
                none.insert(Syncer::start(Arc::clone(&self.file), Arc::clone(journal), self.disk.clone()))
            }
        };
        if !self.unsynced.is_empty() && (syncer.is_free()? || self.unsynced_bytes >= 2 * SYNC_BYTES) {
            self.last_sync = Instant::now();
            self.unsynced_bytes = 0;
            syncer.take(std::mem::take(&mut self.unsynced))?;
        }
        Ok(())
    }

    /// Syncs the journal.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.unsynced.is_empty() {
            self.unsynced_bytes = 2 * SYNC_BYTES;
            self.sync_beside()?;
        }
        self.syncer.as_mut().map_or(Ok(()), Syncer::wait)
    }

    /// Syncs the journal if the last sync is long ago. Call it at regular intervals, because blocks may stop arriving.
    pub(crate) fn sync_if_due(&mut self) -> io::Result<()> {
        let is_due = !self.unsynced.is_empty() && self.last_sync.elapsed() >= SYNC_EVERY;
        if is_due { self.sync_beside() } else { Ok(()) }
    }

    /// Returns `true` if all blocks of a file of this size are stored.
    pub(crate) fn is_complete(&self, size_bytes: u64) -> bool {
        self.held.is_all_of(size_bytes)
    }

    /// Returns the root over all blocks, including those that were present at the beginning; `None` if one is missing.
    pub(crate) fn root(&mut self, size_bytes: u64) -> io::Result<Option<Hash>> {
        self.sync()?;
        match &self.journal {
            Some(journal) => {
                let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                journal.root(blocks_of(size_bytes), &self.cancel)
            }
            None => {
                let mut root = Root::default();
                self.single.into_iter().for_each(|hash| root.add(hash));
                Ok((u64::from(self.single.is_some()) == blocks_of(size_bytes)).then(|| root.finish()))
            }
        }
    }

    /// Discards the received content and restarts. The transfer keeps the lock of the part file.
    pub(crate) fn restart(&mut self, offer: &Offer) -> io::Result<()> {
        // An error of syncing the journal is irrelevant here.
        let _ = self.sync();
        self.syncer = None;
        self.unsynced.clear();
        self.unsynced_bytes = 0;
        self.file.set_len(0)?;
        if let Some(journal) = &self.journal {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.restart(&identity(offer), new_mark()?)?;
            self.mark = mark_time(journal.mark());
        }
        (self.held, self.told, self.told_bytes) = (HeldBlocks::default(), Vec::new(), 0);
        self.size_bytes = size_of(offer);
        self.set_mark()
    }

    /// Sets the length, time and permissions of the file. The file must be synced before it gets its final name.
    pub(super) fn seal(&self, size_bytes: u64, offer: &Offer) -> io::Result<()> {
        self.disk.before(Step::Seal)?;
        self.file.set_len(size_bytes)?;
        set_file_mode(&self.file, self.umask.of_file(offer.mode))?;
        self.file.set_times(FileTimes::new().set_modified(to_system_time(offer.changed)))
    }

    /// Returns the part file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the present state of the file.
    pub(crate) fn state(&self) -> io::Result<FileState> {
        self.file.metadata().map(|metadata| FileState::of(&metadata))
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Removes the part file and its journal.
    pub(super) fn discard(mut self, folder: &Directory) -> io::Result<()> {
        folder.remove_if_there(&folder.part_of(&self.name))?;
        self.is_discarded = true;
        folder.remove_if_there(&folder.journal_of(&self.name))
    }

    /// Returns `true` if a later transfer can resume it.
    pub(crate) fn is_resumable(&self) -> bool {
        self.journal.is_some() && self.held.count() > 0
    }
}

/// Returns a random mark of even seconds, which the coarsest file systems can store.
fn new_mark() -> io::Result<u64> {
    let random = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(MARKS_FROM + 2 * u64::from(random >> 4))
}

fn mark_time(mark: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(mark)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::descriptors::Share;
    use crate::protocol::{FileTime, Segment, read_block};
    use crate::store::Assembly;

    /// Maximum number of records that wait for the journal: those of 64 MiB.
    const MOST_RECORDS: usize = 64;

    /// Returns a stream, whose blocks may be short, and whose syncs are triggered by blocks and not by time.
    fn part(dir: &tempfile::TempDir) -> Part {
        let folder = Directory::open(dir.path()).expect("a folder");
        let changed = FileTime { seconds: 5, nanos: 0 };
        let kind = Kind::Stream { token: [1; 16] };
        let offer = Offer { id: 0, name: "file".into(), kind, changed, mode: 0o644 };
        let name = Name::new("file").expect("a name");
        let held = Share::of(2).hold(2).expect("room");
        let mut part =
            Part::open(&folder, name, &offer, held, &Cancel::default()).expect("opened").expect("free");
        part.last_sync = Instant::now() + Duration::from_secs(3600);
        part
    }

    /// Writes blocks of one byte.
    fn write(part: &mut Part, indices: std::ops::Range<u64>) {
        write_blocks(part, indices, 1);
    }

    fn write_blocks(part: &mut Part, indices: std::ops::Range<u64>, block_len: u32) {
        for index in indices {
            let fill = |buffer: &mut [u8]| {
                buffer.fill(7);
                io::Result::Ok(())
            };
            let messages = read_block(0, index, block_len, fill).expect("it is in memory").messages;
            let mut assembly = Assembly::new(block_len);
            let mut segments = messages.into_iter().map(|bytes| Segment::decode(bytes).expect("a segment"));
            let block = segments.find_map(|segment| assembly.take(segment).expect("it fits"));
            let block = block.expect("it is whole");
            let hash = block.verified().expect("it is right");
            part.write(index, &block, hash).expect("written");
            part.last_sync = Instant::now() + Duration::from_secs(3600);
        }
    }

    #[test]
    fn records_waiting_for_the_journal_are_bounded_for_short_blocks() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut part = part(&dir);
        for index in 0..4 * MOST_RECORDS as u64 {
            write(&mut part, index..index + 1);
            assert!(part.unsynced.len() < MOST_RECORDS, "{}", part.unsynced.len());
        }
    }

    #[test]
    fn records_wait_for_the_journal_until_it_is_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut part = part(&dir);
        let long_ago = Instant::now().checked_sub(SYNC_EVERY).expect("the machine runs for longer");
        part.last_sync = long_ago;
        part.sync_if_due().expect("there is nothing to be done");
        assert!(part.syncer.is_none(), "no thread is started for nothing");
        part.last_sync = Instant::now() + Duration::from_secs(3600);
        write(&mut part, 0..3);
        part.sync_if_due().expect("there is nothing to be done");
        assert_eq!(part.unsynced.len(), 3);
        part.last_sync = long_ago;
        part.sync_if_due().expect("begun");
        assert!(part.unsynced.is_empty() && part.syncer.is_some());
    }

    /// Changes a byte of the part file, and keeps the time of its last change.
    fn change_behind_its_back(part: &Part, index: u64) {
        let mut file = &*part.file;
        file.seek(SeekFrom::Start(block_at(index))).expect("a place");
        std::io::Write::write_all(&mut file, &[9]).expect("written");
        part.set_mark().expect("set");
    }

    #[test]
    fn journal_is_valid_if_mark_and_last_blocks_of_the_part_match() {
        let blocks = SAMPLED as u64 + 2;
        let all = Run { first: 0, count: blocks };
        for (changed, told) in [
            // Errors that the samples miss are found when the root over all blocks is compared.
            (Some(1), vec![all]),
            (Some(blocks - 1), vec![Run { first: 0, count: blocks - 1 }]),
            (Some(2), vec![Run { first: 0, count: 2 }, Run { first: 3, count: blocks - 3 }]),
            (None, vec![all]),
        ] {
            let dir = tempfile::tempdir().expect("a folder");
            let mut first = part(&dir);
            write_blocks(&mut first, 0..blocks, BLOCK_BYTES);
            first.sync().expect("on the disk");
            changed.into_iter().for_each(|index| change_behind_its_back(&first, index));
            drop(first);
            assert_eq!(part(&dir).reported_blocks(), told, "block {changed:?} was changed");
        }
    }

    #[test]
    fn slow_disk_blocks_the_writer_before_more_records_queue() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut part = part(&dir);
        let journal = Arc::clone(part.journal.as_ref().expect("a stream has one"));
        let slow = journal.lock().expect("nobody panicked");
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // The first half of them starts a sync.
                let most = MOST_RECORDS as u64;
                write(&mut part, 0..most / 2 + most - 1);
                tell.send(part.unsynced.len()).expect("it is waited for");
                write(&mut part, most / 2 + most - 1..most / 2 + most);
                tell.send(part.unsynced.len()).expect("it is waited for");
            });
            assert_eq!(told.recv(), Ok(MOST_RECORDS - 1));
            // With the bound this message never arrives in time, however fast the machine is.
            assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "it was not held up");
            drop(slow);
            assert_eq!(told.recv(), Ok(0));
        });
    }
}
