//! What is to be offered, found as it goes, so that no list of all files is ever held.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cap_std::fs::{Metadata, ReadDir};
use tokio::sync::mpsc;

use crate::block::{BLOCK_BYTES, Hash};
use crate::name::Name;
use crate::protocol::{Failure, FileTime, Kind, Reason};
use crate::store::{Folder, OnClash, explain, from_system_time};

/// Entries that wait to be offered.
const WAITING_ITEMS: usize = 16;

/// Something to send.
#[derive(Clone)]
pub struct SendSource(pub(super) What);

#[derive(Clone)]
pub(super) enum What {
    Path(PathBuf),
    Inside { folder: Folder, name: String },
    Stream { name: String, from: Pipe },
}

pub(super) type Pipe = Arc<Mutex<Box<dyn Read + Send>>>;

impl SendSource {
    /// A file or a folder with all that is in it, offered under its last name.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        SendSource(What::Path(path.into()))
    }

    /// What a folder holds under a name; everything in it if the name is empty.
    pub fn inside(folder: Folder, name: impl Into<String>) -> Self {
        SendSource(What::Inside { folder, name: name.into() })
    }

    /// What can be read from `from`, offered as a file called `name`.
    pub fn stream(name: impl Into<String>, from: impl Read + Send + 'static) -> Self {
        SendSource(What::Stream { name: name.into(), from: Arc::new(Mutex::new(Box::new(from))) })
    }
}

impl fmt::Debug for SendSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Path(path) => f.debug_tuple("Path").field(path).finish(),
            What::Inside { name, .. } => f.debug_tuple("Inside").field(name).finish(),
            What::Stream { name, .. } => f.debug_tuple("Stream").field(name).finish(),
        }
    }
}

/// Where the content of an offer is.
#[derive(Clone)]
pub(super) enum Origin {
    File { folder: Folder, path: String },
    Stream(Pipe),
    Folder,
}

/// Something that was found.
pub(super) enum Item {
    Found { name: String, kind: Kind, changed: FileTime, mode: u16, origin: Origin },
    Skipped { name: String, failure: Failure },
}

/// Whoever listened is gone.
struct Gone;

/// Starts to find what there is, on a thread of its own.
pub(super) fn walk(sources: Vec<SendSource>) -> mpsc::Receiver<Item> {
    let (items, found) = mpsc::channel(WAITING_ITEMS);
    tokio::task::spawn_blocking(move || {
        let walker = Walker { items };
        for source in sources {
            if walker.source(source).is_err() {
                return;
            }
        }
    });
    found
}

struct Walker {
    items: mpsc::Sender<Item>,
}

/// A folder that is being walked.
struct Level {
    entries: ReadDir,
    path: String,
    name: String,
    end: Item,
}

impl Walker {
    fn source(&self, source: SendSource) -> Result<(), Gone> {
        match source.0 {
            What::Path(path) => match locate(&path) {
                Ok((folder, path, name)) => self.tree(&folder, path, name),
                Err((shown, failure)) => self.pass(shown, failure),
            },
            What::Inside { folder, name } if name.is_empty() => self.all_of(&folder),
            What::Inside { folder, name } => match Name::new(&name) {
                Ok(_) => self.tree(&folder, name.clone(), name),
                Err(bad) => {
                    let text = format!("`{}` cannot be asked for: {bad}", name.escape_debug());
                    self.pass(name, Failure::new(Reason::BadName, text))
                }
            },
            What::Stream { name, from } => {
                let mut token = [0; 16];
                if let Err(error) = getrandom::fill(&mut token) {
                    let text = format!("the system gave no random bytes ({error})");
                    return self.pass(name, Failure::new(Reason::System, text));
                }
                self.emit(Item::Found {
                    name,
                    kind: Kind::Stream { token },
                    changed: from_system_time(std::time::SystemTime::now()),
                    mode: 0o644,
                    origin: Origin::Stream(from),
                })
            }
        }
    }

    fn emit(&self, item: Item) -> Result<(), Gone> {
        self.items.blocking_send(item).map_err(|_| Gone)
    }

    fn pass(&self, name: String, failure: Failure) -> Result<(), Gone> {
        self.emit(Item::Skipped { name, failure })
    }

    fn all_of(&self, folder: &Folder) -> Result<(), Gone> {
        match folder.entries("") {
            Ok(entries) => {
                for entry in entries {
                    let Some(name) = self.entry_name(entry, ".")? else { continue };
                    self.tree(folder, name.clone(), name)?;
                }
                Ok(())
            }
            Err(error) => self.pass(".".to_owned(), explain(&folder.show("."), &error)),
        }
    }

    /// A file, or a folder and all that is in it, depth first.
    fn tree(&self, folder: &Folder, path: String, name: String) -> Result<(), Gone> {
        let mut levels: Vec<Level> = self.enter(folder, path, name)?.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            match level.entries.next() {
                Some(entry) => {
                    let shown = level.path.clone();
                    let (path, name) = (level.path.clone(), level.name.clone());
                    let Some(last) = self.entry_name(entry, &shown)? else { continue };
                    levels.extend(self.enter(folder, format!("{path}/{last}"), format!("{name}/{last}"))?);
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
        entry: io::Result<cap_std::fs::DirEntry>,
        shown: &str,
    ) -> Result<Option<String>, Gone> {
        match entry.map(|entry| entry.file_name().into_string()) {
            // What others left unfinished is nobody's. Nothing is told of it, so this asks whether anybody listens.
            Ok(Ok(name)) if Name::new(&name) == Err(crate::BadName::Reserved) => {
                if self.items.is_closed() {
                    Err(Gone)
                } else {
                    Ok(None)
                }
            }
            Ok(Ok(name)) => Ok(Some(name)),
            Ok(Err(name)) => {
                let name = format!("{shown}/{}", name.to_string_lossy());
                let text = format!("{}: its name is no UTF-8; rename it", name.escape_debug());
                self.pass(name, Failure::new(Reason::BadName, text)).map(|()| None)
            }
            Err(error) => self.pass(shown.to_owned(), explain(shown, &error)).map(|()| None),
        }
    }

    /// Tells of one thing, and gives the folder that is to be walked if it is one.
    fn enter(&self, folder: &Folder, path: String, name: String) -> Result<Option<Level>, Gone> {
        if let Err(bad) = Name::new(&name) {
            let text = format!("{}: its name is not taken: {bad}; rename it", name.escape_debug());
            self.pass(name, Failure::new(Reason::BadName, text))?;
            return Ok(None);
        }
        match look(folder, &path) {
            Ok(Seen::File(kind, changed, mode)) => {
                let origin = Origin::File { folder: folder.clone(), path };
                self.emit(Item::Found { name, kind, changed, mode, origin })?;
                Ok(None)
            }
            Ok(Seen::Folder(entries, changed, mode)) => {
                let found =
                    |kind| Item::Found { name: name.clone(), kind, changed, mode, origin: Origin::Folder };
                self.emit(found(Kind::Folder))?;
                let end = found(Kind::FolderEnd);
                Ok(Some(Level { entries, path, name, end }))
            }
            Ok(Seen::Other) => {
                let text = format!("{} was left out: it is neither a file nor a folder", folder.show(&path));
                self.pass(name, Failure::new(Reason::NotThere, text)).map(|()| None)
            }
            Err(error) => {
                let failure = explain(&folder.show(&path), &error);
                self.pass(name, failure).map(|()| None)
            }
        }
    }
}

enum Seen {
    File(Kind, FileTime, u16),
    Folder(ReadDir, FileTime, u16),
    Other,
}

fn look(folder: &Folder, path: &str) -> io::Result<Seen> {
    let metadata = folder.metadata(path)?;
    let changed = from_system_time(metadata.modified()?.into_std());
    let mode = mode_of(&metadata);
    if metadata.is_dir() {
        return Ok(Seen::Folder(folder.entries(path)?, changed, mode));
    }
    if !metadata.is_file() {
        return Ok(Seen::Other);
    }
    Ok(Seen::File(describe(&folder.open_file(path)?, metadata.len())?, changed, mode))
}

/// A file as it is offered.
pub(super) fn describe(mut file: &File, size_bytes: u64) -> io::Result<Kind> {
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
    u16::try_from(metadata.mode() & 0o777).unwrap_or(0o644)
}

#[cfg(not(unix))]
fn mode_of(metadata: &Metadata) -> u16 {
    if metadata.is_dir() { 0o755 } else { 0o644 }
}

/// The folder that a path's last part is in, its name there, and the name it is offered under. A link is followed here, where
/// somebody has asked for it by name.
fn locate(path: &Path) -> Result<(Folder, String, String), (String, Failure)> {
    let shown = path.display().to_string();
    let refuse = |failure| (shown.clone(), failure);
    let real = path.canonicalize().map_err(|error| refuse(explain(&shown, &error)))?;
    // `.` and `..` have no name of their own.
    let given = path.file_name().or(real.file_name());
    let text = |name: Option<&std::ffi::OsStr>| name.and_then(|name| name.to_str()).map(str::to_owned);
    let (Some(parent), Some(inside), Some(name)) = (real.parent(), text(real.file_name()), text(given))
    else {
        let text = format!("{shown} has no name to send it under; name a file or folder whose name is UTF-8");
        return Err(refuse(Failure::new(Reason::BadName, text)));
    };
    let folder = Folder::open(parent, OnClash::Refuse).map_err(|error| refuse(explain(&shown, &error)))?;
    Ok((folder, inside, name))
}
