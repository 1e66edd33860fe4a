//! Rights of a peer, and the folder that it sees.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::name::Name;
use crate::protocol::{Failure, Reason};
use crate::store::{Folder, Usage, explain};

/// Rights of one peer. Rights restrict the options of the server and never extend them. The default does not restrict them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The peer may fetch files.
    pub read: bool,
    /// The peer may store new files.
    pub write: bool,
    /// The peer may replace existing files.
    pub overwrite: bool,
    /// The peer may request the removal of entries that it does not have.
    pub delete: bool,
    /// Folder below the served one that is the peer's root. It is created if it does not exist.
    pub folder: Option<Name>,
    /// Quota of the files in that folder, in bytes: sizes of regular files, and allocated bytes of unfinished ones.
    pub quota_bytes: Option<u64>,
}

impl Default for Rights {
    fn default() -> Self {
        Rights { read: true, write: true, overwrite: true, delete: true, folder: None, quota_bytes: None }
    }
}

/// Returns the refusal of a request for which the peer lacks a right.
pub(super) fn lacks(what: &str, right: &str) -> Failure {
    let text = format!("{what}: the line of this key in authorized_keys there lacks the right `{right}`");
    Failure::new(Reason::NotAllowed, text)
}

/// Folders below the served one that peers see, and their bytes. Transfers into one folder share its records.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms(Arc<Mutex<BTreeMap<String, (Folder, Usage)>>>);

impl Rooms {
    /// Opens the folder that a peer with these rights sees. The function may count the files in the folder, so call it on a
    /// blocking thread.
    pub(super) fn open(&self, served: &Folder, rights: &Rights) -> Result<Folder, Failure> {
        let name = rights.folder.as_ref().map_or("", Name::as_str);
        let (folder, usage) = self.room(served, rights, name)?;
        Ok(match rights.quota_bytes {
            Some(limit) => {
                let quota = usage.begin(limit, || folder.quota_bytes());
                folder.with_quota(quota)
            }
            None => folder,
        })
    }

    fn room(&self, served: &Folder, rights: &Rights, name: &str) -> Result<(Folder, Usage), Failure> {
        let folder = match &rights.folder {
            Some(below) => served.below(below).map_err(|error| explain(name, &error))?,
            None => served.clone(),
        };
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If the folder was moved or removed meanwhile, the folder at this path is a different one, with other records and bytes.
        if let Some((known, usage)) = rooms.get(name).filter(|(known, _)| known.is_same_as(&folder)) {
            return Ok((known.clone(), usage.clone()));
        }
        let room = (folder, Usage::default());
        rooms.insert(name.to_owned(), room.clone());
        Ok(room)
    }
}
