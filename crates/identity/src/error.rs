//! Errors of keys and key files.

use std::io;
use std::path::PathBuf;

use crate::fingerprint::Fingerprint;
use crate::host_name::HostName;

/// Error of a file or key. Each text names the place and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No directory for keys is known.
    #[error(
        "neither ANABRANCH_HOME nor XDG_CONFIG_HOME nor a home folder is known: set one of them to an absolute path"
    )]
    NoHome,
    /// A file cannot be read or written.
    #[error("{}: {error}; check its permissions", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// Other users can read a private key.
    #[error(
        "{0}: others can read this private key (mode {mode:03o}), so it is not used: run `chmod 600 {0}`, and make a new key if it was not always so",
        path.display()
    )]
    Readable {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// Other users can change a file that determines whom this user trusts.
    #[error("{0}: others can change this file (mode {mode:03o}), so it is not used: run `chmod go-w {0}`", path.display())]
    Writable {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// Another user owns a file or folder, and could change it.
    #[error(
        "{0}: it belongs to user {owner}, who could change your identity and trusted keys, so it is not used: if its content is right, run `chown {user} {0}`, or else name another place",
        path.display()
    )]
    Foreign {
        /// Path of the file or folder.
        path: PathBuf,
        /// Numeric identifier of the owner.
        owner: u32,
        /// Numeric identifier of the user who runs the program.
        user: u32,
    },
    /// Other users can replace a file, because they can write to its folder.
    #[error(
        "{}: others can replace this file, for they may write to its folder (mode {mode:03o}), so it is not used: run `chmod go-w {}`",
        path.display(), folder.display()
    )]
    WritableFolder {
        /// Path of the folder.
        folder: PathBuf,
        /// Path of the file in it.
        path: PathBuf,
        /// Permissions of the folder.
        mode: u32,
    },
    /// The file is longer than any file that this program writes.
    #[error("{}: longer than {limit} bytes, so it is not read; is it the right file?", path.display())]
    TooLong {
        /// Path of the file.
        path: PathBuf,
        /// Maximum length, in bytes.
        limit: u64,
    },
    /// A line does not have the format of the file.
    #[error("{}:{line}: {reason}; correct the line or remove it", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// Defect of the line.
        reason: String,
    },
    /// The file contains no usable key or certificate.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Defect of the file and a remedy.
        reason: String,
    },
    /// The host presents another key than before.
    #[error(transparent)]
    Changed(Box<ChangedKey>),
    /// rustls rejects a configuration.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The system provides no random bytes, or the cryptographic library rejects its own key.
    #[error("no key can be made: the system gives no random bytes")]
    NoRandomness,
}

/// Error: a host presents a key that is not among its known keys.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host} shows a key other than before, so no data is exchanged with it\n\
     it showed: {shown}\nexpected:  {expected} ({}:{line})\n\
     Either it has a new key, or another host answers in its place. Ask its administrator for the fingerprint. \
     If it is the new one, run `anabranch keys forget {host}` and connect again.",
    path.display()
)]
pub struct ChangedKey {
    /// Name of the host.
    pub host: HostName,
    /// Fingerprint of the presented key.
    pub shown: Fingerprint,
    /// Fingerprint of the known key.
    pub expected: Fingerprint,
    /// Path of the file with the known key.
    pub path: PathBuf,
    /// Line number, counted from 1.
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
