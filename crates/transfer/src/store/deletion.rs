//! Removing from a folder what its source does not have.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, DirEntry, ReadDir};

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
            let opened = match self.patience.retry(|| self.open_without_links(name)) {
                // A dry run leaves what a folder would have replaced.
                Err(error) if deletion.is_dry && is_no_folder(&error) => None,
                opened => opened?,
            };
            let Some(dir) = opened else { return Ok(()) };
            let aliases = self.patience.retry(|| aliases(&dir, deletion))?;
            let mut levels = vec![self.patience.retry(|| Level::open(dir.try_clone()?, name.clone()))?];
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

    /// Removes what has the name of an offer of another kind: a folder with what is in it for a file or link, or a file or link
    /// for a folder.
    ///
    /// # Errors
    /// What stays, and so has the name still.
    pub(crate) fn make_way(
        &self,
        name: &Name,
        is_folder_offered: bool,
        deletion: &mut Deletion<'_>,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| self.failure(name, &error);
        let found = match self.patience.retry(|| self.metadata(name.as_str())) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found.map_err(failed)?,
        };
        if found.is_dir() == is_folder_offered || (!found.is_dir() && !is_folder_offered) {
            return Ok(());
        }
        if (deletion.protects)(name, found.is_dir()) {
            return Err(self.in_the_way(name, "is of another kind, and is left out"));
        }
        if found.is_dir() {
            self.delete_unlisted(name, deletion)?;
        }
        let parent = self.patience.retry(|| self.open_parent(name)).map_err(failed)?;
        let removed = remove(deletion, || match found.is_dir() {
            true => parent.remove_dir(name.last()),
            false => parent.remove_file(name.last()),
        });
        match removed {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                Err(self.in_the_way(name, "is a folder, and something in it stays"))
            }
            removed => {
                removed.map_err(failed)?;
                (deletion.tell)(name, None);
                Ok(())
            }
        }
    }

    /// Returns a handle on the folder that something is in.
    fn open_parent(&self, name: &Name) -> io::Result<Dir> {
        let parent = name.parent().and_then(|parent| Name::new(parent).ok());
        match parent {
            Some(parent) => self.open_without_links(&parent)?.ok_or_else(|| ErrorKind::NotFound.into()),
            None => self.files.dir.try_clone(),
        }
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
            let open = || Level::open(open_dir_nofollow(level.dir.try_clone()?, last)?, name.clone());
            self.patience.retry(open).map(Some)
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

/// Returns `true` if a file or a link was found where a folder was looked for.
fn is_no_folder(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    #[cfg(not(unix))]
    let is_link = false;
    is_link || error.kind() == ErrorKind::NotADirectory
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
    let mut aliases = BTreeSet::new();
    for at in others {
        match dir.symlink_metadata(deletion.listed.get(at)) {
            Ok(metadata) => aliases.insert(identity_of(&metadata)),
            // A name that the file system cannot have leads to nothing.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => false,
            Err(error) => return Err(error),
        };
    }
    Ok(aliases)
}

#[cfg(all(test, unix))]
mod tests;
