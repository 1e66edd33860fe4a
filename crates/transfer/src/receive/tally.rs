//! Upper bounds that a person has confirmed, and their use by offers.

use std::collections::BTreeMap;

use crate::accept::Confirmed;
use crate::block::BLOCK_BYTES;
use crate::error::TransferError;
use crate::name::Name;
use crate::offering::{Entry, EntryKind};
use crate::protocol::{Kind, MAX_OPEN_OFFERS};

/// Numbers and bytes that may still be offered of each confirmed entry.
#[derive(Debug)]
pub(super) struct Tally {
    left: BTreeMap<String, Left>,
    most_stream_bytes: u64,
    /// Sizes of files that the source gave up to offer them again. An offer of the same name takes the place of the earlier one.
    given_up: BTreeMap<Name, u64>,
}

#[derive(Debug)]
struct Left {
    kind: EntryKind,
    files: u64,
    folders: u64,
    links: u64,
    bytes: u64,
}

impl From<&Entry> for Left {
    fn from(entry: &Entry) -> Self {
        let bytes = entry.bytes().unwrap_or(0);
        Left {
            kind: entry.kind(),
            files: entry.files(),
            folders: entry.folders(),
            links: entry.links(),
            bytes,
        }
    }
}

impl Tally {
    pub(super) fn new(confirmed: &Confirmed) -> Self {
        let left = confirmed.entries.iter().map(|entry| (entry.name().to_owned(), entry.into())).collect();
        Tally { left, most_stream_bytes: confirmed.most_stream_bytes, given_up: BTreeMap::new() }
    }

    /// Counts an offer.
    ///
    /// # Errors
    /// [`TransferError::Unconfirmed`] if it is of another kind than was confirmed, or one too many, or too large.
    pub(super) fn offered(&mut self, name: &Name, kind: &Kind) -> Result<(), TransferError> {
        let top = name.top();
        let is_top = top == name.as_str();
        let earlier = self.given_up.remove(name);
        let Some(left) = self.left.get_mut(top) else { return Err(beyond(name, "is not among it")) };
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
        if let Some(size_bytes) = earlier {
            left.files += 1;
            left.bytes = left.bytes.saturating_add(size_bytes);
        }
        let (counter, size_bytes, what) = match kind {
            Kind::File { size_bytes, .. } => (&mut left.files, *size_bytes, "file"),
            Kind::Stream { .. } => (&mut left.files, 0, "stream"),
            Kind::Link { .. } => (&mut left.links, 0, "link"),
            Kind::Folder => (&mut left.folders, 0, "folder"),
            Kind::FolderEnd => return Ok(()),
        };
        *counter = counter.checked_sub(1).ok_or_else(|| beyond(name, &format!("is one {what} more")))?;
        left.bytes = left.bytes.checked_sub(size_bytes).ok_or_else(|| {
            beyond(name, &format!("has {size_bytes} B, where what was confirmed leaves {} B", left.bytes))
        })?;
        Ok(())
    }

    /// Notes that the source gives a file up and offers it again. Its next offer replaces this one.
    pub(super) fn given_up(&mut self, name: &Name, kind: &Kind) {
        if let (Kind::File { size_bytes, .. }, true) = (kind, self.given_up.len() < MAX_OPEN_OFFERS) {
            self.given_up.insert(name.clone(), *size_bytes);
        }
    }

    /// Checks a block of a stream.
    ///
    /// # Errors
    /// [`TransferError::Unconfirmed`] if it ends behind the bound of streams.
    pub(super) fn stream_block(&self, name: &Name, index: u64, block_len: u32) -> Result<(), TransferError> {
        let end = index.saturating_mul(u64::from(BLOCK_BYTES)).saturating_add(u64::from(block_len));
        if end <= self.most_stream_bytes {
            return Ok(());
        }
        Err(beyond(name, &format!("has more than {} B", self.most_stream_bytes)))
    }
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
