//! What can be wrong with keys and the files that hold them.

use std::io;
use std::path::PathBuf;

use crate::fingerprint::Fingerprint;
use crate::host_name::HostName;

/// A file or key cannot be used. Each text names the place, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is nowhere to keep keys.
    #[error(
        "neither ANABRANCH_HOME nor XDG_CONFIG_HOME nor a home folder is known: set one of them to an absolute path"
    )]
    NoHome,
    /// A file cannot be read or written.
    #[error("{}: {error}; check its permissions", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others can read a private key.
    #[error(
        "{0}: others can read this private key (mode {mode:03o}), so it is not used: run `chmod 600 {0}`, and make a new key if it was not always so",
        path.display()
    )]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Others can change whom this user trusts.
    #[error("{0}: others can change this file (mode {mode:03o}), so it is not used: run `chmod go-w {0}`", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Somebody else could change a file, or a folder with files.
    #[error(
        "{0}: it belongs to user {owner}, who could change whom you trust or who you are, so it is not used: if what is there is right, run `chown {user} {0}`, or else name another place",
        path.display()
    )]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this.
        user: u32,
    },
    /// Others can put another file in the place of one.
    #[error(
        "{}: others can replace this file, for they may write to its folder (mode {mode:03o}), so it is not used: run `chmod go-w {}`",
        path.display(), folder.display()
    )]
    WritableFolder {
        /// The folder.
        folder: PathBuf,
        /// The file in it.
        path: PathBuf,
        /// The folder's permissions.
        mode: u32,
    },
    /// A file is longer than any that this program writes.
    #[error("{}: longer than {limit} bytes, so it is not read; is it the right file?", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// A line is not in the file's form.
    #[error("{}:{line}: {reason}; correct the line or remove it", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is expected.
        reason: String,
    },
    /// A file holds no key or certificate that can be used.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is expected.
        reason: String,
    },
    /// A host shows another key than before.
    #[error(transparent)]
    Changed(Box<ChangedKey>),
    /// rustls refuses a configuration.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The cryptographic library has no randomness, or refuses its own key.
    #[error("no key can be made: the system gives no random bytes")]
    NoRandomness,
}

/// A host shows a key that is not among those that are known of it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host} shows another key than before, so nothing is sent to it and nothing is taken from it\n\
     it showed: {shown}\nexpected:  {expected} ({}:{line})\n\
     Either it has a new key, or somebody answers in its place. Ask whoever runs it for the fingerprint. \
     If it is the new one, run `anabranch keys forget {host}` and connect again.",
    path.display()
)]
pub struct ChangedKey {
    /// The host.
    pub host: HostName,
    /// What it shows now.
    pub shown: Fingerprint,
    /// What is in the file.
    pub expected: Fingerprint,
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

impl IdentityError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| IdentityError::File { path, error }
    }

    pub(crate) fn content(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        IdentityError::Content { path: path.into(), reason: reason.into() }
    }
}
