//! Folders that this program made for a transfer, and that are not sealed yet.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::sync::{Arc, Mutex, PoisonError};

use crate::identity::Owner;
use crate::name::Name;

/// Most folders that are remembered; of those made before them the time and permissions stay as they were made.
const MOST_MADE: usize = 4096;

/// A folder that was made, told from any other one that takes its name later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreatedFolder {
    device: u64,
    inode: u64,
}

/// What was made, over all associations with a store: a transfer that goes on over another one seals what it made before.
#[derive(Clone, Debug, Default)]
pub(super) struct CreatedFolders(Arc<Mutex<VecDeque<(Owner, Name, CreatedFolder)>>>);

impl CreatedFolder {
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        CreatedFolder { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Other systems are not asked: a name that was made is taken for the folder that was made.
    #[cfg(not(unix))]
    pub(super) fn of(_metadata: &Metadata) -> Self {
        CreatedFolder { device: 0, inode: 0 }
    }
}

impl CreatedFolders {
    pub(super) fn add(&self, owner: Owner, name: &Name, made: CreatedFolder) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(by, other, _)| (by, other) != (&owner, name));
        if list.len() == MOST_MADE {
            list.pop_front();
        }
        list.push_back((owner, name.clone(), made));
    }

    /// Takes out what was made for this sender under a name.
    pub(super) fn take(&self, owner: Owner, name: &Name) -> Option<CreatedFolder> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = list.iter().rposition(|(by, other, _)| (by, other) == (&owner, name))?;
        list.remove(at).map(|(_, _, made)| made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_folders_are_remembered_than_the_limit() {
        let (made, one) = (CreatedFolders::default(), CreatedFolder { device: 1, inode: 2 });
        let (owner, other) = (Owner::default(), crate::SenderId::from_bytes([1; 16]).owner());
        let name = |number: usize| Name::new(&format!("{number}")).expect("a name");
        (0..=MOST_MADE).for_each(|number| made.add(owner, &name(number), one));
        made.add(owner, &name(1), CreatedFolder { device: 1, inode: 3 });
        assert_eq!(made.take(owner, &name(0)), None, "the oldest is forgotten");
        assert_eq!(made.take(other, &name(1)), None, "it was made for somebody else");
        assert_eq!(
            made.take(owner, &name(1)),
            Some(CreatedFolder { device: 1, inode: 3 }),
            "the latest counts"
        );
        assert_eq!(made.take(owner, &name(1)), None, "once");
        assert_eq!(made.0.lock().expect("a list").len(), MOST_MADE - 1);
    }
}
