//! An offered file that is not done, and how far it is.

use std::io;
use std::time::Instant;

use crate::block::{Hash, block_len, blocks_of};
use crate::claims::Claim;
use crate::name::Name;
use crate::protocol::{Kind, Offer, ProtocolError};
use crate::store::{Flow, Part};

/// How far an offered file is.
pub(super) enum Stage {
    /// Somebody else receives it.
    Waiting { since: Instant },
    /// It may be there already; its root will tell.
    Comparing,
    /// It arrives in a folder.
    Part(Box<Part>),
    /// It arrives in a pipe.
    Flow(Box<Flow>),
    /// All of it is there, and is on its way to the disk and to its name.
    Committing,
}

pub(super) struct Open {
    pub(super) name: Name,
    pub(super) offer: Offer,
    pub(super) stage: Stage,
    /// Its size and root, once the source has sent everything.
    pub(super) end: Option<(u64, Hash)>,
    pub(super) held_bytes: u64,
    pub(super) reused_bytes: u64,
    /// Says that this transfer holds the part file; dropped with it.
    pub(super) _claim: Option<Claim>,
}

impl Open {
    /// Whether a block has a place in this file.
    pub(super) fn check(&self, index: u64, len: u32, window_blocks: usize) -> Result<(), ProtocolError> {
        let is_wanted = match &self.stage {
            Stage::Part(part) => part.admits(index, len),
            Stage::Flow(flow) => {
                let fits = size_of(&self.offer)
                    .is_none_or(|size| index < blocks_of(size) && len == block_len(size, index));
                fits && len > 0 && flow.admits(index, window_blocks)
            }
            Stage::Waiting { .. } | Stage::Comparing | Stage::Committing => {
                return Err(ProtocolError::Unexpected("data that nobody asked for"));
            }
        };
        if is_wanted { Ok(()) } else { Err(ProtocolError::Unexpected("a block that nobody asked for")) }
    }

    /// Whether the file system has room for a block there.
    pub(super) fn check_room(&mut self, index: u64) -> io::Result<()> {
        match &mut self.stage {
            Stage::Part(part) => part.check_room(index),
            Stage::Waiting { .. } | Stage::Comparing | Stage::Committing | Stage::Flow(_) => Ok(()),
        }
    }
}

pub(super) fn is_link(offer: &Offer) -> bool {
    matches!(offer.kind, Kind::Link { .. })
}

pub(super) fn size_of(offer: &Offer) -> Option<u64> {
    match offer.kind {
        Kind::File { size_bytes, .. } => Some(size_bytes),
        Kind::Stream { .. } | Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => None,
    }
}
