//! A folder that files are put into, and nothing outside of it.

use std::fs::{File, FileTimes};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::SystemTime;

use super::created::{CreatedFolder, CreatedFolders};
use super::directory::{Directory, set_mode};
#[cfg(test)]
use super::disk::Disk;
use super::disk::Step;
use super::part::Part;
use super::record::{FileState, Record, Version};
use super::times::to_system_time;
use crate::block::{BLOCK_BYTES, Hash, Root};
use crate::cancel::Cancel;
use crate::identity::Owner;
use crate::name::{BadName, JOURNAL_ENDING, MAX_PARTS, Name, NameRules, PART_ENDING};
use crate::protocol::{Failure, Kind, Offer, Reason};

/// The most files of one name that are told apart by a number.
const MOST_RENAMED: u32 = 9999;

/// What to do where there is another file of the same name. One with the same content is always left as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnClash {
    /// Refuse the new one.
    #[default]
    Refuse,
    /// Put the new one beside it, with a number behind its name.
    Rename,
    /// Replace the old one, at once, when the new one is complete.
    Overwrite,
}

/// A folder. All paths in it are resolved below it, symbolic links too (by `cap-std`).
#[derive(Clone, Debug)]
pub struct Folder {
    files: Directory,
    shown: String,
    on_clash: OnClash,
    names: NameRules,
    /// Folders that were made in it and are not sealed.
    made: CreatedFolders,
    record: Record,
}

/// What came of comparing a file with what is offered.
#[derive(Debug)]
pub(crate) enum Comparison {
    /// They are the same, which was recorded unless that failed.
    Same(io::Result<()>),
    Different,
}

/// What is unfinished in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Files of which a part has arrived.
    pub files: u64,
    /// What those parts take.
    pub bytes: u64,
    /// When the one that was left alone longest was last written to.
    pub oldest: Option<SystemTime>,
    /// Whether the whole folder was looked at.
    pub is_all: bool,
}

impl Unfinished {
    fn count(&mut self, name: &str, metadata: &cap_std::fs::Metadata) {
        if name.ends_with(PART_ENDING) {
            self.files += 1;
            self.bytes += metadata.len();
        }
        // Part files have a time stamp that tells nothing.
        if name.ends_with(JOURNAL_ENDING)
            && let Ok(written) = metadata.modified()
        {
            let written = written.into_std();
            self.oldest = Some(self.oldest.map_or(written, |oldest| oldest.min(written)));
        }
    }
}

/// What to do about an offer.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Receive it into this part file.
    Take(Box<Part>),
    /// Compare it with the file that is there.
    Compare,
    /// The file that is there is the offered one.
    Identical,
    /// Somebody else is sending it.
    Busy,
}

impl Folder {
    /// Opens a folder that exists.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(path: &Path, on_clash: OnClash) -> io::Result<Self> {
        Ok(Folder {
            files: Directory::open(path)?,
            shown: path.display().to_string(),
            on_clash,
            names: NameRules::default(),
            made: CreatedFolders::default(),
            record: Record::default(),
        })
    }

    /// The same folder with other rules for names.
    #[must_use]
    pub fn with_names(mut self, names: NameRules) -> Self {
        self.names = names;
        self
    }

    /// Takes a name that a peer sent, if it can be stored in it.
    pub(crate) fn admit(&self, name: &str) -> Result<Name, BadName> {
        let name = Name::new(name)?;
        self.names.check(&name).map(|()| name)
    }

    /// The same folder, as this sender puts files into it.
    pub(crate) fn owned_by(&self, owner: Owner) -> Self {
        Folder { files: self.files.owned_by(owner), ..self.clone() }
    }

    /// Where what has arrived of a name is kept.
    pub(crate) fn part_of(&self, name: &Name) -> String {
        self.files.part_of(name)
    }

    #[cfg(test)]
    pub(crate) fn disk(&self) -> &Disk {
        &self.files.disk
    }

    /// Opens a file in it to read.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        self.files.open_file(name)
    }

    /// Takes a part away, with what was written down of it.
    pub(crate) fn discard(&self, part: Part) -> io::Result<()> {
        part.discard(&self.files)
    }

    /// A name in it as people should see it.
    pub(crate) fn show(&self, name: &str) -> String {
        match self.shown.as_str() {
            "." => name.to_owned(),
            shown => format!("{}/{name}", shown.trim_end_matches('/')),
        }
    }

    /// A failure of the system, in words that name the file.
    pub(crate) fn failure(&self, name: &Name, error: &io::Error) -> Failure {
        explain(&self.show(name.as_str()), error)
    }

    /// Begins with an offered file or stream.
    pub(crate) fn begin(&self, name: &Name, offer: &Offer, cancel: &Cancel) -> Result<Begin, Failure> {
        let system = |error: io::Error| self.failure(name, &error);
        if let Some(parent) = name.parent() {
            self.make_dirs(parent).map_err(|error| explain(&self.show(parent), &error))?;
        }
        match self.present(name).map_err(system)? {
            Present::Nothing => {}
            Present::Folder => return Err(self.clash(name, "is a folder")),
            Present::File { size_bytes } => match offer.kind {
                Kind::File { size_bytes: size, .. } if size == size_bytes => {
                    if self.is_recorded(name, offer) {
                        self.tidy(name).map_err(system)?;
                        return Ok(Begin::Identical);
                    }
                    return Ok(Begin::Compare);
                }
                _ => self.check_clash(name, "is there already, with another size")?,
            },
            Present::Other => self.check_clash(name, "is there already, and is no regular file")?,
        }
        self.take(name, offer, cancel)
    }

    /// Takes an offer whatever is there of that name; what the policy for clashes says has been asked.
    pub(crate) fn take(&self, name: &Name, offer: &Offer, cancel: &Cancel) -> Result<Begin, Failure> {
        let system = |error: io::Error| self.failure(name, &error);
        if let Kind::File { size_bytes, .. } = offer.kind {
            self.check_room(name, size_bytes)?;
        }
        self.files.disk.before(Step::OpenPart).map_err(system)?;
        let part = Part::open(&self.files, name.clone(), offer, cancel).map_err(system)?;
        Ok(part.map_or(Begin::Busy, |part| Begin::Take(Box::new(part))))
    }

    /// Whether a file is known, without reading it, to be what is offered.
    fn is_recorded(&self, name: &Name, offer: &Offer) -> bool {
        let version = Version { owner: self.files.owner, name, offer };
        self.files
            .dir
            .symlink_metadata(name.as_str())
            .is_ok_and(|found| self.record.holds(&self.files, &version, FileState::of_found(&found)))
    }

    /// Records that a file is what was offered, so that it need not be read when it is offered again.
    ///
    /// # Errors
    /// Why it was not recorded; it will be compared then.
    pub(crate) fn record(&self, name: &Name, offer: &Offer, file: FileState) -> io::Result<()> {
        self.record.add(
            &self.files,
            &Version { owner: self.files.owner, name, offer },
            file,
            &self.files.disk,
        )
    }

    /// Compares a file that is there with what is offered, and says why if it could not be recorded that they are the same.
    pub(crate) fn compare(
        &self,
        name: &Name,
        offer: &Offer,
        offered: (u64, Hash),
        cancel: &Cancel,
    ) -> io::Result<Comparison> {
        let file = self.open_file(name.as_str())?;
        // Before it is read: what is changed meanwhile must not be recorded.
        let before = FileState::of(&file.metadata()?);
        Ok(if file_root(&file, cancel)? == offered {
            Comparison::Same(self.record(name, offer, before))
        } else {
            Comparison::Different
        })
    }

    /// Fails if a file of this size does not fit beside what there is, of it and of others.
    fn check_room(&self, name: &Name, size_bytes: u64) -> Result<(), Failure> {
        let parent =
            self.open_file(name.parent().unwrap_or(".")).map_err(|error| self.failure(name, &error))?;
        let Some(free) = self.files.disk.free_bytes(&parent) else { return Ok(()) };
        let missing = size_bytes.saturating_sub(self.allocated_bytes(&self.part_of(name)));
        if missing <= free {
            return Ok(());
        }
        let text = format!("{missing} B more are needed and {free} B are free");
        Err(explain(&self.show(name.as_str()), &io::Error::new(ErrorKind::StorageFull, text)))
    }

    /// What a file takes on the disk; 0 if there is none.
    fn allocated_bytes(&self, path: &str) -> u64 {
        #[cfg(unix)]
        {
            use cap_std::fs::MetadataExt;
            self.files.dir.symlink_metadata(path).map_or(0, |metadata| metadata.blocks().saturating_mul(512))
        }
        #[cfg(not(unix))]
        {
            self.files.dir.symlink_metadata(path).map_or(0, |metadata| metadata.len())
        }
    }

    /// Fails unless files that differ from what is there may come.
    pub(crate) fn check_clash(&self, name: &Name, what: &str) -> Result<(), Failure> {
        match self.on_clash {
            OnClash::Refuse => Err(self.clash(name, what)),
            OnClash::Rename | OnClash::Overwrite => Ok(()),
        }
    }

    fn clash(&self, name: &Name, what: &str) -> Failure {
        let shown = self.show(name.as_str());
        Failure::new(
            Reason::Clash,
            format!(
                "{shown} {what}; it was left as it is: send under another name, or receive with --on-clash rename or overwrite"
            ),
        )
    }

    fn present(&self, name: &Name) -> io::Result<Present> {
        let metadata = match self.files.dir.symlink_metadata(name.as_str()) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Present::Nothing),
            Err(error) => return Err(error),
        };
        if metadata.is_dir() {
            return Ok(Present::Folder);
        }
        if !metadata.is_file() {
            return Ok(Present::Other);
        }
        Ok(Present::File { size_bytes: metadata.len() })
    }

    /// Makes a folder and those it is in; nothing happens to those that are there.
    fn make_dirs(&self, name: &str) -> io::Result<()> {
        match self.files.dir.create_dir_all(name) {
            // It is there already, or a link to a folder is.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.files.dir.is_dir(name) => Ok(()),
            settled => settled,
        }
    }

    /// Makes an offered folder, unless it is there.
    pub(crate) fn make_folder(&self, name: &Name) -> Result<(), Failure> {
        let make = || {
            name.parent().map_or(Ok(()), |parent| self.make_dirs(parent))?;
            match self.files.dir.create_dir(name.as_str()) {
                Ok(()) => {
                    self.made.add(
                        self.files.owner,
                        name,
                        CreatedFolder::of(&self.open_file(name.as_str())?.metadata()?),
                    );
                    Ok(())
                }
                // It is there already, or a link to a folder is.
                Err(error)
                    if error.kind() == ErrorKind::AlreadyExists && self.files.dir.is_dir(name.as_str()) =>
                {
                    Ok(())
                }
                Err(error) => Err(error),
            }
        };
        make().map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => self.clash(name, "is there already, and is no folder"),
            _ => self.failure(name, &error),
        })
    }

    /// Gives a folder its time and permissions, when everything is in it, if it is one that [`make_folder`](Self::make_folder)
    /// made: what others made keeps its own.
    pub(crate) fn seal_folder(&self, name: &Name, offer: &Offer) -> Result<(), Failure> {
        let made = self.made.take(self.files.owner, name);
        let seal = || {
            let is_folder = self.files.dir.symlink_metadata(name.as_str())?.is_dir();
            let Some(made) = made else {
                // One that was there may be a link to a folder.
                let is_there = is_folder || self.files.dir.is_dir(name.as_str());
                return if is_there { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) };
            };
            if !is_folder {
                return Err(ErrorKind::NotADirectory.into());
            }
            // `open_dir` gives handles that can do nothing but resolve names.
            let folder = self.open_file(name.as_str())?;
            if CreatedFolder::of(&folder.metadata()?) != made {
                return Ok(());
            }
            // The owner goes on with it: an interrupted transfer resumes, and what was received can be removed.
            set_mode(&folder, offer.mode | 0o700)?;
            folder.set_times(FileTimes::new().set_modified(to_system_time(offer.changed)))
        };
        seal().map_err(|error| self.failure(name, &error))
    }

    /// Takes away what is left of a name whose file is complete, as after a crash at the very end.
    fn tidy(&self, name: &Name) -> io::Result<()> {
        if self.files.dir.symlink_metadata(self.part_of(name)).is_ok()
            && let Some(_held) = self.files.lock_part(name)?
        {
            self.files.remove_if_there(&self.part_of(name))?;
            return self.files.remove_if_there(&self.files.journal_of(name));
        }
        Ok(())
    }

    /// Gives a sealed part its name, and tells it if it is another one than was offered.
    pub(crate) fn commit(&self, part: &Part) -> Result<Option<String>, Failure> {
        let name = part.name();
        let system = |error: io::Error| self.failure(name, &error);
        self.files.disk.before(Step::Commit).map_err(system)?;
        let given = match self.on_clash {
            OnClash::Overwrite => {
                self.files.dir.rename(self.part_of(name), &self.files.dir, name.as_str()).map_err(system)?;
                None
            }
            OnClash::Refuse => {
                if !self.link(&self.part_of(name), name.as_str()).map_err(system)? {
                    return Err(self.clash(name, "came into being meanwhile"));
                }
                None
            }
            OnClash::Rename => self.link_beside(name).map_err(system)?,
        };
        self.files.remove_if_there(&self.part_of(name)).map_err(system)?;
        self.files.remove_if_there(&self.files.journal_of(name)).map_err(system)?;
        self.sync_parent(name).map_err(system)?;
        Ok(given)
    }

    fn link_beside(&self, name: &Name) -> io::Result<Option<String>> {
        if self.link(&self.part_of(name), name.as_str())? {
            return Ok(None);
        }
        for number in 1..=MOST_RENAMED {
            let other = name.beside(&format!("{}.{number}", name.last()));
            if self.link(&self.part_of(name), &other)? {
                return Ok(Some(other));
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Gives a file a second name, if nothing has it: unlike renaming, this never replaces a file. Whether it did.
    fn link(&self, from: &str, to: &str) -> io::Result<bool> {
        match self.files.dir.hard_link(from, &self.files.dir, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            // File systems without hard links.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                if self.files.dir.symlink_metadata(to).is_ok() {
                    return Ok(false);
                }
                self.files.dir.rename(from, &self.files.dir, to).map(|()| true)
            }
            Err(error) => Err(error),
        }
    }

    fn sync_parent(&self, name: &Name) -> io::Result<()> {
        if cfg!(unix) {
            self.open_file(name.parent().unwrap_or("."))?.sync_all()?;
        }
        Ok(())
    }

    /// What is unfinished in it, looking at so many files and folders at most.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn unfinished(&self, most_entries: usize) -> io::Result<Unfinished> {
        let mut found = Unfinished { is_all: true, ..Unfinished::default() };
        let mut open = vec![self.files.dir.read_dir(".")?];
        let mut looked_at = 0;
        while let Some(entries) = open.last_mut() {
            let Some(entry) = entries.next() else {
                open.pop();
                continue;
            };
            looked_at += 1;
            if looked_at > most_entries || open.len() > MAX_PARTS {
                found.is_all = false;
                break;
            }
            // What cannot be looked at is not counted.
            let Some((entry, metadata)) = entry
                .and_then(|entry| Ok((entry.metadata()?, entry)))
                .ok()
                .map(|(metadata, entry)| (entry, metadata))
            else {
                continue;
            };
            if metadata.is_dir() {
                open.extend(entry.open_dir().and_then(|folder| folder.entries()));
            } else if let Some(name) = entry.file_name().to_str() {
                found.count(name, &metadata);
            }
        }
        Ok(found)
    }

    /// The whole of it, to be offered.
    pub(crate) fn entries(&self, name: &str) -> io::Result<cap_std::fs::ReadDir> {
        self.files.dir.read_dir(if name.is_empty() { "." } else { name })
    }

    pub(crate) fn metadata(&self, name: &str) -> io::Result<cap_std::fs::Metadata> {
        self.files.dir.symlink_metadata(name)
    }
}

enum Present {
    Nothing,
    File { size_bytes: u64 },
    Folder,
    Other,
}

/// The size of a file as it is, and the root over its blocks. Fails once it is cancelled.
fn file_root(mut file: &File, cancel: &Cancel) -> io::Result<(u64, Hash)> {
    let (mut root, mut size, mut block) = (Root::default(), 0, Vec::new());
    loop {
        cancel.check()?;
        block.clear();
        (&mut file).take(u64::from(BLOCK_BYTES)).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok((size, root.finish()));
        }
        size += block.len() as u64;
        root.add(Hash::of(&block));
    }
}

/// What the system said about a file, as a failure.
pub(crate) fn explain(shown: &str, error: &io::Error) -> Failure {
    let (reason, remedy) = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (Reason::Permission, "check the permissions of it and of its folder")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            (Reason::NoSpace, "what has arrived is kept: make room and send it again to go on")
        }
        ErrorKind::NotFound => (Reason::NotThere, "check the name"),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            (Reason::Clash, "a file is where a folder should be, or the other way round: move it away")
        }
        _ => (Reason::System, "see what the system says, and try again"),
    };
    Failure::new(reason, format!("{shown}: {error}; {remedy}"))
}
