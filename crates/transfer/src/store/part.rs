//! A file on its way: what has arrived is in a part file, and a journal says which blocks that are.
//!
//! A block is written, the part file synchronised, and only then the journal: a record never tells of bytes that a crash could
//! take back. After each write the part file gets a time stamp of ours, the *mark*. As long as it shows that one, nobody else has
//! written to it, and the journal is believed without reading what it tells of.

use std::fs::{File, FileTimes};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::folder::Folder;
use super::journal::{Journal, Runs, contain};
use super::syncer::{Batch, SharedJournal, Syncer};
use crate::block::{Hash, Root, block_at, block_len, blocks_of};
use crate::name::Name;
use crate::protocol::{Kind, Offer, Run};
use crate::store::Block;

/// Bytes written before the journal is brought up to date, at most.
const SYNC_BYTES: u64 = 32 << 20;
/// Time between two updates of the journal, at most, while blocks arrive.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Blocks whose content is looked at before a journal is believed.
const SAMPLED: usize = 4;
/// Seconds since 1970 that marks begin with: long ago, so that no clock shows them.
const MARKS_FROM: u64 = 100_000_000;

/// What is known of a file that begins or goes on.
#[derive(Debug)]
pub(crate) struct Part {
    name: Name,
    file: File,
    /// Files of one block have none.
    journal: Option<SharedJournal>,
    /// Started with the first batch.
    syncer: Option<Syncer>,
    mark: SystemTime,
    /// Blocks that were there at the beginning, as the source was told.
    have: Vec<Run>,
    have_blocks: u64,
    size_bytes: Option<u64>,
    /// Written, and not in the journal yet.
    unsynced: Batch,
    unsynced_bytes: u64,
    last_sync: Instant,
    /// Blocks taken since the beginning.
    taken: u64,
    /// The only block of a file without a journal.
    single: Option<Hash>,
    /// A part of another version of the source was thrown away.
    pub(crate) restarted: bool,
}

/// The identity of a source: where it changes, what was taken of it is of no use.
fn identity(offer: &Offer) -> Hash {
    let bytes = postcard::to_stdvec(&(offer.name.raw(), &offer.kind, offer.changed));
    Hash::of(&bytes.expect("a vector takes everything"))
}

impl Part {
    /// Opens the part of an offered file or stream, new or with what is there of it; `None` if somebody else has it open.
    pub(crate) fn open(folder: &Folder, name: Name, offer: &Offer) -> io::Result<Option<Self>> {
        let Some(file) = folder.lock_part(&name)? else { return Ok(None) };
        let size_bytes = match offer.kind {
            Kind::File { size_bytes, .. } => Some(size_bytes),
            _ => None,
        };
        let mut part = Part {
            name,
            file,
            journal: None,
            syncer: None,
            mark: UNIX_EPOCH,
            have: Vec::new(),
            have_blocks: 0,
            size_bytes,
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            last_sync: Instant::now(),
            taken: 0,
            single: None,
            restarted: false,
        };
        if size_bytes.is_some_and(|size| blocks_of(size) <= 1) {
            part.file.set_len(0)?;
            folder.remove_if_there(&part.name.journal())?;
        } else {
            part.open_journal(folder, &identity(offer))?;
        }
        Ok(Some(part))
    }

    fn open_journal(&mut self, folder: &Folder, identity: &Hash) -> io::Result<()> {
        let file = folder.open_or_create(&self.name.journal())?;
        let was_empty = file.metadata()?.len() == 0;
        match Journal::open(file, identity)? {
            Ok(mut journal) => {
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

    /// Finds out which blocks are there.
    fn take_over(&mut self, journal: &mut Journal) -> io::Result<()> {
        let metadata = self.file.metadata()?;
        let untouched = metadata.modified()? == mark_time(journal.mark());
        if !(untouched && self.samples_are_right(journal, metadata.len())?) {
            self.drop_wrong(journal)?;
        }
        let (mut runs, mut count) = (Runs::default(), 0);
        journal.scan(self.most_blocks(), |index, _| {
            runs.add(index);
            count += 1;
            Ok(())
        })?;
        self.have = runs.into_vec();
        self.have_blocks = self.have.iter().map(|run| run.count).sum();
        Ok(())
    }

    fn most_blocks(&self) -> u64 {
        self.size_bytes.map_or(u64::MAX, blocks_of)
    }

    /// Whether the last blocks of the journal, which are those written last in most cases, are in the file.
    fn samples_are_right(&self, journal: &mut Journal, file_len: u64) -> io::Result<bool> {
        let mut last = std::collections::VecDeque::new();
        journal.scan(self.most_blocks(), |index, hash| {
            if last.len() == SAMPLED {
                last.pop_front();
            }
            last.push_back((index, hash));
            Ok(())
        })?;
        let mut content = Vec::new();
        for (index, hash) in last {
            if block_at(index) >= file_len || self.read(index, &mut content)? != hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes every block out of the journal that is not in the file.
    fn drop_wrong(&self, journal: &mut Journal) -> io::Result<()> {
        let (mut wrong, mut content) = (Vec::new(), Vec::new());
        journal.scan(self.most_blocks(), |index, hash| {
            if self.read(index, &mut content)? != hash {
                wrong.push(index);
            }
            Ok(())
        })?;
        wrong.into_iter().try_for_each(|index| journal.erase(index))?;
        journal.sync()
    }

    fn read(&self, index: u64, content: &mut Vec<u8>) -> io::Result<Hash> {
        let length = self.size_bytes.map_or(crate::BLOCK_BYTES, |size| block_len(size, index));
        content.clear();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(block_at(index)))?;
        file.take(u64::from(length)).read_to_end(content)?;
        Ok(Hash::of(content))
    }

    /// The blocks that were there at the beginning.
    pub(crate) fn have(&self) -> &[Run] {
        &self.have
    }

    /// User bytes of the blocks that were there at the beginning.
    pub(crate) fn reused_bytes(&self) -> u64 {
        let Some(size) = self.size_bytes else { return self.have_blocks * u64::from(crate::BLOCK_BYTES) };
        let last = blocks_of(size).saturating_sub(1);
        let has_last = blocks_of(size) > 0 && contain(&self.have, last);
        let full = self.have_blocks - u64::from(has_last);
        let short = if has_last { u64::from(block_len(size, last)) } else { 0 };
        full * u64::from(crate::BLOCK_BYTES) + short
    }

    /// Whether a block was there at the beginning.
    pub(crate) fn has(&self, index: u64) -> bool {
        contain(&self.have, index)
    }

    /// Writes a verified block.
    pub(crate) fn write(&mut self, index: u64, block: &Block, hash: Hash) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(block_at(index)))?;
        let written = block.write_to(&mut self.file);
        // Half a block is no stranger's doing, either.
        self.set_mark()?;
        written?;
        self.taken += 1;
        if self.journal.is_none() {
            self.single = Some(hash);
            return Ok(());
        }
        self.unsynced.push((index, hash));
        // Blocks of a stream may be as short as its source likes, and their records are as long as others.
        self.unsynced_bytes += u64::from(crate::BLOCK_BYTES);
        if self.unsynced_bytes >= SYNC_BYTES || self.last_sync.elapsed() >= SYNC_EVERY {
            self.sync_beside()?;
        }
        Ok(())
    }

    fn set_mark(&self) -> io::Result<()> {
        match &self.journal {
            Some(_) => self.file.set_times(FileTimes::new().set_modified(self.mark)),
            None => Ok(()),
        }
    }

    /// Begins to bring the journal up to date, unless that is under way: then later, and after twice the bytes at once.
    pub(crate) fn sync_beside(&mut self) -> io::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let syncer = match &mut self.syncer {
            Some(syncer) => syncer,
            none => none.insert(Syncer::start(self.file.try_clone()?, Arc::clone(journal))?),
        };
        if !self.unsynced.is_empty() && (syncer.is_free()? || self.unsynced_bytes >= 2 * SYNC_BYTES) {
            self.last_sync = Instant::now();
            self.unsynced_bytes = 0;
            syncer.take(std::mem::take(&mut self.unsynced))?;
        }
        Ok(())
    }

    /// Brings the journal up to date.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.unsynced.is_empty() {
            self.unsynced_bytes = 2 * SYNC_BYTES;
            self.sync_beside()?;
        }
        self.syncer.as_mut().map_or(Ok(()), Syncer::wait)
    }

    /// Whether the time has come to [`sync_beside`](Self::sync_beside).
    pub(crate) fn is_due(&self) -> bool {
        !self.unsynced.is_empty() && self.last_sync.elapsed() >= SYNC_EVERY
    }

    /// Whether all blocks of a file of this size are there.
    pub(crate) fn is_complete(&self, size_bytes: u64) -> bool {
        self.have_blocks + self.taken >= blocks_of(size_bytes)
    }

    /// The root over the blocks that were not there at the beginning; `None` if one is missing.
    pub(crate) fn root(&mut self, size_bytes: u64) -> io::Result<Option<Hash>> {
        self.sync()?;
        let (blocks, mut root, mut next) = (blocks_of(size_bytes), Root::default(), 0);
        match &self.journal {
            Some(journal) => {
                journal.lock().unwrap_or_else(PoisonError::into_inner).scan(blocks, |index, hash| {
                    next += u64::from(next == index);
                    if !contain(&self.have, index) {
                        root.add(hash);
                    }
                    Ok(())
                })?;
            }
            None => {
                self.single.into_iter().for_each(|hash| root.add(hash));
                next = u64::from(self.single.is_some());
            }
        }
        Ok((next == blocks).then(|| root.finish()))
    }

    /// Gives the file its length, time and permissions, and brings it to the disk: ready for its name.
    pub(crate) fn seal(&self, size_bytes: u64, offer: &Offer) -> io::Result<()> {
        self.file.set_len(size_bytes)?;
        super::folder::set_mode(&self.file, offer.mode)?;
        self.file.set_times(FileTimes::new().set_modified(super::folder::to_system_time(offer.changed)))?;
        self.file.sync_all()
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Throws away what has arrived.
    pub(crate) fn discard(self, folder: &Folder) -> io::Result<()> {
        folder.remove_if_there(&self.name.part())?;
        folder.remove_if_there(&self.name.journal())
    }

    /// Whether it is worth keeping.
    pub(crate) fn is_resumable(&self) -> bool {
        self.journal.is_some() && self.have_blocks + self.taken > 0
    }
}

/// Even seconds, as the coarsest file systems keep them.
fn new_mark() -> io::Result<u64> {
    let random = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(MARKS_FROM + 2 * u64::from(random >> 4))
}

fn mark_time(mark: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(mark)
}
