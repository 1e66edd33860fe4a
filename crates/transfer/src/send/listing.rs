//! Listings of the sent folders, sent once their content is done.

use std::io;

use tokio::sync::mpsc;

use super::walk::{InspectedEntry, Place, ReceiverDropped, Root, inspection_failure};
use crate::name::{BadName, Name};
use crate::protocol::{
    Failure, LISTED_NAME_BYTES, Links, Listing, MAX_CONTROL_BYTES, MAX_LISTED_BYTES, Reason,
};
use crate::scarcity::{Scarcity, ScarcityRetries};
use crate::store::identity_of;

/// Number of listings that wait to be sent.
const WAITING_LISTINGS: usize = 16;
/// Maximum length of the names in one message, in bytes, so that it stays below the limit with their lengths and the folder's name.
const MESSAGE_BYTES: usize = MAX_CONTROL_BYTES / 2;

/// Result of listing a folder.
pub(super) enum Listed {
    Names(Listing),
    /// The folder could not be read completely.
    Failed {
        name: String,
        failure: Failure,
    },
}

/// A folder to list.
struct Folder {
    place: Place,
    name: String,
    /// Identities of the folders that contain it, to which a link may lead back.
    within: Vec<(u64, u64)>,
}

/// Starts to list folders and their subfolders on a separate thread.
pub(super) fn list(roots: Vec<Root>) -> mpsc::Receiver<Listed> {
    let (out, listed) = mpsc::channel(WAITING_LISTINGS);
    tokio::task::spawn_blocking(move || {
        let lister = Lister { out, retries: ScarcityRetries::default() };
        // An error means that the caller has dropped the channel.
        let _ = roots.iter().try_for_each(|root| lister.root(root));
    });
    listed
}

struct Lister {
    out: mpsc::Sender<Listed>,
    retries: ScarcityRetries,
}

impl Lister {
    fn root(&self, root: &Root) -> Result<(), ReceiverDropped> {
        let Root { place, name, identity, .. } = root;
        match self.retries.retry(|| place.folder.metadata_behind(&place.path)) {
            Ok(there) if identity_of(&there) == *identity => {}
            Ok(_) => {
                let text = format!("{} is no longer the folder that was sent", place.show());
                return self.fail(name.clone(), Failure::new(Reason::Changed, text));
            }
            Err(error) => return self.fail(name.clone(), inspection_failure(place, &error)),
        }
        let mut left = vec![Folder { place: place.clone(), name: name.clone(), within: Vec::new() }];
        while let Some(folder) = left.pop() {
            match self.retries.retry(|| entries(&folder.place)) {
                Ok(names) => {
                    self.send_message(&folder.name, &names)?;
                    for last in &names {
                        match self.retries.retry(|| below(root, &folder, last)) {
                            Ok(below) => left.extend(below),
                            Err(failure) => self.fail(format!("{}/{last}", folder.name), failure)?,
                        }
                    }
                }
                Err(failure) => self.fail(folder.name, failure)?,
            }
        }
        Ok(())
    }

    fn emit(&self, listed: Listed) -> Result<(), ReceiverDropped> {
        self.out.blocking_send(listed).map_err(|_| ReceiverDropped)
    }

    fn fail(&self, name: String, failure: Failure) -> Result<(), ReceiverDropped> {
        let text = format!("{failure}; no surplus file of the receiver was removed from it");
        self.emit(Listed::Failed { name, failure: Failure::new(failure.reason, text) })
    }

    fn send_message(&self, folder: &str, names: &[String]) -> Result<(), ReceiverDropped> {
        let (mut bytes, mut part) = (0, Vec::new());
        let listing =
            |names, is_complete| Listed::Names(Listing { folder: folder.into(), names, is_complete });
        for name in names {
            if bytes + name.len() + LISTED_NAME_BYTES > MESSAGE_BYTES {
                self.emit(listing(std::mem::take(&mut part), false))?;
                bytes = 0;
            }
            bytes += name.len() + LISTED_NAME_BYTES;
            part.push(name.as_str().into());
        }
        self.emit(listing(part, true))
    }
}

/// Returns the names in a folder in order, including names that were not offered. Fails if a name cannot be read.
fn entries(place: &Place) -> Result<Vec<String>, Failure> {
    let failed = |error: io::Error| inspection_failure(place, &error);
    let (mut names, mut bytes) = (Vec::new(), 0);
    for entry in place.folder.entries(&place.path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Ok(name) = name.into_string() else {
            let text = format!("{}: a name in it is not UTF-8; rename it", place.show());
            return Err(Failure::new(Reason::BadName, text));
        };
        // Part files are not listed. The receiver keeps its own part files.
        if Name::new(&name) == Err(BadName::Reserved) {
            continue;
        }
        bytes += name.len() + LISTED_NAME_BYTES;
        if bytes > MAX_LISTED_BYTES {
            let text = format!("{} has too many names to compare ({MAX_LISTED_BYTES} B)", place.show());
            return Err(Failure::new(Reason::NoSpace, text));
        }
        names.push(name);
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns a subfolder of a folder, if it was offered. Fails by scarcity only.
fn below(root: &Root, folder: &Folder, last: &str) -> Result<Option<Folder>, Failure> {
    let (place, name) = (folder.place.below(last), format!("{}/{last}", folder.name));
    let Ok(checked) = Name::new(&name) else { return Ok(None) };
    if !root.selection.takes(&place, &checked).map_err(|error| inspection_failure(&place, &error))? {
        return Ok(None);
    }
    let place = match root.selection.inspect(&place, &checked) {
        Ok(InspectedEntry::Place(place)) => place,
        Err(failure) if failure.is_scarcity() => return Err(failure),
        Ok(_) | Err(_) => return Ok(None),
    };
    let there = match place.folder.metadata_behind(&place.path) {
        Ok(there) if there.is_dir() => there,
        Err(error) if error.is_scarcity() => return Err(inspection_failure(&place, &error)),
        Ok(_) | Err(_) => return Ok(None),
    };
    let mut within = folder.within.clone();
    if root.selection.links == Links::Follow {
        let identity = identity_of(&there);
        if identity == root.identity || within.contains(&identity) {
            return Ok(None);
        }
        within.push(identity);
    }
    Ok(Some(Folder { place, name, within }))
}
