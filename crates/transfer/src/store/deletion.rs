//! Removing from a folder what its source does not have.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, DirEntry, Metadata, ReadDir};

use super::directory::{identity_of, open_dir_nofollow};
use super::folder::{Folder, MOST_RENAMED};
use super::listed::ListedNames;
use crate::cancel::Cancel;
use crate::name::Name;
use crate::protocol::{Failure, OnClash};

/// How a folder is made to hold no more than its source.
pub(crate) struct Deletion<'a> {
    /// What the source holds.
    pub(crate) listed: &'a ListedNames,
    /// Whether something stays although the source does not have it; told its name and whether it is a folder.
    pub(crate) protects: &'a dyn Fn(&Name, bool) -> bool,
    /// Nothing is removed: it is only told what would be.
    pub(crate) is_dry: bool,
    pub(crate) cancel: &'a Cancel,
    /// Told what was removed, or why it could not be.
    pub(crate) tell: &'a mut dyn FnMut(&Name, Option<Failure>),
}

/// A folder in which something is to be removed.
struct Level {
    dir: Dir,
    entries: ReadDir,
    name: Name,
    /// Something stays in it, so it cannot be removed itself.
    keeps: bool,
}

impl Level {
    fn open(dir: Dir, name: Name) -> io::Result<Self> {
        Ok(Level { entries: dir.entries()?, dir, name, keeps: false })
    }
}

impl Folder {
    /// Removes from one of its folders what `deletion` does not list. Every removal is from a handle on the folder that the entry was
    /// found in, and no handle was got through a link, so that whatever others do meanwhile, nothing else is removed.
    ///
    /// # Errors
    /// Why the folder was not looked at as a whole; what was removed until then was told.
    pub(crate) fn delete_unlisted(&self, name: &Name, deletion: &mut Deletion<'_>) -> Result<(), Failure> {
        let delete = |deletion: &mut Deletion<'_>| {
            let Some(dir) = self.open_without_links(name)? else { return Ok(()) };
            let aliases = aliases(&dir, deletion)?;
            let mut levels = vec![Level::open(dir, name.clone())?];
            while let Some(entry) = levels.last_mut().map(|level| level.entries.next()) {
                deletion.cancel.check()?;
                match entry.transpose() {
                    Ok(Some(entry)) => self.delete_entry(&entry, &mut levels, &aliases, deletion),
                    Ok(None) => self.leave(&mut levels, deletion),
                    Err(error) => {
                        self.stay(&mut levels, &error, deletion);
                        self.leave(&mut levels, deletion);
                    }
                }
            }
            Ok(())
        };
        delete(deletion).map_err(|error: io::Error| self.failure(name, &error))
    }

    /// A handle on one of its folders; `None` if there is none of that name. Fails if the name leads through a link.
    fn open_without_links(&self, name: &Name) -> io::Result<Option<Dir>> {
        let mut dir = self.files.dir.try_clone()?;
        for part in name.as_str().split('/') {
            dir = match open_dir_nofollow(dir, part) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened?,
            };
        }
        Ok(Some(dir))
    }

    /// Removes what was found in the last of the folders, or goes into it.
    fn delete_entry(
        &self,
        entry: &DirEntry,
        levels: &mut Vec<Level>,
        aliases: &BTreeSet<(u64, u64)>,
        deletion: &mut Deletion<'_>,
    ) {
        let is_top = levels.len() == 1;
        let Some(level) = levels.last_mut() else { return };
        let last = entry.file_name();
        // A name that nobody can offer is none that a source has removed.
        let Some((last, name)) = last.to_str().and_then(|last| Some((last, level.name.below(last).ok()?)))
        else {
            level.keeps = true;
            return;
        };
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.stay(levels, &error, deletion),
        };
        let is_listed = is_top
            && (deletion.listed.contains(last)
                || aliases.contains(&identity_of(&metadata))
                || self.is_renamed(last, deletion.listed));
        if is_listed || (deletion.protects)(&name, metadata.is_dir()) {
            level.keeps = true;
            return;
        }
        let opened = if metadata.is_dir() {
            level
                .dir
                .try_clone()
                .and_then(|dir| Level::open(open_dir_nofollow(dir, last)?, name.clone()))
                .map(Some)
        } else {
            remove(deletion, || level.dir.remove_file(last)).map(|()| None)
        };
        match opened {
            Ok(Some(below)) => levels.push(below),
            Ok(None) => (deletion.tell)(&name, None),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                level.keeps = true;
                (deletion.tell)(&name, Some(self.failure(&name, &error)));
            }
        }
    }

    /// All that was in the last folder was looked at: it is removed if nothing stays in it and it is not the one that was listed.
    fn leave(&self, levels: &mut Vec<Level>, deletion: &mut Deletion<'_>) {
        let (Some(done), Some(above)) = (levels.pop(), levels.last_mut()) else { return };
        let removed = match done.keeps {
            true => Err(ErrorKind::DirectoryNotEmpty.into()),
            false => remove(deletion, || above.dir.remove_dir(done.name.last())),
        };
        match removed {
            Ok(()) => (deletion.tell)(&done.name, None),
            // What is in it stays, or somebody put something into it meanwhile.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => above.keeps = true,
            Err(error) => {
                above.keeps = true;
                (deletion.tell)(&done.name, Some(self.failure(&done.name, &error)));
            }
        }
    }

    /// Something in the last folder could not be looked at.
    fn stay(&self, levels: &mut [Level], error: &io::Error, deletion: &mut Deletion<'_>) {
        if let Some(level) = levels.last_mut() {
            level.keeps = true;
            (deletion.tell)(&level.name, Some(self.failure(&level.name, error)));
        }
    }

    /// Whether `--on-clash rename` may have given this name to something that the source has under another one.
    fn is_renamed(&self, last: &str, listed: &ListedNames) -> bool {
        let numbered = last.rsplit_once('.').filter(|_| self.on_clash == OnClash::Rename);
        numbered.is_some_and(|(name, number)| {
            let is_number = number.parse().is_ok_and(|parsed: u32| {
                (1..=MOST_RENAMED).contains(&parsed) && parsed.to_string() == number
            });
            is_number && listed.contains(name)
        })
    }
}

fn remove(deletion: &Deletion<'_>, removal: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if deletion.is_dry { Ok(()) } else { removal() }
}

/// The entries of a folder that listed names lead to without being them: on file systems that ignore case, or store accents in
/// another form.
fn aliases(dir: &Dir, deletion: &Deletion<'_>) -> io::Result<BTreeSet<(u64, u64)>> {
    let mut is_found = vec![false; deletion.listed.len()];
    for entry in dir.entries()? {
        deletion.cancel.check()?;
        let found = entry?.file_name().to_str().and_then(|name| deletion.listed.find(name));
        if let Some(at) = found {
            is_found[at] = true;
        }
    }
    let others = (0..is_found.len()).filter(|at| !is_found[*at]);
    let look = |at| dir.symlink_metadata(deletion.listed.get(at));
    Ok(others.filter_map(|at| look(at).ok()).map(|metadata: Metadata| identity_of(&metadata)).collect())
}

#[cfg(all(test, unix))]
mod tests;
