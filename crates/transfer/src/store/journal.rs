//! The journal of an unfinished file: a record with the hash of each block that is in its part file, in the order of arrival.
//!
//! A header identifies the source of the file. Records are only appended, so the length of a journal is bounded by the received
//! blocks, regardless of their indices. All records have the same length and a checksum. A record that was written in part, or
//! belongs to another header, counts as missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};

use crate::block::{Hash, Root};
use crate::cancel::Cancel;

const MAGIC: [u8; 8] = *b"ANBJRNL2";
const MARK_AT: usize = MAGIC.len() + Hash::LEN;
const SUM_AT: usize = MARK_AT + 8;
const HEADER_LEN: usize = SUM_AT + SUM_LEN;
const SUM_LEN: usize = 8;
const HASH_AT: usize = 12;
const ENTRY_LEN: usize = HASH_AT + Hash::LEN;
const RECORD_LEN: usize = ENTRY_LEN + SUM_LEN;

/// Maximum number of hashes in memory while the root is computed, because earlier blocks come later in the journal.
const MOST_WAITING: usize = 1 << 16;

/// Record of a block in the part file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) index: u64,
    /// Length of the block, in bytes.
    pub(super) len: u32,
    pub(super) hash: Hash,
}

#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// Key of the checksums: records of another source do not match it.
    key: [u8; 32],
    mark: u64,
    /// Offset of the next record, in bytes.
    end: u64,
}

impl Journal {
    /// Opens the journal of the source with this identity, if the file contains one.
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
        // A partial record at the end is overwritten.
        let records = (file.metadata()?.len() - HEADER_LEN as u64) / RECORD_LEN as u64;
        Ok(Ok(Journal::with(file, identity, mark, records)))
    }

    /// Creates an empty journal. `mark` is the time stamp that the part file has, in seconds, until another program changes the
    /// file.
    pub(super) fn create(file: File, identity: &Hash, mark: u64) -> io::Result<Self> {
        let mut journal = Journal::with(file, identity, mark, 0);
        journal.restart(identity, mark)?;
        Ok(journal)
    }

    /// Removes all records, and assigns the journal to this source.
    pub(super) fn restart(&mut self, identity: &Hash, mark: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        let mut header = [&MAGIC[..], &identity.0, &mark.to_be_bytes()].concat();
        header.extend_from_slice(&sum(&identity.0, &header));
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        (self.key, self.mark, self.end) = (key(identity, mark), mark, HEADER_LEN as u64);
        Ok(())
    }

    fn with(file: File, identity: &Hash, mark: u64, records: u64) -> Self {
        Journal { file, key: key(identity, mark), mark, end: HEADER_LEN as u64 + records * RECORD_LEN as u64 }
    }

    pub(super) fn mark(&self) -> u64 {
        self.mark
    }

    /// Appends a record. After an error, the next record is written at the same offset.
    pub(super) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&entry.encode(&self.key))?;
        self.end += RECORD_LEN as u64;
        Ok(())
    }

    /// Erases the record at an offset.
    pub(super) fn erase(&mut self, at: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(&[0; RECORD_LEN])
    }

    /// Syncs the journal to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Calls `see` with each record and its offset, in the order of arrival, until `see` fails or `cancel` is cancelled.
    pub(super) fn scan(
        &mut self,
        cancel: &Cancel,
        mut see: impl FnMut(u64, Entry) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(HEADER_LEN as u64))?;
        let mut records = BufReader::with_capacity(RECORD_LEN * 4096, &self.file);
        let mut record = [0; RECORD_LEN];
        let mut at = HEADER_LEN as u64;
        while at < self.end {
            cancel.check()?;
            match records.read_exact(&mut record) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
            if let Some(entry) = Entry::decode(&self.key, &record) {
                see(at, entry)?;
            }
            at += RECORD_LEN as u64;
        }
        Ok(())
    }

    /// Returns the root over the hashes of all blocks of a file with `blocks` blocks; `None` if one is missing.
    pub(super) fn root(&mut self, blocks: u64, cancel: &Cancel) -> io::Result<Option<Hash>> {
        self.root_within(blocks, cancel, MOST_WAITING)
    }

    /// Blocks arrive nearly in order, so one pass over the journal is enough with little memory. Otherwise the hashes furthest
    /// ahead are dropped and read again.
    fn root_within(&mut self, blocks: u64, cancel: &Cancel, most: usize) -> io::Result<Option<Hash>> {
        let (mut root, mut next) = (Root::default(), 0);
        let mut waiting = Waiting::new(most);
        while next < blocks {
            let before = next;
            self.scan(cancel, |_, entry| {
                if (next..blocks).contains(&entry.index) {
                    waiting.insert(entry.index, entry.hash);
                }
                while let Some(hash) = waiting.take(next) {
                    root.add(hash);
                    next += 1;
                }
                waiting.forget_furthest();
                Ok(())
            })?;
            if next == before {
                return Ok(None);
            }
        }
        Ok((next == blocks).then(|| root.finish()))
    }
}

/// Hashes of blocks behind missing ones.
struct Waiting {
    hashes: BTreeMap<u64, Hash>,
    most: usize,
}

impl Waiting {
    fn new(most: usize) -> Self {
        Waiting { hashes: BTreeMap::new(), most }
    }

    fn insert(&mut self, index: u64, hash: Hash) {
        self.hashes.insert(index, hash);
    }

    fn take(&mut self, index: u64) -> Option<Hash> {
        self.hashes.remove(&index)
    }

    /// Drops the furthest hash if the list exceeds its maximum. Call it after each insertion.
    fn forget_furthest(&mut self) {
        if self.hashes.len() > self.most {
            self.hashes.pop_last();
        }
    }
}

impl Entry {
    fn encode(&self, key: &[u8; 32]) -> [u8; RECORD_LEN] {
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(&self.index.to_be_bytes());
        record[8..HASH_AT].copy_from_slice(&self.len.to_be_bytes());
        record[HASH_AT..ENTRY_LEN].copy_from_slice(&self.hash.0);
        let sum = sum(key, &record[..ENTRY_LEN]);
        record[ENTRY_LEN..].copy_from_slice(&sum);
        record
    }

    fn decode(key: &[u8; 32], record: &[u8; RECORD_LEN]) -> Option<Self> {
        let is_right = record[ENTRY_LEN..] == sum(key, &record[..ENTRY_LEN]);
        is_right.then(|| Entry {
            index: u64::from_be_bytes(record[..8].try_into().expect("eight bytes")),
            len: u32::from_be_bytes(record[8..HASH_AT].try_into().expect("four bytes")),
            hash: Hash(record[HASH_AT..ENTRY_LEN].try_into().expect("the length of a hash")),
        })
    }
}

fn key(identity: &Hash, mark: u64) -> [u8; 32] {
    *blake3::hash(&[&identity.0[..], &mark.to_be_bytes()].concat()).as_bytes()
}

fn sum(key: &[u8; 32], bytes: &[u8]) -> [u8; SUM_LEN] {
    let hash = blake3::keyed_hash(key, bytes);
    *hash.as_bytes().first_chunk().expect("a hash is longer")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(index: u64) -> Entry {
        Entry { index, len: (index % 1000) as u32 + 1, hash: Hash::of(&index.to_be_bytes()) }
    }

    fn journal(file: &File, indices: &[u64]) -> Journal {
        let mut journal =
            Journal::create(file.try_clone().expect("a clone"), &Hash::of(b"one"), 77).expect("written");
        indices.iter().for_each(|&index| journal.append(&entry(index)).expect("written"));
        journal
    }

    fn entries(journal: &mut Journal) -> Vec<Entry> {
        let mut seen = Vec::new();
        let keep = |_, entry| {
            seen.push(entry);
            Ok(())
        };
        journal.scan(&Cancel::default(), keep).expect("it can be read");
        seen
    }

    fn open(file: &File) -> Option<Journal> {
        Journal::open(file.try_clone().expect("a clone"), &Hash::of(b"one")).expect("it can be read").ok()
    }

    #[test]
    fn journal_has_written_blocks_of_one_source() {
        let file = tempfile::tempfile().expect("a file");
        let mut first = journal(&file, &[0, 5, 2]);
        first.erase(HEADER_LEN as u64 + RECORD_LEN as u64).expect("written");
        let mut again = open(&file).expect("it is the same");
        assert_eq!(again.mark(), 77);
        assert_eq!(entries(&mut again), [entry(0), entry(2)]);
        again.append(&entry(7)).expect("written");
        assert_eq!(entries(&mut again), [entry(0), entry(2), entry(7)]);
        assert!(Journal::open(file, &Hash::of(b"two")).expect("it can be read").is_err());
    }

    #[test]
    fn journal_length_depends_on_received_blocks_only() {
        let file = tempfile::tempfile().expect("a file");
        let mut far = journal(&file, &[1 << 40, u64::MAX / 2]);
        assert_eq!(file.metadata().expect("metadata").len(), (HEADER_LEN + 2 * RECORD_LEN) as u64);
        assert_eq!(entries(&mut far).len(), 2);
    }

    #[test]
    fn partly_written_block_is_written_again() {
        let file = tempfile::tempfile().expect("a file");
        drop(journal(&file, &[0, 1]));
        file.set_len((HEADER_LEN + RECORD_LEN + 7) as u64).expect("cut");
        let mut again = open(&file).expect("it is the same");
        again.append(&entry(2)).expect("written");
        assert_eq!(entries(&mut again), [entry(0), entry(2)]);
    }

    #[test]
    fn a_scan_ends_when_it_is_cancelled() {
        let file = tempfile::tempfile().expect("a file");
        let mut journal = journal(&file, &[0, 1, 2, 3]);
        let (cancel, mut seen) = (Cancel::default(), 0);
        let ended = journal.scan(&cancel, |_, _| {
            seen += 1;
            cancel.cancel();
            Ok(())
        });
        assert!(ended.is_err());
        assert_eq!(seen, 1);
        assert!(journal.root(4, &cancel).is_err());
    }

    #[test]
    fn the_root_is_that_of_all_blocks_in_order_however_they_arrived() {
        let mut root = Root::default();
        (0..40).for_each(|index| root.add(entry(index).hash));
        let (forwards, backwards): (Vec<u64>, Vec<u64>) = ((0..40).collect(), (0..40).rev().collect());
        let mixed: Vec<u64> = (0..40).map(|at| at * 7 % 40).collect();
        for indices in [forwards, backwards, mixed] {
            let file = tempfile::tempfile().expect("a file");
            let mut journal = journal(&file, &indices);
            for most in [1, 3, 100] {
                let found = journal.root_within(40, &Cancel::default(), most).expect("it can be read");
                assert_eq!(found, Some(root.finish()), "{most}");
            }
            assert_eq!(journal.root(41, &Cancel::default()).expect("it can be read"), None, "one is missing");
        }
    }

    #[test]
    fn waiting_hashes_are_the_nearest_ones_within_memory_limit() {
        let mut waiting = Waiting::new(3);
        for (index, kept) in [(5, &[5][..]), (9, &[5, 9]), (7, &[5, 7, 9]), (3, &[3, 5, 7]), (8, &[3, 5, 7])]
        {
            waiting.insert(index, entry(index).hash);
            waiting.forget_furthest();
            assert_eq!(waiting.hashes.keys().copied().collect::<Vec<_>>(), kept);
        }
        assert_eq!((waiting.take(4), waiting.take(5)), (None, Some(entry(5).hash)));
    }

    proptest! {
        #[test]
        fn damaged_journal_reports_no_unwritten_block(
            cut in 0_u64..700,
            garbled in prop::collection::vec((0_u64..700, any::<u8>()), 0..8),
        ) {
            let mut file = tempfile::tempfile().expect("a file");
            drop(journal(&file, &[3, 1, 4, 0, 5, 9, 2, 6, 8, 7]));
            let length = file.metadata().expect("metadata").len();
            file.set_len(cut.min(length)).expect("cut");
            for (at, byte) in garbled {
                file.seek(SeekFrom::Start(at)).expect("a place");
                file.write_all(&[byte]).expect("written");
            }
            if let Some(mut journal) = open(&file) {
                for found in entries(&mut journal) {
                    prop_assert_eq!(found, entry(found.index));
                }
            }
        }
    }
}
