//! Folder in which a transfer stores and reads files. Names never lead out of it.

use std::fs::{File, FileTimes};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::created::{CreatedFolder, CreatedFolders};
use super::directory::{Directory, identity_of};
#[cfg(test)]
use super::disk::Disk;
use super::disk::Step;
use super::durability::Durability;
use super::mode::{set_file_mode, set_folder_mode};
use super::part::{Part, descriptors_of};
use super::quota::{Charge, Quota};
use super::record::{FileState, Provenance, Record, Version};
use super::times::{from_system_time, to_system_time};
use super::tree::read_tree;
use crate::block::{BLOCK_BYTES, Hash, Root};
use crate::cancel::Cancel;
use crate::descriptors::Share;
use crate::identity::Owner;
use crate::name::{BadName, JOURNAL_ENDING, LINK_DRAFT, Name, NameRules, PART_ENDING};
use crate::protocol::{Failure, Kind, Offer, OnClash, Reason, SenderRequests};
use crate::scarcity::{Scarcity, ScarcityRetries};

/// Maximum number of files of one name that are distinguished by a number.
pub(super) const MOST_RENAMED: u32 = 9999;

/// A folder. All paths in it are resolved below it, including symbolic links (by `cap-std`); received files follow no link.
#[derive(Clone, Debug)]
pub struct Folder {
    pub(super) files: Directory,
    shown: String,
    pub(super) on_clash: OnClash,
    names: NameRules,
    /// Folders that were created below this one and are not sealed.
    made: CreatedFolders,
    record: Record,
    durability: Durability,
    /// Set to compare files of the same size regardless of the record.
    checksum: bool,
    /// Remedy for a clash, for the sender or user.
    advice: &'static str,
    /// Name of this folder below the served folder; empty for the served folder itself.
    within: String,
    /// Quota of the files in the folder, if any.
    quota: Option<Quota>,
    /// Share of descriptors for its files.
    descriptors: Share,
    /// Repeats calls that fail because the system lacks resources, on blocking threads.
    pub(super) retries: ScarcityRetries,
}

/// Result of comparing a file with an offer.
#[derive(Debug)]
pub(crate) enum Comparison {
    /// File and offer are identical. The result reports whether this could be recorded.
    Same(io::Result<()>),
    /// File and offer differ. The file had this state when it was read.
    Different(FileState),
}

/// Unfinished files in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Number of files of which a part has arrived.
    pub files: u64,
    /// Bytes that those parts occupy on the disk.
    pub bytes: u64,
    /// Time of the last write to the file that was unchanged for the longest time.
    pub oldest: Option<SystemTime>,
    /// Set if the whole folder was read.
    pub is_all: bool,
}

impl Unfinished {
    fn count(&mut self, name: &str, metadata: &cap_std::fs::Metadata) {
        if name.ends_with(PART_ENDING) {
            self.files += 1;
            self.bytes += metadata.len();
        }
        // The time stamp of the part file is a mark, so the journal's time stamp shows the last write.
        if name.ends_with(JOURNAL_ENDING)
            && let Ok(written) = metadata.modified()
        {
            let written = written.into_std();
            self.oldest = Some(self.oldest.map_or(written, |oldest| oldest.min(written)));
        }
    }
}

/// Predicted treatment of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preview {
    /// The offer would be received.
    Take,
    /// The offer would be compared with the existing file.
    Compare,
    /// The existing entry is the offered one.
    Same,
}

/// Treatment of an offer.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Receive it into this part file.
    Take(Box<Part>),
    /// Compare it with the existing file.
    Compare,
    /// The existing file is the offered one. Its time and permissions were set, unless this failed.
    Identical(io::Result<()>),
    /// Another transfer holds the part file.
    Busy,
    /// The share of descriptors is used up.
    NoDescriptors,
}

impl Folder {
    /// Opens a folder that exists.
    ///
    /// # Errors
    /// Returns the system's error if it cannot be opened.
    pub fn open(path: &Path, on_clash: OnClash) -> io::Result<Self> {
        Ok(Folder {
            files: Directory::open(path)?,
            shown: path.display().to_string(),
            on_clash,
            names: NameRules::default(),
            made: CreatedFolders::default(),
            record: Record::default(),
            durability: Durability::default(),
            checksum: false,
            advice: "receive with --on-clash rename to keep both, or overwrite",
            within: String::new(),
            quota: None,
            descriptors: Share::unbudgeted(),
            retries: ScarcityRetries::until(&Cancel::cancelled()),
        })
    }

    /// Returns the same folder with other rules for names.
    #[must_use]
    pub fn with_names(mut self, names: NameRules) -> Self {
        self.names = names;
        self
    }

    /// Returns the same folder with another durability.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether files are compared regardless of the record.
    #[must_use]
    pub fn with_checksum(mut self, checksum: bool) -> Self {
        self.checksum = checksum;
        self
    }

    /// Returns the same folder with the sender's requests. Its request decides on clashes unless the receiver has `decided`.
    pub(crate) fn with_sender_requests(
        mut self,
        sender_requests: SenderRequests,
        decided: Option<OnClash>,
    ) -> Self {
        self.on_clash = decided.unwrap_or(sender_requests.on_clash);
        self.checksum |= sender_requests.checksum;
        self.advice = match decided {
            None => "send with --on-clash rename to keep both, or overwrite",
            Some(_) => "the receiver keeps its files (--on-clash refuse)",
        };
        self
    }

    /// Returns the same folder for a sender without the right to replace files.
    pub(crate) fn without_overwriting(mut self) -> Self {
        if self.on_clash == OnClash::Overwrite {
            self.on_clash = OnClash::Refuse;
            self.advice = "the line of this key in authorized_keys there lacks the right `overwrite`; \
                           send with --on-clash rename to keep both";
        }
        self
    }

    /// Returns a subfolder as an independent folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// Returns the error of creating or opening the subfolder. A symbolic link is not followed.
    pub(crate) fn below(&self, name: &Name) -> io::Result<Self> {
        let files = self.files.below(name)?;
        let (made, record, within) = (CreatedFolders::default(), Record::default(), name.as_str().to_owned());
        Ok(Folder { files, made, record, within, ..self.clone() })
    }

    /// Returns `true` if both are handles of the same folder of the file system.
    pub(crate) fn is_same_as(&self, other: &Folder) -> bool {
        let identity =
            |folder: &Folder| folder.files.dir.dir_metadata().ok().map(|found| identity_of(&found));
        identity(self).is_some_and(|own| identity(other) == Some(own))
    }

    /// Returns the name of the folder below the served folder.
    pub(crate) fn within(&self) -> &str {
        &self.within
    }

    /// Returns the same folder with a quota for the bytes of its files.
    pub(crate) fn with_quota(mut self, quota: Quota) -> Self {
        self.quota = Some(quota);
        self
    }

    /// Sets the share from which the files of the folder take their descriptors.
    pub(crate) fn with_descriptors(mut self, share: Share) -> Self {
        self.descriptors = share;
        self
    }

    /// Returns a handle for a blocking thread, whose calls wait until `cancel` if the system lacks resources.
    pub(crate) fn patient(&self, cancel: &Cancel) -> Self {
        Folder { retries: ScarcityRetries::until(cancel), ..self.clone() }
    }

    /// Returns `true` if its share has descriptors for this offer.
    pub(crate) fn has_descriptors(&self, offer: &Offer) -> bool {
        self.descriptors.has(descriptors_of(offer))
    }

    pub(super) fn durability(&self) -> Durability {
        self.durability
    }

    /// Returns a handle whose messages omit the folder's path, for messages that are sent to peers.
    pub(crate) fn unnamed(mut self) -> Self {
        ".".clone_into(&mut self.shown);
        self
    }

    /// Checks that a name from a peer can be stored in this folder.
    pub(crate) fn admit(&self, name: &str) -> Result<Name, BadName> {
        let name = Name::new(name)?;
        self.names.check(&name).map(|()| name)
    }

    /// Returns the same folder for files of this sender.
    pub(crate) fn owned_by(&self, owner: Owner) -> Self {
        Folder { files: self.files.owned_by(owner), ..self.clone() }
    }

    /// Returns the path of the part file of a name.
    pub(crate) fn part_of(&self, name: &Name) -> String {
        self.files.part_of(name)
    }

    #[cfg(test)]
    pub(crate) fn disk(&self) -> &Disk {
        &self.files.disk
    }

    /// Opens a file in it for reading.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        self.files.open_file(name)
    }

    /// Removes a part file and its journal.
    pub(crate) fn discard(&self, part: Part) -> io::Result<()> {
        part.discard(&self.files)
    }

    /// Returns the path of an entry for display.
    pub(crate) fn show(&self, name: &str) -> String {
        match self.shown.as_str() {
            "." => name.to_owned(),
            shown => format!("{}/{name}", shown.trim_end_matches('/')),
        }
    }

    /// Converts an error of the system to a failure that names the file.
    pub(crate) fn failure(&self, name: &Name, error: &io::Error) -> Failure {
        explain(&self.show(name.as_str()), error)
    }

    /// Begins an offered file or stream.
    pub(crate) fn begin(
        &self,
        name: &Name,
        offer: &Offer,
        makes_way: bool,
        cancel: &Cancel,
    ) -> Result<Begin, Failure> {
        self.make_parents(name)?;
        match self.preview(name, offer, makes_way)? {
            Preview::Same => {
                self.tidy(name).map_err(|error| self.failure(name, &error))?;
                Ok(Begin::Identical(self.refresh(name, offer)))
            }
            Preview::Compare => Ok(Begin::Compare),
            Preview::Take => self.take(name, offer, cancel),
        }
    }

    /// Returns the treatment of an offered file, link or stream. An existing folder is no obstacle if it `makes_way`. Changes
    /// nothing.
    pub(crate) fn preview(&self, name: &Name, offer: &Offer, makes_way: bool) -> Result<Preview, Failure> {
        self.check_parents(name)?;
        if let Kind::Link { target } = &offer.kind {
            return self.preview_link(name, target.raw(), makes_way);
        }
        match self.present(name).map_err(|error| self.failure(name, &error))? {
            Present::Nothing => {}
            Present::Folder if makes_way => {}
            Present::Folder => return Err(self.obstructed_name(name, "is a folder")),
            Present::File { size_bytes } => match offer.kind {
                Kind::File { size_bytes: size, .. } if size == size_bytes => {
                    let is_known = !self.checksum && self.is_recorded(name, offer);
                    return Ok(if is_known { Preview::Same } else { Preview::Compare });
                }
                Kind::File { .. } => self.check_clash(name, "exists already with another size")?,
                _ => self.check_clash(name, "exists already")?,
            },
            Present::Other => self.check_clash(name, "exists already and is not a regular file")?,
        }
        Ok(Preview::Take)
    }

    /// Fails unless an offered folder exists or could be created, or the entry of its name `makes_way`. Changes nothing.
    pub(crate) fn preview_folder(&self, name: &Name, makes_way: bool) -> Result<(), Failure> {
        self.check_parents(name)?;
        match self.present(name).map_err(|error| self.failure(name, &error))? {
            Present::Nothing | Present::Folder => Ok(()),
            Present::File { .. } | Present::Other if makes_way => Ok(()),
            Present::File { .. } | Present::Other => {
                Err(self.obstructed_name(name, "exists already and is not a folder"))
            }
        }
    }

    /// Accepts an offer whether or not its name is in use; the policy for clashes was checked before.
    pub(crate) fn take(&self, name: &Name, offer: &Offer, cancel: &Cancel) -> Result<Begin, Failure> {
        let system = |error: io::Error| self.failure(name, &error);
        let Some(held) = self.descriptors.hold(descriptors_of(offer)) else {
            return Ok(Begin::NoDescriptors);
        };
        let charge = match self.reserve(name, offer) {
            Ok(charge) => charge,
            // Another transfer holds the part file. It may be silent, and its reserved space becomes free when it is ended.
            Err(_) if self.files.is_part_held(name) => return Ok(Begin::Busy),
            Err(failure) => return Err(failure),
        };
        self.files.disk.before(Step::OpenPart).map_err(system)?;
        let part = Part::open(&self.files, name.clone(), offer, held, cancel).map_err(system)?;
        let Some(mut part) = part.map(Box::new) else { return Ok(Begin::Busy) };
        if let Some(charge) = charge {
            part.charged(charge);
        }
        Ok(Begin::Take(part))
    }

    /// Fails unless the disk and the quota have room for the bytes of an offer that have not arrived.
    fn reserve(&self, name: &Name, offer: &Offer) -> Result<Option<Charge>, Failure> {
        let there = self.allocated_bytes(&self.part_of(name));
        let missing = match offer.kind {
            Kind::File { size_bytes, .. } => size_bytes.saturating_sub(there),
            _ => 0,
        };
        self.check_room(name, missing)?;
        let charge = self.quota.as_ref().map(|quota| quota.charge(there, missing));
        charge.transpose().map_err(|error| self.failure(name, &error))
    }

    /// Returns `true` if the record shows that the file is the offered one. Does not read the file.
    fn is_recorded(&self, name: &Name, offer: &Offer) -> bool {
        let found = self.files.dir.symlink_metadata(name.as_str());
        found.is_ok_and(|found| self.provenance(name, offer, FileState::of_found(&found)).is_some())
    }

    fn provenance(&self, name: &Name, offer: &Offer, state: FileState) -> Option<Provenance> {
        self.record.find(&self.files, &Version { owner: self.files.owner, name, offer }, state)
    }

    /// Sets the time and permissions of an offer on a file with the same content, if it was stored from this sender or may be
    /// overwritten. A file of another origin keeps its time and permissions.
    fn refresh(&self, name: &Name, offer: &Offer) -> io::Result<()> {
        let found = self.files.dir.symlink_metadata(name.as_str())?;
        let mode = self.files.umask.of_file(offer.mode);
        let modified = from_system_time(found.modified()?.into_std());
        if modified == offer.changed && mode_of(&found).is_none_or(|there| there == mode) {
            return Ok(());
        }
        let before = FileState::of_found(&found);
        // The file may have been stored with another time.
        let stored = Offer { changed: modified, ..offer.clone() };
        let is_own = self.provenance(name, &stored, before) == Some(Provenance::Stored);
        if !is_own && self.on_clash != OnClash::Overwrite {
            return Ok(());
        }
        let file = self.open_file(name.as_str())?;
        if FileState::of(&file.metadata()?) != before {
            return Err(io::Error::other("it was replaced meanwhile"));
        }
        set_file_mode(&file, mode)?;
        file.set_times(FileTimes::new().set_modified(to_system_time(offer.changed)))?;
        self.record_all(&[(name, offer, FileState::of(&file.metadata()?))], Provenance::Stored)
    }

    /// Records that files are the offered ones, so that they need not be read when they are offered again.
    ///
    /// # Errors
    /// Returns the error of recording the files. Unrecorded files are compared when they are offered again.
    pub(super) fn record_all(
        &self,
        files: &[(&Name, &Offer, FileState)],
        provenance: Provenance,
    ) -> io::Result<()> {
        let version = |name, offer| Version { owner: self.files.owner, name, offer };
        let files: Vec<(Version<'_>, FileState)> =
            files.iter().map(|(name, offer, state)| (version(name, offer), *state)).collect();
        self.record.add(&self.files, &files, provenance, &self.files.disk)
    }

    /// Returns `true` if files that differ are replaced.
    pub(crate) fn overwrites(&self) -> bool {
        self.on_clash == OnClash::Overwrite
    }

    /// Returns `true` if files that differ are kept under another name.
    pub(crate) fn keeps_both(&self) -> bool {
        self.on_clash == OnClash::Rename
    }

    /// Returns `true` if the file of this name is in this state.
    pub(crate) fn is_in_state(&self, name: &Name, state: FileState) -> bool {
        let found = self.files.dir.symlink_metadata(name.as_str());
        found.is_ok_and(|found| FileState::of_found(&found) == state)
    }

    /// Compares an existing file with an offer, and returns the error of the record if they are the same.
    pub(crate) fn compare(
        &self,
        name: &Name,
        offer: &Offer,
        offered: (u64, Hash),
        records: bool,
        cancel: &Cancel,
    ) -> io::Result<Comparison> {
        let file = self.open_file(name.as_str())?;
        // The state is determined before the file is read, because a state after a concurrent change must not be recorded.
        let before = FileState::of(&file.metadata()?);
        if before != FileState::of_found(&self.files.dir.symlink_metadata(name.as_str())?) {
            return Err(io::Error::other("it was replaced while it was compared"));
        }
        Ok(if file_root(&file, cancel)? == offered {
            Comparison::Same(if records { self.settle_same(name, offer, before) } else { Ok(()) })
        } else {
            Comparison::Different(before)
        })
    }

    /// Records a compared file, and sets the time and permissions of the offer if that is allowed.
    fn settle_same(&self, name: &Name, offer: &Offer, state: FileState) -> io::Result<()> {
        self.refresh(name, offer)?;
        let found = FileState::of_found(&self.files.dir.symlink_metadata(name.as_str())?);
        // A refreshed file is already recorded.
        if found == state { self.record_all(&[(name, offer, state)], Provenance::Equal) } else { Ok(()) }
    }

    /// Fails if the missing bytes of a file exceed the free space.
    fn check_room(&self, name: &Name, missing: u64) -> Result<(), Failure> {
        if missing == 0 {
            return Ok(());
        }
        // This handle only resolves names, so it can be opened for a folder without read permission, too.
        let parent = self.files.dir.open_dir(name.parent().unwrap_or("."));
        let parent = parent.map_err(|error| self.failure(name, &error))?.into_std_file();
        let Some(free) = self.files.disk.free_bytes(&parent) else { return Ok(()) };
        if missing <= free {
            return Ok(());
        }
        let text = format!("{missing} B more are needed and {free} B are free");
        Err(explain(&self.show(name.as_str()), &io::Error::new(ErrorKind::StorageFull, text)))
    }

    /// Returns the bytes that a file occupies on the disk; 0 if there is none.
    fn allocated_bytes(&self, path: &str) -> u64 {
        self.files.dir.symlink_metadata(path).map_or(0, |metadata| allocated_bytes(&metadata))
    }

    /// Fails if the policy refuses a file that differs from the existing entry.
    pub(crate) fn check_clash(&self, name: &Name, what: &str) -> Result<(), Failure> {
        match self.on_clash {
            OnClash::Refuse => Err(self.clash(name, what)),
            OnClash::Rename | OnClash::Overwrite => Ok(()),
        }
    }

    /// Returns the failure for a name that no policy can store.
    pub(super) fn obstructed_name(&self, name: &Name, what: &str) -> Failure {
        let text =
            format!("{} {what}; it was left as it is: move one of them away", self.show(name.as_str()));
        Failure::new(Reason::Clash, text)
    }

    fn clash(&self, name: &Name, what: &str) -> Failure {
        let shown = self.show(name.as_str());
        Failure::new(Reason::Clash, format!("{shown} {what}; it was left as it is: {}", self.advice))
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

    /// Creates the missing folders that contain a name.
    fn make_parents(&self, name: &Name) -> Result<(), Failure> {
        for parent in name.parents() {
            let made = match self.files.dir.symlink_metadata(parent) {
                Ok(there) if there.is_dir() => continue,
                Ok(there) if there.is_symlink() => return Err(self.leads_through(name, parent)),
                Ok(_) => return Err(self.is_no_folder(parent)),
                Err(error) if error.kind() == ErrorKind::NotFound => self.make_unless_there(parent),
                Err(error) => Err(error),
            };
            made.map_err(|error| explain(&self.show(parent), &error))?;
        }
        Ok(())
    }

    /// Creates a folder; another transfer may create it at the same time.
    fn make_unless_there(&self, name: &str) -> io::Result<()> {
        match self.files.dir.create_dir(name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if self.files.dir.symlink_metadata(name)?.is_dir() { Ok(()) } else { Err(error) }
            }
            made => made,
        }
    }

    fn is_no_folder(&self, name: &str) -> Failure {
        let text = format!("{} exists already and is not a folder; move it away", self.show(name));
        Failure::new(Reason::Clash, text)
    }

    /// Fails if a name leads through a symbolic link: a receiver follows none, regardless of its owner.
    pub(super) fn check_parents(&self, name: &Name) -> Result<(), Failure> {
        for parent in name.parents() {
            match self.files.dir.symlink_metadata(parent) {
                Ok(there) if there.is_symlink() => return Err(self.leads_through(name, parent)),
                Ok(_) => {}
                // The folders below a missing folder do not exist either.
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(explain(&self.show(parent), &error)),
            }
        }
        Ok(())
    }

    fn leads_through(&self, name: &Name, link: &str) -> Failure {
        let text = format!(
            "{}: {} is a symbolic link, and links are not followed; send it under another name",
            self.show(name.as_str()),
            self.show(link)
        );
        Failure::new(Reason::Clash, text)
    }

    /// Returns `true` if a symbolic link is to be created, because none with this target exists.
    pub(crate) fn begin_link(&self, name: &Name, target: &str, makes_way: bool) -> Result<bool, Failure> {
        let preview = self.preview_link(name, target, makes_way)?;
        self.make_parents(name)?;
        Ok(preview == Preview::Take)
    }

    fn preview_link(&self, name: &Name, target: &str, makes_way: bool) -> Result<Preview, Failure> {
        if let Err(bad) = name.check_link(target) {
            let text = format!("the symbolic link {name} is not taken: {bad}");
            return Err(Failure::new(Reason::Link, text));
        }
        if cfg!(not(unix)) {
            let text = format!(
                "the symbolic link {name} is not taken: this system makes none; send with --links follow"
            );
            return Err(Failure::new(Reason::Link, text));
        }
        self.check_parents(name)?;
        match self.present(name).map_err(|error| self.failure(name, &error))? {
            Present::Nothing => {}
            Present::Folder if makes_way => {}
            Present::Folder => return Err(self.obstructed_name(name, "is a folder")),
            Present::File { .. } => self.check_clash(name, "exists already and is not a link")?,
            Present::Other => {
                match self.files.dir.read_link_contents(name.as_str()) {
                    Ok(there) if there == Path::new(target) => return Ok(Preview::Same),
                    Err(error) if error.is_scarcity() => return Err(self.failure(name, &error)),
                    // An entry that is neither a file nor a link has no target.
                    Ok(_) | Err(_) => self.check_clash(name, "exists already and leads elsewhere")?,
                }
            }
        }
        Ok(Preview::Take)
    }

    /// Creates a symbolic link that [`begin_link`](Self::begin_link) has admitted, and returns its name if it differs.
    pub(super) fn make_link(&self, name: &Name, target: &str) -> Result<Option<String>, Failure> {
        self.retries.retry(|| self.check_parents(name))?;
        let system = |error: io::Error| self.failure(name, &error);
        let symlink = |at: &str| self.retries.retry(|| self.files.symlink(target, at));
        match self.on_clash {
            OnClash::Overwrite => {
                // Renaming the temporary link replaces the existing entry atomically.
                let draft = name.beside(&format!("{LINK_DRAFT}{:016x}", random_number().map_err(system)?));
                symlink(&draft).map_err(system)?;
                let renamed =
                    self.retries.retry(|| self.files.dir.rename(&draft, &self.files.dir, name.as_str()));
                if renamed.is_err() {
                    // The temporary link contains no data.
                    let _ = self.files.remove_if_there(&draft);
                }
                renamed.map(|()| None).map_err(system)
            }
            OnClash::Refuse => match symlink(name.as_str()) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    Err(self.clash(name, "came into being meanwhile"))
                }
                made => made.map(|()| None).map_err(system),
            },
            OnClash::Rename => self.beside(name, |to| is_new(symlink(to))).map_err(system),
        }
    }

    /// Creates an offered folder, unless it exists.
    pub(crate) fn make_folder(&self, name: &Name) -> Result<(), Failure> {
        self.make_parents(name)?;
        let make = || match self.files.dir.create_dir(name.as_str()) {
            Ok(()) => {
                let made = self.files.dir.symlink_metadata(name.as_str())?;
                self.made.add(self.files.owner, name, CreatedFolder::of_found(&made));
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if self.files.dir.symlink_metadata(name.as_str())?.is_dir() { Ok(()) } else { Err(error) }
            }
            Err(error) => Err(error),
        };
        make().map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => self.obstructed_name(name, "exists already and is not a folder"),
            _ => self.failure(name, &error),
        })
    }

    /// Sets the time and permissions of a folder once its content is complete, if [`make_folder`](Self::make_folder) created it:
    /// folders of another origin keep their own.
    pub(crate) fn seal_folder(&self, name: &Name, offer: &Offer) -> Result<(), Failure> {
        self.check_parents(name)?;
        let seal = || {
            let is_folder = self.files.dir.symlink_metadata(name.as_str())?.is_dir();
            if !is_folder {
                return Err(ErrorKind::NotADirectory.into());
            }
            let Some(made) = self.made.of(self.files.owner, name) else { return Ok(()) };
            // `open_dir` returns handles that can only resolve names.
            let folder = self.open_file(name.as_str())?;
            if CreatedFolder::of(&folder.metadata()?) != made {
                return Ok(());
            }
            set_folder_mode(&folder, self.files.umask.of_folder(offer.mode))?;
            folder.set_times(FileTimes::new().set_modified(to_system_time(offer.changed)))
        };
        match seal() {
            Err(error) if error.is_scarcity() => Err(self.failure(name, &error)),
            sealed => {
                self.made.forget(self.files.owner, name);
                sealed.map_err(|error| self.failure(name, &error))
            }
        }
    }

    /// Removes the part file and journal of a complete file, as after a crash at the very end.
    fn tidy(&self, name: &Name) -> io::Result<()> {
        if self.files.dir.symlink_metadata(self.part_of(name)).is_ok()
            && let Some(_held) = self.files.lock_part(name)?
        {
            self.files.remove_if_there(&self.part_of(name))?;
            return self.files.remove_if_there(&self.files.journal_of(name));
        }
        Ok(())
    }

    /// Gives a sealed part its name, and returns the name if it differs from the offered one. The name is not synced yet.
    pub(super) fn rename_part(&self, part: &Part) -> Result<Option<String>, Failure> {
        let name = part.name();
        let system = |error: io::Error| self.failure(name, &error);
        let part_name = self.part_of(name);
        let link = |to: &str| self.retries.retry(|| self.link(&part_name, to));
        self.retries.retry(|| self.check_parents(name))?;
        self.files.disk.before(Step::Commit).map_err(system)?;
        let mut replaced_bytes = 0;
        let given = match self.on_clash {
            OnClash::Overwrite => {
                if let Ok(Present::File { size_bytes }) = self.present(name) {
                    replaced_bytes = size_bytes;
                }
                let rename = || self.files.dir.rename(&part_name, &self.files.dir, name.as_str());
                self.retries.retry(rename).map_err(system)?;
                None
            }
            OnClash::Refuse => {
                if !link(name.as_str()).map_err(system)? {
                    return Err(self.clash(name, "came into being meanwhile"));
                }
                None
            }
            OnClash::Rename => self.beside(name, link).map_err(system)?,
        };
        part.named(replaced_bytes);
        for left in [&part_name, &self.files.journal_of(name)] {
            self.retries.retry(|| self.files.remove_if_there(left)).map_err(system)?;
        }
        Ok(given)
    }

    /// Gives the file the name, or the name with the first unused number added. `give` returns `true` if the name was unused.
    fn beside(&self, name: &Name, give: impl Fn(&str) -> io::Result<bool>) -> io::Result<Option<String>> {
        if give(name.as_str())? {
            return Ok(None);
        }
        for number in 1..=MOST_RENAMED {
            let other = name.beside(&format!("{}.{number}", name.last()));
            if give(&other)? {
                return Ok(Some(other));
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Gives a file a second name if the name is unused. Unlike renaming, this never replaces a file. Returns `true` if it did.
    fn link(&self, from: &str, to: &str) -> io::Result<bool> {
        match self.files.dir.hard_link(from, &self.files.dir, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            // The file system has no hard links.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                match self.files.dir.symlink_metadata(to) {
                    Ok(_) => Ok(false),
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        self.files.dir.rename(from, &self.files.dir, to).map(|()| true)
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Counts the unfinished files below this folder. Reads at most `most_entries` files and folders.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn unfinished(&self, most_entries: usize) -> io::Result<Unfinished> {
        let mut found = Unfinished::default();
        let is_all = read_tree(&self.files.dir, most_entries, |entry| {
            if !entry.metadata.is_dir() {
                entry.name.to_str().into_iter().for_each(|name| found.count(name, entry.metadata));
            }
            true
        })?;
        Ok(Unfinished { is_all, ..found })
    }

    /// Returns the entries of a subfolder, or of this folder if the name is empty.
    pub(crate) fn entries(&self, name: &str) -> io::Result<cap_std::fs::ReadDir> {
        self.files.dir.read_dir(if name.is_empty() { "." } else { name })
    }

    pub(crate) fn metadata(&self, name: &str) -> io::Result<cap_std::fs::Metadata> {
        self.files.dir.symlink_metadata(name)
    }

    /// Returns the metadata of a symbolic link's target, if the target is in the folder.
    pub(crate) fn metadata_behind(&self, name: &str) -> io::Result<cap_std::fs::Metadata> {
        self.files.dir.metadata(name)
    }

    /// Returns the target of a symbolic link as stored in the link.
    pub(crate) fn link_target(&self, name: &str) -> io::Result<PathBuf> {
        self.files.dir.read_link_contents(name)
    }
}

/// Returns the bytes that a file occupies on the disk.
pub(super) fn allocated_bytes(metadata: &cap_std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt;
        metadata.blocks().saturating_mul(512)
    }
    #[cfg(not(unix))]
    {
        metadata.len()
    }
}

/// Returns `true` if the entry was created, because its name was unused.
fn is_new(made: io::Result<()>) -> io::Result<bool> {
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the permissions of a file; `None` on systems without permissions.
fn mode_of(found: &cap_std::fs::Metadata) -> Option<u16> {
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt;
        u16::try_from(found.mode() & 0o7777).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        None
    }
}

fn random_number() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
}

enum Present {
    Nothing,
    File { size_bytes: u64 },
    Folder,
    Other,
}

/// Returns the size of a file, and the root over its blocks. Fails once `cancel` is cancelled.
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

/// Converts an error of the system for a file to a failure.
pub(crate) fn explain(shown: &str, error: &io::Error) -> Failure {
    let (reason, remedy) = match error.kind() {
        _ if error.is_scarcity() => {
            (Reason::Resources, "close other programs or raise the limit (ulimit -n), and try again")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (Reason::Permission, "check the permissions of it and of its folder")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            (Reason::NoSpace, "received blocks are kept: make room and send it again to resume")
        }
        ErrorKind::NotFound => (Reason::NotThere, "check the name"),
        ErrorKind::NotADirectory => (Reason::Clash, "a file is where a folder should be: move it away"),
        ErrorKind::IsADirectory => (Reason::Clash, "a folder is where a file should be: move it away"),
        ErrorKind::AlreadyExists => (Reason::Clash, "something else has the name: move it away"),
        _ => (Reason::System, "fix the reported error, and try again"),
    };
    Failure::new(reason, format!("{shown}: {error}; {remedy}"))
}
