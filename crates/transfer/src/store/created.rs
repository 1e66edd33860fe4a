//! Folders that this program created for a transfer, and that are not sealed yet.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::sync::{Arc, Mutex, PoisonError};

use super::directory::identity_of;
use crate::identity::Owner;
use crate::name::Name;

/// Maximum number of stored folders; earlier ones keep the time and permissions of their creation.
const MOST_MADE: usize = 4096;

/// Identity of a created folder, which distinguishes it from another one that takes its name later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreatedFolder {
    device: u64,
    inode: u64,
}

/// Folders created over all associations with a store: a transfer that resumes over another one seals those it created before.
#[derive(Clone, Debug, Default)]
pub(super) struct CreatedFolders(Arc<Mutex<VecDeque<(Owner, Name, CreatedFolder)>>>);

impl CreatedFolder {
    /// Returns the identity of a folder that was looked up.
    pub(super) fn of_found(metadata: &cap_std::fs::Metadata) -> Self {
        let (device, inode) = identity_of(metadata);
        CreatedFolder { device, inode }
    }

    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        CreatedFolder { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Returns an equal identity for all folders, because other systems provide none: any folder with the name counts as the created one.
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

    /// Returns the folder that was created for this sender under a name.
    pub(super) fn of(&self, owner: Owner, name: &Name) -> Option<CreatedFolder> {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(by, other, _): &&(Owner, Name, CreatedFolder)| (by, other) == (&owner, name);
        list.iter().rfind(is_it).map(|(_, _, made)| *made)
    }

    /// Removes the entry for a folder that was created for this sender under a name.
    pub(super) fn forget(&self, owner: Owner, name: &Name) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(by, other, _)| (by, other) != (&owner, name));
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
        assert_eq!(made.of(owner, &name(0)), None, "the oldest is forgotten");
        assert_eq!(made.of(other, &name(1)), None, "it was made for another sender");
        let latest = CreatedFolder { device: 1, inode: 3 };
        assert_eq!(made.of(owner, &name(1)), Some(latest), "the latest counts");
        made.forget(owner, &name(1));
        assert_eq!(made.of(owner, &name(1)), None, "once");
        assert_eq!(made.0.lock().expect("a list").len(), MOST_MADE - 1);
    }
}
