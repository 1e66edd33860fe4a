//! The journal of an unfinished file: a table with the hash of each block that is in its part file.
//!
//! A header says which source the file comes from; a record for block *n* is at a fixed place, so a journal of any length needs
//! no memory, and a record that was half written, or belongs to another header, fails its checksum and counts as missing.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};

use crate::block::Hash;
use crate::protocol::{MAX_RUNS, Run};

const MAGIC: [u8; 8] = *b"ANBJRNL1";
const MARK_AT: usize = MAGIC.len() + Hash::LEN;
const SUM_AT: usize = MARK_AT + 8;
const HEADER_LEN: usize = SUM_AT + SUM_LEN;
const SUM_LEN: usize = 8;
const RECORD_LEN: usize = Hash::LEN + SUM_LEN;

#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// What records are checked with: of another source's records none passes.
    key: [u8; 32],
    mark: u64,
}

impl Journal {
    /// Opens the journal of the source with this identity, if that is what the file holds.
    pub(super) fn open(mut file: File, identity: &Hash) -> io::Result<Result<Self, File>> {
        let mut header = [0; HEADER_LEN];
        file.seek(SeekFrom::Start(0))?;
        match file.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Err(file)),
            Err(error) => return Err(error),
        }
        let is_ours = header[..MAGIC.len()] == MAGIC
            && header[MAGIC.len()..MARK_AT] == identity.0
            && header[SUM_AT..] == sum(&identity.0, &header[..SUM_AT]);
        if !is_ours {
            return Ok(Err(file));
        }
        let mark = u64::from_be_bytes(header[MARK_AT..SUM_AT].try_into().expect("eight bytes"));
        Ok(Ok(Journal::with(file, identity, mark)))
    }

    /// Begins an empty journal. `mark` is the time in seconds that the part file shows while nobody but us has changed it.
    pub(super) fn create(mut file: File, identity: &Hash, mark: u64) -> io::Result<Self> {
        file.set_len(0)?;
        let mut header = [&MAGIC[..], &identity.0, &mark.to_be_bytes()].concat();
        header.extend_from_slice(&sum(&identity.0, &header));
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        Ok(Journal::with(file, identity, mark))
    }

    fn with(file: File, identity: &Hash, mark: u64) -> Self {
        let key = *blake3::hash(&[&identity.0[..], &mark.to_be_bytes()].concat()).as_bytes();
        Journal { file, key, mark }
    }

    pub(super) fn mark(&self) -> u64 {
        self.mark
    }

    pub(super) fn write(&mut self, index: u64, hash: Hash) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(record_at(index)?))?;
        self.file.write_all(&[&hash.0[..], &record_sum(&self.key, index, &hash.0)].concat())
    }

    /// Takes a block out again.
    pub(super) fn erase(&mut self, index: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(record_at(index)?))?;
        self.file.write_all(&[0; RECORD_LEN])
    }

    /// What was written is on the disk when this returns.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Calls `see` with each block below `blocks` that is there, in order, until that fails.
    pub(super) fn scan(
        &mut self,
        blocks: u64,
        mut see: impl FnMut(u64, Hash) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(HEADER_LEN as u64))?;
        let mut records = BufReader::with_capacity(RECORD_LEN * 4096, &self.file);
        let mut record = [0; RECORD_LEN];
        for index in 0..blocks {
            match records.read_exact(&mut record) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
            if record[Hash::LEN..] == record_sum(&self.key, index, &record[..Hash::LEN]) {
                see(index, Hash(record[..Hash::LEN].try_into().expect("the length of a hash")))?;
            }
        }
        Ok(())
    }
}

fn record_at(index: u64) -> io::Result<u64> {
    let at = index.checked_mul(RECORD_LEN as u64).and_then(|at| at.checked_add(HEADER_LEN as u64));
    at.ok_or_else(|| ErrorKind::FileTooLarge.into())
}

fn sum(key: &[u8; 32], bytes: &[u8]) -> [u8; SUM_LEN] {
    let hash = blake3::keyed_hash(key, bytes);
    *hash.as_bytes().first_chunk().expect("a hash is longer")
}

fn record_sum(key: &[u8; 32], index: u64, hash: &[u8]) -> [u8; SUM_LEN] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&index.to_be_bytes()).update(hash);
    *hasher.finalize().as_bytes().first_chunk().expect("a hash is longer")
}

/// Blocks as runs, for an answer: what does not fit is left out.
#[derive(Debug, Default)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    /// Adds a block behind those that are there.
    pub(crate) fn add(&mut self, index: u64) {
        let is_full = self.0.len() >= MAX_RUNS;
        match self.0.last_mut() {
            Some(run) if run.first + run.count == index => run.count += 1,
            _ if is_full => {}
            _ => self.0.push(Run { first: index, count: 1 }),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Run> {
        self.0
    }
}

/// Whether a block is in one of these runs, which are in order.
pub(crate) fn contain(runs: &[Run], index: u64) -> bool {
    let behind = runs.partition_point(|run| run.first <= index);
    behind.checked_sub(1).is_some_and(|at| index - runs[at].first < runs[at].count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(journal: &mut Journal, blocks: u64) -> Vec<(u64, Hash)> {
        let mut seen = Vec::new();
        let keep = |index, hash| {
            seen.push((index, hash));
            Ok(())
        };
        journal.scan(blocks, keep).expect("it can be read");
        seen
    }

    #[test]
    fn a_journal_holds_what_was_written_and_belongs_to_one_source() {
        let file = tempfile::tempfile().expect("a file");
        let mut journal =
            Journal::create(file.try_clone().expect("a clone"), &Hash::of(b"one"), 77).expect("written");
        for index in [0, 5, 2] {
            journal.write(index, Hash::of(&[index as u8])).expect("written");
        }
        journal.erase(5).expect("written");
        let mut again = Journal::open(file.try_clone().expect("a clone"), &Hash::of(b"one"))
            .expect("it can be read")
            .expect("it is the same");
        assert_eq!(again.mark(), 77);
        assert_eq!(entries(&mut again, 6), [(0, Hash::of(&[0])), (2, Hash::of(&[2]))]);
        assert_eq!(entries(&mut again, 1).len(), 1);
        assert!(Journal::open(file, &Hash::of(b"two")).expect("it can be read").is_err());
    }

    #[test]
    fn runs_hold_what_was_added() {
        let mut runs = Runs::default();
        [0, 1, 2, 7, 9, 10].into_iter().for_each(|index| runs.add(index));
        let runs = runs.into_vec();
        assert_eq!(runs.len(), 3);
        let held: Vec<u64> = (0..12).filter(|index| contain(&runs, *index)).collect();
        assert_eq!(held, [0, 1, 2, 7, 9, 10]);
    }

    proptest! {
        #[test]
        fn a_garbled_or_cut_journal_never_tells_of_a_block_that_was_not_written(
            cut in 0_u64..600,
            garbled in prop::collection::vec((0_u64..600, any::<u8>()), 0..8),
        ) {
            let mut file = tempfile::tempfile().expect("a file");
            let identity = Hash::of(b"one");
            let mut journal =
                Journal::create(file.try_clone().expect("a clone"), &identity, 1).expect("written");
            for index in 0..10 {
                journal.write(index, Hash::of(&[index as u8])).expect("written");
            }
            let length = file.metadata().expect("metadata").len();
            file.set_len(cut.min(length)).expect("cut");
            for (at, byte) in garbled {
                file.seek(SeekFrom::Start(at)).expect("a place");
                file.write_all(&[byte]).expect("written");
            }
            if let Ok(mut journal) = Journal::open(file, &identity).expect("it can be read") {
                for (index, hash) in entries(&mut journal, 20) {
                    prop_assert_eq!(hash, Hash::of(&[index as u8]));
                }
            }
        }
    }
}
