//! Removal of entries from a folder that its source does not have.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, DirEntry};

use super::batch::Batch;
use super::directory::{identity_of, open_dir_nofollow};
use super::folder::{Folder, MOST_RENAMED};
use super::listed::ListedNames;
use crate::cancel::Cancel;
use crate::name::Name;
use crate::protocol::{Failure, OnClash};

/// Rules for removing entries that the source does not have.
pub(crate) struct Deletion<'a> {
    /// Names at the source.
    pub(crate) listed: &'a ListedNames,
    /// Returns `true` for an entry that stays although the source does not have it; called with its name and `true` for a folder.
    pub(crate) protects: &'a dyn Fn(&Name, bool) -> bool,
    /// Set to report removals without performing them.
    pub(crate) is_dry: bool,
    pub(crate) cancel: &'a Cancel,
    /// Called with each removed entry, or with the reason why it could not be removed.
    pub(crate) tell: &'a mut dyn FnMut(&Name, Option<Failure>),
}

/// Folder that is being emptied. Its descriptor is closed while a subfolder is emptied, so descriptors do not limit the depth of a
/// tree.
struct Level {
    name: Name,
    identity: (u64, u64),
    /// Set once an entry stays in the folder, which then cannot be removed.
    keeps: bool,
    folders: Batch,
}

impl Folder {
    /// Removes all entries of a subfolder that `deletion` does not list. Each removal uses a handle on the folder that the entry
    /// was found in, and no handle was opened through a link, so other programs cannot redirect a removal.
    ///
    /// # Errors
    /// Fails if the folder itself cannot be read. Earlier removals have then been reported.
    pub(crate) fn delete_unlisted(&self, name: &Name, deletion: &mut Deletion<'_>) -> Result<(), Failure> {
        let delete = |deletion: &mut Deletion<'_>| {
            let opened = match self.retries.retry(|| self.open_without_links(name)) {
                // A dry run keeps the file that a folder would have replaced.
                Err(error) if deletion.is_dry && is_no_folder(&error) => None,
                opened => opened?,
            };
            let Some(dir) = opened else { return Ok(()) };
            let aliases = self.retries.retry(|| aliases(&dir, deletion))?;
            let mut levels = vec![self.level(&dir, name.clone(), Some(&aliases), deletion)?];
            drop(dir);
            while let Some(level) = levels.last_mut() {
                deletion.cancel.check()?;
                match level.folders.take() {
                    Some(last) => self.descend(&last, &mut levels, deletion),
                    None if level.folders.begin_next() => {
                        let aliases = (levels.len() == 1).then_some(&aliases);
                        self.read_further(&mut levels, aliases, deletion);
                    }
                    None => self.leave(&mut levels, deletion),
                }
            }
            Ok(())
        };
        delete(deletion).map_err(|error: io::Error| self.failure(name, &error))
    }

    /// Removes an entry of another kind that has the name of an offer: a folder with its content for a file or link, or a file or
    /// link for a folder.
    ///
    /// # Errors
    /// Returns the reason why the name is still in use.
    pub(crate) fn make_way(
        &self,
        name: &Name,
        is_folder_offered: bool,
        deletion: &mut Deletion<'_>,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| self.failure(name, &error);
        self.retries.retry(|| self.check_parents(name))?;
        let found = match self.retries.retry(|| self.metadata(name.as_str())) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found.map_err(failed)?,
        };
        if found.is_dir() == is_folder_offered || (!found.is_dir() && !is_folder_offered) {
            return Ok(());
        }
        if (deletion.protects)(name, found.is_dir()) {
            return Err(self.obstructed_name(name, "is of another kind, and is omitted"));
        }
        if found.is_dir() {
            self.delete_unlisted(name, deletion)?;
        }
        let parent = self.retries.retry(|| self.open_parent(name)).map_err(failed)?;
        let removed = remove(deletion, || match found.is_dir() {
            true => parent.remove_dir(name.last()),
            false => parent.remove_file(name.last()),
        });
        match removed {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                Err(self.obstructed_name(name, "is a folder, and something in it stays"))
            }
            removed => {
                removed.map_err(failed)?;
                (deletion.tell)(name, None);
                Ok(())
            }
        }
    }

    /// Returns a handle on the folder that contains an entry.
    fn open_parent(&self, name: &Name) -> io::Result<Dir> {
        let parent = name.parent().and_then(|parent| Name::new(parent).ok());
        match parent {
            Some(parent) => self.open_without_links(&parent)?.ok_or_else(|| ErrorKind::NotFound.into()),
            None => self.files.dir.try_clone(),
        }
    }

    /// Returns a handle on a subfolder; `None` if it does not exist. Fails if the name leads through a link.
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

    /// Removes the files and links of a folder. Returns the level from which its subfolders are removed. Only the listed folder has
    /// `aliases`.
    fn level(
        &self,
        dir: &Dir,
        name: Name,
        aliases: Option<&BTreeSet<(u64, u64)>>,
        deletion: &mut Deletion<'_>,
    ) -> io::Result<Level> {
        let identity = identity_of(&dir.dir_metadata()?);
        let mut level = Level { name, identity, keeps: false, folders: Batch::default() };
        self.read(dir, &mut level, aliases, deletion)?;
        Ok(level)
    }

    /// Reads a folder, removes its files and links, and adds its subfolders to the batch.
    fn read(
        &self,
        dir: &Dir,
        level: &mut Level,
        aliases: Option<&BTreeSet<(u64, u64)>>,
        deletion: &mut Deletion<'_>,
    ) -> io::Result<()> {
        for entry in self.retries.retry(|| dir.entries())? {
            deletion.cancel.check()?;
            match entry {
                Ok(entry) => self.delete_entry(dir, &entry, level, aliases, deletion),
                Err(error) => {
                    self.report_unreadable_level(level, &error, deletion);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes one entry of a folder unless it stays or is a folder itself.
    fn delete_entry(
        &self,
        dir: &Dir,
        entry: &DirEntry,
        level: &mut Level,
        aliases: Option<&BTreeSet<(u64, u64)>>,
        deletion: &mut Deletion<'_>,
    ) {
        let last = entry.file_name();
        // An entry whose name cannot be offered stays, because no source can have removed it.
        let Some((last, name)) = last.to_str().and_then(|last| Some((last, level.name.below(last).ok()?)))
        else {
            level.keeps = true;
            return;
        };
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.report_unreadable_level(level, &error, deletion),
        };
        let is_listed = aliases.is_some_and(|aliases| {
            deletion.listed.contains(last)
                || aliases.contains(&identity_of(&metadata))
                || self.is_renamed(last, deletion.listed)
        });
        if is_listed || (deletion.protects)(&name, metadata.is_dir()) {
            level.keeps = true;
        } else if metadata.is_dir() {
            level.folders.add(last.as_ref());
        } else if level.folders.is_first() {
            match remove(deletion, || dir.remove_file(last)) {
                Ok(()) => (deletion.tell)(&name, None),
                Err(error) => self.keep(level, &name, &error, deletion),
            }
        }
    }

    /// Opens a folder of the last level as the next level.
    fn descend(&self, last: &OsStr, levels: &mut Vec<Level>, deletion: &mut Deletion<'_>) {
        let (Some(level), Some(last)) = (levels.last_mut(), last.to_str()) else { return };
        let Ok(name) = level.name.below(last) else { return };
        let opened = self.retries.retry(|| open_dir_nofollow(self.reopen(level)?, last));
        match opened.and_then(|dir| self.level(&dir, name.clone(), None, deletion)) {
            Ok(below) => levels.push(below),
            Err(error) => self.keep(level, &name, &error, deletion),
        }
    }

    /// Reads the last level again for the subfolders that follow its last batch.
    fn read_further(
        &self,
        levels: &mut [Level],
        aliases: Option<&BTreeSet<(u64, u64)>>,
        deletion: &mut Deletion<'_>,
    ) {
        let Some(level) = levels.last_mut() else { return };
        let dir = self.retries.retry(|| self.reopen(level));
        if let Err(error) = dir.and_then(|dir| self.read(&dir, level, aliases, deletion)) {
            self.report_unreadable_level(level, &error, deletion);
        }
    }

    /// Opens the folder of a level again. Fails if its name now leads to another folder.
    fn reopen(&self, level: &Level) -> io::Result<Dir> {
        let dir = self.open_without_links(&level.name)?.ok_or(ErrorKind::NotFound)?;
        if identity_of(&dir.dir_metadata()?) != level.identity {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        Ok(dir)
    }

    /// Leaves the last level. Removes its folder if no entry stays in it and it is not the listed folder.
    fn leave(&self, levels: &mut Vec<Level>, deletion: &mut Deletion<'_>) {
        let (Some(done), Some(above)) = (levels.pop(), levels.last_mut()) else { return };
        let removed = match done.keeps {
            true => Err(ErrorKind::DirectoryNotEmpty.into()),
            false => {
                remove(deletion, || self.retries.retry(|| self.reopen(above))?.remove_dir(done.name.last()))
            }
        };
        match removed {
            Ok(()) => (deletion.tell)(&done.name, None),
            // An entry of the folder stays, or another program has added one.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => above.keeps = true,
            Err(error) => self.keep(above, &done.name, &error, deletion),
        }
    }

    /// Reports that an entry of a level stays, unless it no longer exists.
    fn keep(&self, level: &mut Level, name: &Name, error: &io::Error, deletion: &mut Deletion<'_>) {
        if error.kind() != ErrorKind::NotFound {
            level.keeps = true;
            (deletion.tell)(name, Some(self.failure(name, error)));
        }
    }

    /// Reports that a level could not be read completely.
    fn report_unreadable_level(&self, level: &mut Level, error: &io::Error, deletion: &mut Deletion<'_>) {
        level.keeps = true;
        (deletion.tell)(&level.name, Some(self.failure(&level.name, error)));
    }

    /// Returns `true` if `--on-clash rename` may have given this name to an entry that the source has under another one.
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

/// Returns `true` if a file or a link has the name of a folder to open.
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

/// Returns the entries that listed names lead to although the entries have other names. This occurs on file systems that ignore
/// case, or store accents in another form.
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
            // A name that the file system cannot store leads to no entry.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => false,
            Err(error) => return Err(error),
        };
    }
    Ok(aliases)
}

#[cfg(all(test, unix))]
mod tests;
