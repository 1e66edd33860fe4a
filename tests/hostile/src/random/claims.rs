//! Claims of the peer about the content of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anabranch_transfer::{BLOCK_BYTES, Hash};

use crate::inbox::Inbox;
use crate::packet::root;

/// Sizes and roots in an `End` by name, and the files that were reported as stored.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ended: BTreeMap<String, BTreeSet<(u64, [u8; Hash::LEN])>>,
    stored: Vec<String>,
}

impl Claims {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an `End` for an offer with this name.
    pub(super) fn ended(&self, name: &str, size_bytes: u64, root: Hash) {
        self.lock().ended.entry(name.to_owned()).or_default().insert((size_bytes, root.0));
    }

    /// Records that the other side reported a file with this name as stored.
    pub(super) fn stored(&self, name: String) {
        self.lock().stored.push(name);
    }

    /// Compares the inbox with the claims, and returns the number of files that were reported as stored.
    pub(super) fn check(&self, inbox: &Inbox, may_be_deleted: bool) -> Result<u64, String> {
        let state = self.lock();
        for name in inbox.new_files().map_err(|error| error.to_string())? {
            let (size, root) = read(&inbox.path().join(&name))
                .map_err(|error| format!("the file {name:?} cannot be read: {error}"))?;
            let is_claimed = names_of(&name)
                .iter()
                .any(|name| state.ended.get(name).is_some_and(|claims| claims.contains(&(size, root.0))));
            if !is_claimed {
                let claims: Vec<_> =
                    names_of(&name).iter().map(|name| state.ended.get(name).cloned()).collect();
                return Err(format!(
                    "the file {name:?} of {size} bytes holds what no hash said: root {root:?}, claims {claims:?}"
                ));
            }
        }
        // Files outside of folders are never removed.
        for name in state.stored.iter().filter(|name| !may_be_deleted || !name.contains('/')) {
            let mut path = inbox.path().join(name);
            // The link that led there may have been replaced by a file.
            if let (false, Some(rest)) = (path.exists(), name.strip_prefix("alias/")) {
                path = inbox.path().join("kept").join(rest);
            }
            let there = path.symlink_metadata();
            // A link may have replaced the file.
            if !there.as_ref().is_ok_and(|there| there.is_file() || there.is_symlink()) {
                return Err(format!("{name:?} was reported as stored as a file, but there is {there:?}"));
            }
        }
        Ok(state.stored.len() as u64)
    }
}

/// Returns the names under which a file may have been offered: through a link, and before a number was appended.
fn names_of(path: &str) -> Vec<String> {
    let unnumbered = path.rsplit_once('.').filter(|(_, number)| number.parse::<u32>().is_ok());
    let mut names = vec![path.to_owned()];
    names.extend(unnumbered.map(|(name, _)| name.to_owned()));
    let aliases: Vec<String> = names
        .iter()
        .filter_map(|name| name.strip_prefix("kept/"))
        .map(|rest| format!("alias/{rest}"))
        .collect();
    names.extend(aliases);
    names
}

/// Returns a file's size and the root over its blocks.
fn read(path: &Path) -> std::io::Result<(u64, Hash)> {
    let mut file = File::open(path)?;
    let (mut blocks, mut size) = (Vec::new(), 0);
    loop {
        let mut block = Vec::new();
        (&mut file).take(u64::from(BLOCK_BYTES)).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok((size, root(blocks)));
        }
        size += block.len() as u64;
        blocks.push(Hash::of(&block));
    }
}
