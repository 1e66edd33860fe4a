//! Folder of the control sockets, which only its user can enter.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use thiserror::Error;
use tokio::net::UnixListener;

/// Ending of the names of sockets.
const ENDING: &str = ".sock";
/// Age from which a socket without a listener is a remainder of a process that was killed.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// Reason for which a control socket could not be opened.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The folder could not be made or read.
    #[error("{}: {source}; set XDG_RUNTIME_DIR to a folder of this user", folder.display())]
    Unusable {
        /// Folder of the sockets.
        folder: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Other users can enter or change the folder.
    #[error("{} belongs to another user, or others may enter it; remove it, or set XDG_RUNTIME_DIR to a folder of this user", .0.display())]
    Shared(PathBuf),
    /// The socket could not be bound.
    #[error("{}: {source}; set XDG_RUNTIME_DIR to a folder of this user with a short name", socket.display())]
    Socket {
        /// Name of the socket.
        socket: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Folder of control sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

/// Control socket in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the command.
    pub command: String,
    /// Process identifier.
    pub pid: u32,
    pub(super) socket: PathBuf,
}

impl Folder {
    /// Returns a folder by its name.
    pub fn at(path: &Path) -> Self {
        Folder { path: path.to_owned() }
    }

    /// Returns the folder of this user's commands: below `$RUNTIME_DIRECTORY`, which systemd sets, `$XDG_RUNTIME_DIR`, `/run`, or the
    /// folder for temporary files.
    pub fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(path) = variable("RUNTIME_DIRECTORY") {
            // A unit may have several folders.
            let first = path.to_str().and_then(|paths| paths.split(':').next()).map(PathBuf::from);
            return Folder { path: first.unwrap_or(path) };
        }
        if let Some(path) = variable("XDG_RUNTIME_DIR") {
            return Folder { path: path.join("anabranch") };
        }
        let user = geteuid();
        let of_login = PathBuf::from(format!("/run/user/{}", user.as_raw()));
        let path = match () {
            () if user.is_root() => PathBuf::from("/run/anabranch"),
            () if of_login.is_dir() => of_login.join("anabranch"),
            () => std::env::temp_dir().join(format!("anabranch-{}", user.as_raw())),
        };
        Folder { path }
    }

    /// Returns the folders that this user's clients search: that of the user, and for root those of system services.
    pub fn searched() -> Vec<Self> {
        let mut folders = vec![Folder::of_user()];
        if geteuid().is_root() {
            let services = Folder::below_run().into_iter().filter(|folder| folder.is_private());
            folders.extend(services);
            folders.dedup();
        }
        folders
    }

    fn below_run() -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir("/run") else { return Vec::new() };
        let is_ours = |name: &str| name == "anabranch" || name.starts_with("anabranch-");
        let ours = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
        let mut folders: Vec<Self> = ours.map(|entry| Folder { path: entry.path() }).collect();
        folders.sort_by(|one, other| one.path.cmp(&other.path));
        folders
    }

    /// Returns the name of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the sockets in the folder, in the order of their names. Removes those of killed processes.
    pub fn list(&self) -> Vec<Listed> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Vec::new() };
        let mut found: Vec<Listed> = entries.flatten().filter_map(|entry| listed(&entry.path())).collect();
        found.retain(|listed| !remove_if_stale(&listed.socket));
        found.sort_by(|one, other| (&one.command, one.pid).cmp(&(&other.command, other.pid)));
        found
    }

    /// Binds the socket of a command in this process. A socket of the same name is from a process that was killed, because this one
    /// has its identifier.
    pub(super) fn bind(&self, command: &str) -> Result<(UnixListener, PathBuf), FolderError> {
        self.make()?;
        let socket = self.path.join(format!("{command}-{}{ENDING}", std::process::id()));
        let failed = |source| FolderError::Socket { socket: socket.clone(), source };
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        let only_user = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&socket, only_user).map_err(failed)?;
        Ok((listener, socket))
    }

    fn make(&self) -> Result<(), FolderError> {
        let unusable = |source| FolderError::Unusable { folder: self.path.clone(), source };
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => {}
        }
        let metadata = std::fs::symlink_metadata(&self.path).map_err(unusable)?;
        let is_private =
            metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if is_private { Ok(()) } else { Err(FolderError::Shared(self.path.clone())) }
    }

    /// Returns `true` if only its owner can enter the folder.
    fn is_private(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|found| found.is_dir() && found.mode() & 0o077 == 0)
    }
}

/// Reads the name of a socket: command and process identifier.
fn listed(socket: &Path) -> Option<Listed> {
    let (command, pid) = socket.file_name()?.to_str()?.strip_suffix(ENDING)?.rsplit_once('-')?;
    let is_word = !command.is_empty() && command.bytes().all(|byte| byte.is_ascii_lowercase());
    let pid = pid.parse().ok()?;
    is_word.then(|| Listed { command: command.to_owned(), pid, socket: socket.to_owned() })
}

/// Removes a socket that has had no listener for some time. Returns `true` if no process listens.
fn remove_if_stale(socket: &Path) -> bool {
    let connected = std::os::unix::net::UnixStream::connect(socket);
    if !connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        return false;
    }
    let age = std::fs::metadata(socket).and_then(|found| found.modified()).map(|since| since.elapsed());
    // A process that has just bound its socket may not listen yet.
    if age.is_ok_and(|age| age.is_ok_and(|age| age > STALE_AFTER)) {
        let _ = std::fs::remove_file(socket);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    /// Runs a test with a folder that does not exist yet, within a runtime, which listeners need.
    fn with_folder(test: impl FnOnce(&Path, &Folder)) {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = Folder::at(&temporary.path().join("anabranch"));
        let runtime = runtime();
        let _entered = runtime.enter();
        test(temporary.path(), &folder);
    }

    #[test]
    fn only_names_of_a_command_and_a_process_are_listed() {
        let name = |text: &str| listed(Path::new(text)).map(|listed| (listed.command, listed.pid));
        assert_eq!(name("/run/anabranch/forward-7.sock"), Some(("forward".to_owned(), 7)));
        for text in ["forward.sock", "-7.sock", "forward-x.sock", "forward-7", "a\u{1b}-7.sock", "..-7.sock"]
        {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn socket_and_folder_are_those_of_the_user_only() {
        with_folder(|_, folder| {
            let (_listener, socket) = folder.bind("forward").expect("it is free");
            let mode = |path: &Path| std::fs::metadata(path).expect("it exists").mode() & 0o777;
            assert_eq!((mode(folder.path()), mode(&socket)), (0o700, 0o600));
            assert_eq!(folder.list()[0].pid, std::process::id());
        });
    }

    #[test]
    fn folder_that_others_may_enter_is_refused() {
        with_folder(|parent, folder| {
            std::fs::create_dir(folder.path()).expect("a folder");
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
            assert!(matches!(folder.bind("forward"), Err(FolderError::Shared(_))));
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("a mode");
            let link = Folder::at(&parent.join("link"));
            std::os::unix::fs::symlink(folder.path(), link.path()).expect("a link");
            assert!(matches!(link.bind("forward"), Err(FolderError::Shared(_))));
        });
    }

    #[test]
    fn socket_of_a_killed_process_is_not_listed_and_is_replaced() {
        with_folder(|_, folder| {
            // The listener is dropped, and leaves its file.
            drop(folder.bind("forward").expect("it is free").0);
            assert_eq!(folder.list(), []);
            let (_listener, _) = folder.bind("forward").expect("it is replaced");
            assert_eq!(folder.list().len(), 1);
        });
    }

    #[test]
    fn folder_without_a_parent_is_an_error_with_its_name() {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = Folder::at(&temporary.path().join("missing/anabranch"));
        let error = folder.bind("forward").expect_err("no parent").to_string();
        assert!(error.contains("missing/anabranch") && error.contains("XDG_RUNTIME_DIR"), "{error}");
    }
}
