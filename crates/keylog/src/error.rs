//! What can be wrong with key logs and captures.

use std::io;
use std::path::{Path, PathBuf};

/// A file cannot be used. Each text names the file, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum KeyLogError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others can read keys.
    #[error("{0}: others can read this file (mode {mode:03o}), and keys would be added to it: run `chmod 600 {0}`, or name another file", path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The owner of the file, who can read it, is another user.
    #[error("{}: this file belongs to user {owner} and not to user {user}, and keys would be added to it: name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The owner of the file.
        owner: u32,
        /// The user who runs the program.
        user: u32,
    },
    /// The output would take the place of what it is made from.
    #[error("{}: this is the same file as {}, which is read for it: name another file for the output", output.display(), input.display())]
    SameFile {
        /// The file to write.
        output: PathBuf,
        /// The capture or the key log.
        input: PathBuf,
    },
    /// A line is not in the form of a key log.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is expected.
        reason: &'static str,
    },
    /// A key log holds too much, or no key.
    #[error("{}: {reason}", path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// What is expected.
        reason: &'static str,
    },
    /// A file is no capture, or is damaged.
    #[error("{}: {reason}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl KeyLogError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| KeyLogError::File { path: path.to_owned(), error }
    }
}
