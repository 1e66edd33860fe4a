//! Errors of key logs and captures.

use std::io;
use std::path::{Path, PathBuf};

/// Error of a file. Each text names the file and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum KeyLogError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// Other users can read the file, and keys would be added to it.
    #[error("{0}: others can read this file (mode {mode:03o}), and keys would be added to it: run `chmod 600 {0}`, or name another file", path.display())]
    Readable {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// The file belongs to another user, who could read it.
    #[error("{}: this file belongs to user {owner} and not to user {user}, and keys would be added to it: name another file", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// Numeric identifier of the owner.
        owner: u32,
        /// Numeric identifier of the user who runs the program.
        user: u32,
    },
    /// The output would overwrite one of the inputs.
    #[error("{}: this is the same file as {}, which is read for it: name another file for the output", output.display(), input.display())]
    SameFile {
        /// Output file.
        output: PathBuf,
        /// Capture or key log.
        input: PathBuf,
    },
    /// A line does not have the format of a key log.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// Expected format.
        reason: &'static str,
    },
    /// The key log is too large or contains no keys.
    #[error("{}: {reason}", path.display())]
    Keys {
        /// Path of the file.
        path: PathBuf,
        /// Defect of the file and a remedy.
        reason: &'static str,
    },
    /// The file is not a capture, or is damaged.
    #[error("{}: {reason}", path.display())]
    Capture {
        /// Path of the file.
        path: PathBuf,
        /// Defect of the file.
        reason: String,
    },
}

impl KeyLogError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| KeyLogError::File { path: path.to_owned(), error }
    }
}
