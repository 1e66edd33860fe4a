//! Upper bounds that a person has confirmed, and their use by offers.
//!
//! The bounds apply to the whole transfer, over any number of associations. The source repeats all offers on each association, so a
//! name counts once in all associations.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::accept::Confirmed;
use crate::block::{BLOCK_BYTES, Hash};
use crate::error::TransferError;
use crate::name::Name;
use crate::offering::{Entry, EntryKind};
use crate::protocol::{Kind, MAX_OPEN_OFFERS};

/// Maximum number of names that are stored from one association to the next. Names beyond this number count again on each
/// association.
const MOST_COUNTED: usize = 1 << 20;

/// Numbers and bytes of each confirmed entry that may still be offered. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Tally(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    left: BTreeMap<String, Remaining>,
    most_stream_bytes: u64,
    /// Sizes of files that the source abandoned in order to offer them again. An offer of the same name replaces the earlier one.
    given_up: BTreeMap<Name, u64>,
    counted: HashMap<[u8; 16], CountedName>,
    /// Number of the association.
    association: u32,
}

/// An offered name with its kind.
#[derive(Clone, Copy, Debug)]
struct CountedName {
    size_bytes: u64,
    /// Number of the association on which the name was last offered.
    association: u32,
    is_stored: bool,
}

#[derive(Debug)]
struct Remaining {
    kind: EntryKind,
    files: u64,
    folders: u64,
    links: u64,
    bytes: u64,
}

impl From<&Entry> for Remaining {
    fn from(entry: &Entry) -> Self {
        let bytes = entry.bytes().unwrap_or(0);
        Remaining {
            kind: entry.kind(),
            files: entry.files(),
            folders: entry.folders(),
            links: entry.links(),
            bytes,
        }
    }
}

impl Tally {
    pub(crate) fn new(confirmed: &Confirmed) -> Self {
        let left = confirmed.entries.iter().map(|entry| (entry.name().to_owned(), entry.into())).collect();
        Tally(Arc::new(Mutex::new(Counts {
            left,
            most_stream_bytes: confirmed.most_stream_bytes,
            given_up: BTreeMap::new(),
            counted: HashMap::new(),
            association: 0,
        })))
    }

    /// Begins another association of the same transfer, on which everything is offered again.
    pub(crate) fn begin(&self) {
        let mut counts = self.lock();
        counts.association += 1;
        counts.given_up.clear();
    }

    /// Counts an offer.
    ///
    /// # Errors
    /// Returns [`TransferError::Unconfirmed`] if the offer is of another kind than the confirmed entry, or exceeds its number or
    /// size.
    pub(super) fn offered(&self, name: &Name, kind: &Kind) -> Result<(), TransferError> {
        self.lock().offered(name, kind)
    }

    /// Counts a file again that gets a second name, beside its name from an earlier association.
    ///
    /// # Errors
    /// Returns [`TransferError::Unconfirmed`] if the file exceeds the confirmed number or size.
    pub(super) fn kept_beside(&self, name: &Name, kind: &Kind) -> Result<(), TransferError> {
        let mut counts = self.lock();
        match counts.counted.get(&key(name, kind)) {
            Some(counted) if counted.is_stored => counts.charge(name, kind),
            _ => Ok(()),
        }
    }

    /// Records that a file is stored.
    pub(super) fn stored(&self, name: &Name, kind: &Kind) {
        if let Some(counted) = self.lock().counted.get_mut(&key(name, kind)) {
            counted.is_stored = true;
        }
    }

    /// Records that the source abandons a file and offers it again. Its next offer replaces this one.
    pub(super) fn given_up(&self, name: &Name, kind: &Kind) {
        let given_up = &mut self.lock().given_up;
        if let (Kind::File { size_bytes, .. }, true) = (kind, given_up.len() < MAX_OPEN_OFFERS) {
            given_up.insert(name.clone(), *size_bytes);
        }
    }

    /// Checks a block of a stream.
    ///
    /// # Errors
    /// Returns [`TransferError::Unconfirmed`] if the block ends beyond the bound of streams.
    pub(super) fn stream_block(&self, name: &Name, index: u64, block_len: u32) -> Result<(), TransferError> {
        let most = self.lock().most_stream_bytes;
        let end = index.saturating_mul(u64::from(BLOCK_BYTES)).saturating_add(u64::from(block_len));
        if end <= most {
            return Ok(());
        }
        Err(beyond(name, &format!("has more than {most} B")))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn offered(&mut self, name: &Name, kind: &Kind) -> Result<(), TransferError> {
        let top = name.top();
        let is_top = top == name.as_str();
        let Some(left) = self.left.get(top) else { return Err(beyond(name, "is not among it")) };
        let fits = match (left.kind, kind) {
            (EntryKind::Folder, Kind::Folder | Kind::FolderEnd) => true,
            (EntryKind::Folder, Kind::File { .. } | Kind::Link { .. }) => !is_top,
            (EntryKind::File, Kind::File { .. })
            | (EntryKind::Stream, Kind::Stream { .. })
            | (EntryKind::Link, Kind::Link { .. }) => is_top,
            _ => false,
        };
        if !fits {
            return Err(beyond(name, &format!("is {}, where `{}` is {}", of_kind(kind), top, of(left.kind))));
        }
        let (key, association) = (key(name, kind), self.association);
        let is_again = self.given_up.remove(name).is_some();
        let earlier = self.counted.get(&key).copied();
        match earlier.filter(|earlier| is_again || earlier.association != association) {
            Some(earlier) => self.charge_bytes(name, size_of(kind).saturating_sub(earlier.size_bytes))?,
            None => self.charge(name, kind)?,
        }
        if earlier.is_some() || self.counted.len() < MOST_COUNTED {
            let size_bytes = size_of(kind).max(earlier.map_or(0, |earlier| earlier.size_bytes));
            let is_stored = earlier.is_some_and(|earlier| earlier.is_stored);
            self.counted.insert(key, CountedName { size_bytes, association, is_stored });
        }
        Ok(())
    }

    fn charge(&mut self, name: &Name, kind: &Kind) -> Result<(), TransferError> {
        let Some(left) = self.left.get_mut(name.top()) else { return Err(beyond(name, "is not among it")) };
        let (counter, what) = match kind {
            Kind::File { .. } => (&mut left.files, "file"),
            Kind::Stream { .. } => (&mut left.files, "stream"),
            Kind::Link { .. } => (&mut left.links, "link"),
            Kind::Folder => (&mut left.folders, "folder"),
            Kind::FolderEnd => return Ok(()),
        };
        *counter = counter.checked_sub(1).ok_or_else(|| beyond(name, &format!("is one {what} more")))?;
        self.charge_bytes(name, size_of(kind))
    }

    fn charge_bytes(&mut self, name: &Name, size_bytes: u64) -> Result<(), TransferError> {
        let Some(left) = self.left.get_mut(name.top()) else { return Err(beyond(name, "is not among it")) };
        left.bytes = left.bytes.checked_sub(size_bytes).ok_or_else(|| {
            beyond(
                name,
                &format!("has {size_bytes} B more, where what was confirmed leaves {} B", left.bytes),
            )
        })?;
        Ok(())
    }
}

fn size_of(kind: &Kind) -> u64 {
    match kind {
        Kind::File { size_bytes, .. } => *size_bytes,
        Kind::Stream { .. } | Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => 0,
    }
}

/// Returns the digest of a name and its kind.
fn key(name: &Name, kind: &Kind) -> [u8; 16] {
    let digest = Hash::of(format!("{} {}", of_kind(kind), name.as_str()).as_bytes());
    std::array::from_fn(|at| digest.0[at])
}

fn beyond(name: &Name, why: &str) -> TransferError {
    TransferError::Unconfirmed(format!("`{}` {why}", name.as_str()).into())
}

fn of(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "a file",
        EntryKind::Stream => "a stream",
        EntryKind::Link => "a link",
        EntryKind::Folder => "a folder",
    }
}

fn of_kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::File { .. } => "a file",
        Kind::Stream { .. } => "a stream",
        Kind::Link { .. } => "a link",
        Kind::Folder | Kind::FolderEnd => "a folder",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size_bytes: u64) -> Kind {
        Kind::File { size_bytes, first: None }
    }

    /// Returns the tally of a folder with two files of 300 B in total.
    fn tally() -> Tally {
        let tally = Tally::new(&Confirmed { entries: Vec::new(), most_stream_bytes: 0 });
        let left = Remaining { kind: EntryKind::Folder, files: 2, folders: 1, links: 0, bytes: 300 };
        tally.lock().left.insert("photos".to_owned(), left);
        tally
    }

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn fits(tally: &Tally, text: &str, kind: &Kind) -> bool {
        tally.offered(&name(text), kind).is_ok()
    }

    #[test]
    fn name_counts_once_in_all_associations() {
        let tally = tally();
        assert!(fits(&tally, "photos/a", &file(100)));
        tally.begin();
        assert!(fits(&tally, "photos/a", &file(150)), "it has grown by 50 B");
        assert!(fits(&tally, "photos/b", &file(150)));
        tally.begin();
        assert!(fits(&tally, "photos/b", &file(10)) && fits(&tally, "photos/a", &file(150)));
        assert!(!fits(&tally, "photos/c", &file(0)), "a third file");
        tally.begin();
        assert!(!fits(&tally, "photos/a", &file(151)), "a byte more");
    }

    #[test]
    fn name_that_is_offered_twice_on_one_association_counts_twice() {
        let tally = tally();
        assert!(fits(&tally, "photos/a", &file(1)) && fits(&tally, "photos/a", &file(1)));
        assert!(!fits(&tally, "photos/a", &file(1)));
    }

    #[test]
    fn copy_beside_a_stored_file_counts_as_another_one() {
        let (tally, a, b) = (tally(), name("photos/a"), name("photos/b"));
        assert!(fits(&tally, "photos/a", &file(100)));
        assert_eq!(tally.kept_beside(&a, &file(100)), Ok(()), "it is no copy");
        tally.stored(&a, &file(100));
        tally.begin();
        assert!(fits(&tally, "photos/a", &file(100)));
        assert_eq!(tally.kept_beside(&a, &file(100)), Ok(()), "there is room for one");
        tally.begin();
        assert!(fits(&tally, "photos/a", &file(100)));
        assert!(tally.kept_beside(&a, &file(100)).is_err());
        assert!(tally.kept_beside(&b, &file(100)).is_ok(), "it was not stored before");
    }
}
