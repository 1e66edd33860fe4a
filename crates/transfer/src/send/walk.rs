//! Walk of the sources, which finds entries one by one, so that no list of all files is stored.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::fs::{Metadata, ReadDir};
use tokio::sync::mpsc;

use super::unsized_file::{FilePlace, UnsizedFile, has_content, is_read_as_pipe};
use crate::block::{BLOCK_BYTES, Hash};
use crate::cancel::Cancel;
use crate::filter::Filters;
use crate::name::Name;
use crate::protocol::{FILE_BITS, FOLDER_BITS, Failure, FileTime, Kind, Links, OnClash, Reason};
use crate::scarcity::{Scarcity, ScarcityRetries};
use crate::store::{Folder, explain, from_system_time, identity_of};
use crate::text::PeerText;

/// Number of entries that wait to be offered.
const WAITING_ITEMS: usize = 16;

/// Source of a transfer.
#[derive(Clone)]
pub struct SendSource {
    pub(super) what: SourceKind,
    links: Links,
    filters: Filters,
}

#[derive(Clone)]
pub(super) enum SourceKind {
    Path(PathBuf),
    Piped { name: String, path: PathBuf },
    Inside { folder: Folder, name: String },
    Stream { name: String, from: Pipe },
}

pub(super) type Pipe = Arc<Mutex<Box<dyn Read + Send>>>;

impl SendSource {
    /// Creates a source from a file or a folder with its content, offered under its last name.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        SendSource::of(SourceKind::Path(path.into()))
    }

    /// Creates a source from the entry of a folder; from its whole content if the name is empty.
    pub fn inside(folder: Folder, name: impl Into<String>) -> Self {
        SendSource::of(SourceKind::Inside { folder: folder.unnamed(), name: name.into() })
    }

    /// Creates a source that is read from `from` and offered as a file called `name`.
    pub fn stream(name: impl Into<String>, from: impl Read + Send + 'static) -> Self {
        SendSource::of(SourceKind::Stream { name: name.into(), from: Arc::new(Mutex::new(Box::new(from))) })
    }

    /// Returns a source that is read from a path and offered as a file called `name`: a named pipe, a device, or a descriptor that a
    /// shell passes.
    pub fn piped(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        SendSource::of(SourceKind::Piped { name: name.into(), path: path.into() })
    }

    /// Returns `true` if the source can be read only once and in order, so that a later command cannot resume it.
    pub fn is_pipe(&self) -> bool {
        match &self.what {
            SourceKind::Path(path) => is_read_as_pipe(path),
            SourceKind::Piped { .. } | SourceKind::Stream { .. } => true,
            SourceKind::Inside { .. } => false,
        }
    }

    fn of(what: SourceKind) -> Self {
        SendSource { what, links: Links::default(), filters: Filters::default() }
    }

    /// Sets the treatment of symbolic links. An entry [inside](Self::inside) a folder never leads out of it.
    #[must_use]
    pub fn with_links(mut self, links: Links) -> Self {
        self.links = links;
        self
    }

    pub(super) fn selection(&self) -> Selection {
        Selection { links: self.links, filters: self.filters.clone() }
    }

    pub(super) fn filters(&self) -> &Filters {
        &self.filters
    }

    /// Sets the filters.
    #[must_use]
    pub fn with_filters(mut self, filters: Filters) -> Self {
        self.filters = filters;
        self
    }
}

impl fmt::Debug for SendSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            SourceKind::Path(path) | SourceKind::Piped { path, .. } => {
                f.debug_tuple("Path").field(path).finish()
            }
            SourceKind::Inside { name, .. } => f.debug_tuple("Inside").field(name).finish(),
            SourceKind::Stream { name, .. } => f.debug_tuple("Stream").field(name).finish(),
        }
    }
}

/// Origin of the content of an offer.
#[derive(Clone)]
pub(super) enum Origin {
    File {
        folder: Folder,
        path: String,
    },
    Stream(Pipe),
    /// A folder or a link, which has no content.
    None,
}

impl Origin {
    /// Returns the origin of a file that is offered as this kind.
    pub(super) fn of_file(kind: &Kind, folder: Folder, path: String) -> Self {
        match kind {
            Kind::Stream { .. } => {
                let file = UnsizedFile::new(FilePlace::Inside { folder, path });
                Origin::Stream(Arc::new(Mutex::new(Box::new(file))))
            }
            _ => Origin::File { folder, path },
        }
    }
}

/// Returns the kind of an offer whose size is known at its end.
pub(super) fn stream_kind() -> io::Result<Kind> {
    let mut token = [0; 16];
    getrandom::fill(&mut token).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Kind::Stream { token })
}

/// Result of the walk for one entry.
pub(super) enum Item {
    Found { name: String, kind: Kind, changed: FileTime, mode: u16, origin: Box<Origin> },
    Skipped { name: String, failure: Failure },
}

/// Error: the caller has dropped the channel.
pub(super) struct ReceiverDropped;

/// A top-level folder of a source that the walk has found.
#[derive(Clone)]
pub(super) struct Root {
    pub(super) place: Place,
    pub(super) name: String,
    /// Device and inode of the folder.
    pub(super) identity: (u64, u64),
    pub(super) selection: Selection,
}

/// All root folders found so far.
pub(super) type Roots = Arc<Mutex<Vec<Root>>>;

/// Starts to walk the sources on its own thread.
pub(super) fn walk(sources: Vec<SendSource>, cancel: &Cancel) -> (mpsc::Receiver<Item>, Roots) {
    let ((items, found), roots) = (mpsc::channel(WAITING_ITEMS), Roots::default());
    let (for_thread, retries) = (Arc::clone(&roots), ScarcityRetries::until(cancel));
    tokio::task::spawn_blocking(move || {
        let mut opened = Opened::default();
        for source in sources {
            let selection = source.selection();
            let (items, roots, retries) = (items.clone(), Arc::clone(&for_thread), retries.clone());
            let mut walker = Walker { items, roots, selection, retries, opened };
            if walker.source(source.what).is_err() {
                return;
            }
            opened = walker.opened;
        }
    });
    (found, roots)
}

/// Result of a [`survey`].
pub(crate) enum Found {
    Item { name: String, kind: Kind },
    Skipped { why: PeerText },
}

/// Finds the entries that a source offers, without offering them.
pub(crate) fn survey(source: SendSource) -> mpsc::Receiver<Found> {
    let cancel = Cancel::default();
    let (mut items, _) = walk(vec![source], &cancel);
    let (found, receiver) = mpsc::channel(WAITING_ITEMS);
    tokio::spawn(async move {
        let _cancel_on_drop = cancel.on_drop();
        while let Some(item) = items.recv().await {
            let item = match item {
                Item::Found { name, kind, .. } => Found::Item { name, kind },
                Item::Skipped { failure, .. } => Found::Skipped { why: failure.text },
            };
            if found.send(item).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Choice of the entries of a source to offer.
#[derive(Clone)]
pub(super) struct Selection {
    pub(super) links: Links,
    filters: Filters,
}

struct Walker {
    items: mpsc::Sender<Item>,
    roots: Roots,
    selection: Selection,
    retries: ScarcityRetries,
    opened: Opened,
}

/// The most recently opened folder outside the walked ones. Files that the user names one by one, or to which links lead, are often
/// in the same folder. Each of their offers keeps a handle on it.
#[derive(Default)]
pub(super) struct Opened(Option<(PathBuf, Folder)>);

impl Opened {
    fn folder(&mut self, path: &Path) -> io::Result<Folder> {
        if let Some((opened, folder)) = &self.0
            && opened == path
        {
            return Ok(folder.clone());
        }
        let folder = Folder::open(path, OnClash::Refuse)?;
        self.0 = Some((path.to_owned(), folder.clone()));
        Ok(folder)
    }
}

/// Location of an entry.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) folder: Folder,
    /// Path of the folder, if links may lead out of it.
    pub(super) root: Option<PathBuf>,
    pub(super) path: String,
}

impl Place {
    pub(super) fn below(&self, last: &str) -> Place {
        Place { path: format!("{}/{last}", self.path), ..self.clone() }
    }

    pub(super) fn show(&self) -> String {
        self.folder.show(&self.path)
    }
}

/// A folder whose entries are being walked.
struct Level {
    entries: std::vec::IntoIter<io::Result<OsString>>,
    place: Place,
    name: String,
    identity: (u64, u64),
    end: Item,
}

impl Selection {
    /// Returns `true` if the filters include an entry of this name and kind. Fails by scarcity only.
    pub(super) fn takes(&self, place: &Place, name: &Name) -> io::Result<bool> {
        let found = match self.links {
            Links::Follow => place.folder.metadata_behind(&place.path),
            Links::Copy | Links::Skip => place.folder.metadata(&place.path),
        };
        match found {
            Err(error) if error.is_scarcity() => Err(error),
            found => Ok(self.filters.takes(name, found.is_ok_and(|there| there.is_dir()))),
        }
    }

    /// Inspects an entry, and follows links if requested.
    pub(super) fn inspect(&self, place: &Place, name: &Name) -> Result<InspectedEntry, Failure> {
        self.inspect_with(place, name, &mut Opened::default())
    }

    fn inspect_with(
        &self,
        place: &Place,
        name: &Name,
        opened: &mut Opened,
    ) -> Result<InspectedEntry, Failure> {
        let metadata =
            place.folder.metadata(&place.path).map_err(|error| inspection_failure(place, &error))?;
        if !metadata.is_symlink() {
            return Ok(InspectedEntry::Place(place.clone()));
        }
        let leave = |why: &str| {
            let text = format!("the symbolic link {} was omitted: {why}", place.show());
            Err(Failure::new(Reason::Link, text))
        };
        match self.links {
            Links::Skip => Ok(InspectedEntry::Nothing),
            Links::Follow => match follow(place, opened) {
                Ok(there) => Ok(InspectedEntry::Place(there)),
                Err(Some(error)) if error.is_scarcity() => Err(inspection_failure(place, &error)),
                Err(Some(error)) => leave(&format!("its target cannot be read here ({error})")),
                Err(None) => leave("its target cannot be read here"),
            },
            Links::Copy => {
                let target = place
                    .folder
                    .link_target(&place.path)
                    .map_err(|error| inspection_failure(place, &error))?;
                let Some(target) = target.to_str() else { return leave("its target is not UTF-8") };
                if let Err(bad) = name.check_link(target) {
                    return leave(&format!("{bad}; --links follow sends its target"));
                }
                let changed = metadata.modified().map_err(|error| inspection_failure(place, &error))?;
                let changed = from_system_time(changed.into_std());
                Ok(InspectedEntry::Link { target: target.to_owned(), changed })
            }
        }
    }
}

impl Walker {
    fn source(&mut self, source: SourceKind) -> Result<(), ReceiverDropped> {
        match source {
            SourceKind::Path(path) if is_read_as_pipe(&path) => {
                let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
                match name {
                    Some(name) => self.stream(name, UnsizedFile::new(FilePlace::Path(path))),
                    None => self.tree_at(&path),
                }
            }
            SourceKind::Path(path) => self.tree_at(&path),
            SourceKind::Piped { name, path } => self.stream(name, UnsizedFile::new(FilePlace::Path(path))),
            SourceKind::Inside { folder, name } if name.is_empty() => self.all_of(&folder),
            SourceKind::Inside { folder, name } => match Name::new(&name) {
                Ok(_) => self.tree(Place { folder, root: None, path: name.clone() }, name),
                Err(bad) => {
                    let text = format!("`{}` cannot be asked for: {bad}", name.escape_debug());
                    self.pass(name, Failure::new(Reason::BadName, text))
                }
            },
            SourceKind::Stream { name, from } => self.offer_stream(name, from),
        }
    }

    fn tree_at(&mut self, path: &Path) -> Result<(), ReceiverDropped> {
        match self.retries.retry(|| locate(path, &mut self.opened)) {
            Ok((place, name)) => self.tree(place, name),
            Err((shown, failure)) => self.pass(shown, failure),
        }
    }

    fn stream(&self, name: String, from: UnsizedFile) -> Result<(), ReceiverDropped> {
        self.offer_stream(name, Arc::new(Mutex::new(Box::new(from))))
    }

    fn offer_stream(&self, name: String, from: Pipe) -> Result<(), ReceiverDropped> {
        let kind = match stream_kind() {
            Ok(kind) => kind,
            Err(error) => {
                let text = format!("the system gave no random bytes ({error})");
                return self.pass(name, Failure::new(Reason::System, text));
            }
        };
        let changed = from_system_time(std::time::SystemTime::now());
        self.emit(Item::Found { name, kind, changed, mode: 0o644, origin: Box::new(Origin::Stream(from)) })
    }

    fn emit(&self, item: Item) -> Result<(), ReceiverDropped> {
        self.items.blocking_send(item).map_err(|_| ReceiverDropped)
    }

    fn pass(&self, name: String, failure: Failure) -> Result<(), ReceiverDropped> {
        self.emit(Item::Skipped { name, failure })
    }

    fn all_of(&mut self, folder: &Folder) -> Result<(), ReceiverDropped> {
        match self.retries.retry(|| folder.entries("")) {
            Ok(entries) => {
                for entry in in_order(entries) {
                    let Some(path) = self.entry_name(entry, ".")? else { continue };
                    self.tree(Place { folder: folder.clone(), root: None, path: path.clone() }, path)?;
                }
                Ok(())
            }
            Err(error) => self.pass(".".to_owned(), explain(&folder.show("."), &error)),
        }
    }

    /// Offers a file, or a folder and its content, depth first.
    fn tree(&mut self, place: Place, name: String) -> Result<(), ReceiverDropped> {
        let mut levels: Vec<Level> = self.enter(place, name, &[])?.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            match level.entries.next() {
                Some(entry) => {
                    let (place, name) = (level.place.clone(), level.name.clone());
                    let Some(last) = self.entry_name(entry, &place.path)? else { continue };
                    let entered = self.enter(place.below(&last), format!("{name}/{last}"), &levels)?;
                    levels.extend(entered);
                }
                None => {
                    if let Some(level) = levels.pop() {
                        self.emit(level.end)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn entry_name(
        &self,
        entry: io::Result<OsString>,
        shown: &str,
    ) -> Result<Option<String>, ReceiverDropped> {
        match entry.map(OsString::into_string) {
            // Part files of other transfers are not reported. Since no message is sent for them, the walk checks here that the
            // channel is open.
            Ok(Ok(name)) if Name::new(&name) == Err(crate::BadName::Reserved) => {
                if self.items.is_closed() {
                    Err(ReceiverDropped)
                } else {
                    Ok(None)
                }
            }
            Ok(Ok(name)) => Ok(Some(name)),
            Ok(Err(name)) => {
                let name = format!("{shown}/{}", name.to_string_lossy());
                let text = format!("{}: its name is not UTF-8; rename it", name.escape_debug());
                self.pass(name, Failure::new(Reason::BadName, text)).map(|()| None)
            }
            Err(error) => self.pass(shown.to_owned(), explain(shown, &error)).map(|()| None),
        }
    }

    /// Offers one entry. Returns the folder to walk if the entry is a folder.
    fn enter(
        &mut self,
        place: Place,
        name: String,
        within: &[Level],
    ) -> Result<Option<Level>, ReceiverDropped> {
        let checked = match Name::new(&name) {
            Ok(checked) => checked,
            Err(bad) => {
                let text = format!("{}: its name is not taken: {bad}; rename it", name.escape_debug());
                return self.pass(name, Failure::new(Reason::BadName, text)).map(|()| None);
            }
        };
        // Excluded entries are not reported. Since no message is sent for them, the walk checks here that the channel is open.
        match self.retries.retry(|| self.selection.takes(&place, &checked)) {
            Ok(true) => {}
            Ok(false) => return if self.items.is_closed() { Err(ReceiverDropped) } else { Ok(None) },
            Err(error) => return self.pass(name, inspection_failure(&place, &error)).map(|()| None),
        }
        let look = || self.selection.inspect_with(&place, &checked, &mut self.opened);
        match self.retries.retry(look) {
            Ok(InspectedEntry::Place(place)) => self.found(place, name, within),
            Ok(InspectedEntry::Link { target, changed }) => {
                let kind = Kind::Link { target: target.into() };
                self.emit(Item::Found { name, kind, changed, mode: 0o777, origin: Box::new(Origin::None) })?;
                Ok(None)
            }
            Ok(InspectedEntry::Nothing) => Ok(None),
            Err(failure) => self.pass(name, failure).map(|()| None),
        }
    }

    fn root(&self, place: &Place, name: &str, identity: (u64, u64)) {
        let (place, name, selection) = (place.clone(), name.to_owned(), self.selection.clone());
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        roots.push(Root { place, name, identity, selection });
    }

    /// Offers a file, or a folder that is to be walked.
    fn found(&self, place: Place, name: String, within: &[Level]) -> Result<Option<Level>, ReceiverDropped> {
        match self.retries.retry(|| describe_place(&place)) {
            Ok(Some(Described::File { kind, changed, mode })) => {
                let origin = Box::new(Origin::of_file(&kind, place.folder, place.path));
                self.emit(Item::Found { name, kind, changed, mode, origin })?;
                Ok(None)
            }
            Ok(Some(Described::Folder { entries, changed, mode, identity })) => {
                if self.selection.links == Links::Follow
                    && within.iter().any(|level| level.identity == identity)
                {
                    let text =
                        format!("{} was omitted: its target is a folder that contains it", place.show());
                    return self.pass(name, Failure::new(Reason::Link, text)).map(|()| None);
                }
                let found = |kind| Item::Found {
                    name: name.clone(),
                    kind,
                    changed,
                    mode,
                    origin: Box::new(Origin::None),
                };
                self.emit(found(Kind::Folder))?;
                if within.is_empty() {
                    self.root(&place, &name, identity);
                }
                let end = found(Kind::FolderEnd);
                Ok(Some(Level { entries, place, name, identity, end }))
            }
            Ok(None) => {
                let text = format!("{} was omitted: it is neither a file nor a folder", place.show());
                self.pass(name, Failure::new(Reason::NotThere, text)).map(|()| None)
            }
            Err(error) => self.pass(name, inspection_failure(&place, &error)).map(|()| None),
        }
    }
}

pub(super) fn inspection_failure(place: &Place, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(Reason::NotThere, format!("no such file: {}", place.show())),
        _ => explain(&place.show(), error),
    }
}

/// Result of inspecting a name.
pub(super) enum InspectedEntry {
    Place(Place),
    Link {
        target: String,
        changed: FileTime,
    },
    /// An entry that is neither offered nor reported.
    Nothing,
}

enum Described {
    File {
        kind: Kind,
        changed: FileTime,
        mode: u16,
    },
    Folder {
        entries: std::vec::IntoIter<io::Result<OsString>>,
        changed: FileTime,
        mode: u16,
        identity: (u64, u64),
    },
}

/// Returns the target of a link: below the same folder, or elsewhere if allowed. Fails with the system's error, if there is one.
fn follow(place: &Place, opened: &mut Opened) -> Result<Place, Option<io::Error>> {
    let error = match place.folder.metadata_behind(&place.path) {
        Ok(_) => return Ok(place.clone()),
        Err(error) => error,
    };
    let Some(root) = place.root.as_ref().filter(|_| !error.is_scarcity()) else { return Err(Some(error)) };
    let real = root.join(&place.path).canonicalize().map_err(Some)?;
    let name = real.file_name().and_then(|name| name.to_str());
    let (Some(path), Some(root)) = (name, real.parent()) else { return Err(None) };
    let folder = opened.folder(root).map_err(Some)?;
    Ok(Place { folder, root: Some(root.to_owned()), path: path.to_owned() })
}

/// Describes a file or folder, following links; `None` for any other kind.
fn describe_place(place: &Place) -> io::Result<Option<Described>> {
    let Place { folder, path, .. } = place;
    let metadata = folder.metadata_behind(path)?;
    let changed = from_system_time(metadata.modified()?.into_std());
    let mode = mode_of(&metadata);
    if metadata.is_dir() {
        let entries = in_order(folder.entries(path)?);
        return Ok(Some(Described::Folder { entries, changed, mode, identity: identity_of(&metadata) }));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let kind = describe(&folder.open_file(path)?, metadata.len())?;
    Ok(Some(Described::File { kind, changed, mode }))
}

/// Returns the names in a folder, sorted; errors come last.
fn in_order(entries: ReadDir) -> std::vec::IntoIter<io::Result<OsString>> {
    let mut names: Vec<io::Result<OsString>> =
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
    names.sort_by(|one, two| match (one, two) {
        (Ok(one), Ok(two)) => one.cmp(two),
        (one, two) => one.is_err().cmp(&two.is_err()),
    });
    names.into_iter()
}

/// Returns the kind of a file as it is offered.
pub(super) fn describe(mut file: &File, size_bytes: u64) -> io::Result<Kind> {
    if size_bytes == 0 && has_content(file)? {
        return stream_kind();
    }
    let first = if size_bytes > u64::from(BLOCK_BYTES) {
        let mut block = Vec::new();
        (&mut file).take(u64::from(BLOCK_BYTES)).read_to_end(&mut block)?;
        Some(Hash::of(&block))
    } else {
        None
    };
    Ok(Kind::File { size_bytes, first })
}

#[cfg(unix)]
fn mode_of(metadata: &Metadata) -> u16 {
    use cap_std::fs::MetadataExt;
    let bits = if metadata.is_dir() { FOLDER_BITS } else { FILE_BITS };
    u16::try_from(metadata.mode() & 0o7777).unwrap_or(0o644) & bits
}

#[cfg(not(unix))]
fn mode_of(metadata: &Metadata) -> u16 {
    if metadata.is_dir() { 0o755 } else { 0o644 }
}

impl Scarcity for (String, Failure) {
    fn is_scarcity(&self) -> bool {
        self.1.is_scarcity()
    }
}

/// Returns the folder of a path's last part, its name there, and the offered name. A link is followed, because the user has named
/// it.
pub(super) fn locate(path: &Path, opened: &mut Opened) -> Result<(Place, String), (String, Failure)> {
    let shown = path.display().to_string();
    let refuse = |failure| (shown.clone(), failure);
    let real = path.canonicalize().map_err(|error| refuse(explain(&shown, &error)))?;
    // `.` and `..` contain no name.
    let given = path.file_name().or(real.file_name());
    let text = |name: Option<&std::ffi::OsStr>| name.and_then(|name| name.to_str()).map(str::to_owned);
    let (Some(parent), Some(inside), Some(name)) = (real.parent(), text(real.file_name()), text(given))
    else {
        let text = format!("{shown} has no name to send it under; name a file or folder whose name is UTF-8");
        return Err(refuse(Failure::new(Reason::BadName, text)));
    };
    let folder = opened.folder(parent).map_err(|error| refuse(explain(&shown, &error)))?;
    Ok((Place { folder, root: Some(parent.to_owned()), path: inside }, name))
}
