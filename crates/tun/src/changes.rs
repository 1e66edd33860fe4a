//! Changes of the system that outlive the process, with a record from which the next process reverts them after a crash.
//!
//! Each change is written to the record before it is applied. Addresses and routes of a device need no record, because the kernel
//! removes them with the device.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::system::{Error, run};

/// Folder of the settings of the network, which no line of a record leaves.
const SETTINGS: &str = "/proc/sys/net/";

/// First line of a file that a change has replaced.
const MARK: &str = "# Written by anabranch tun. Its end restores the previous content.";

/// Change of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Routing rule: words for `ip`, `-4` or `-6`, and words behind `rule add`.
    Rule { family: char, words: String },
    /// Table of nftables, with the commands that create it.
    Nft { table: String, script: String },
    /// Value of a file in `/proc/sys`.
    Sysctl { path: PathBuf, value: String },
    /// Content of a file such as `/etc/resolv.conf`, whose previous content is stored.
    File { path: PathBuf, content: String },
}

impl Change {
    fn apply(&self) -> Result<(), Error> {
        match self {
            Change::Rule { family, words } => run("ip", &format!("-{family} rule add {words}"), None),
            Change::Nft { script, .. } => run("nft", "-f -", Some(script)),
            Change::Sysctl { path, value } => write(path, value),
            Change::File { path, content } => write(path, &format!("{MARK}\n{content}")),
        }
    }

    /// Returns the line of the record that reverts the change.
    fn record(&self) -> Result<String, Error> {
        Ok(match self {
            Change::Rule { family, words } => format!("rule {family} {words}"),
            Change::Nft { table, .. } => format!("nft {table}"),
            Change::Sysctl { path, .. } => format!("sysctl {} {}", read(path)?.trim(), path.display()),
            Change::File { path, .. } => format!("file {} {}", hex(&read(path)?), path.display()),
        })
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::of(format!("reading {}", path.display()), &error))
}

fn write(path: &Path, content: &str) -> Result<(), Error> {
    fs::write(path, content).map_err(|error| Error::of(format!("writing {}", path.display()), &error))
}

fn hex(text: &str) -> String {
    // An empty field would be no field.
    text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() + "."
}

fn from_hex(digits: &str) -> Option<String> {
    let digits = digits.strip_suffix('.')?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    String::from_utf8((0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?).ok()
}

/// Reverts the change of a line of a record. A change that is reverted already is no error.
fn revert(line: &str) {
    let (kind, rest) = line.split_once(' ').unwrap_or_default();
    let _ = match (kind, rest.split_once(' ')) {
        ("rule", Some((family, words))) => run("ip", &format!("-{family} rule del {words}"), None),
        ("nft", None) => run("nft", &format!("delete table inet {rest}"), None),
        ("sysctl", Some((value, path))) if path.starts_with(SETTINGS) && !path.contains("..") => {
            write(Path::new(path), value)
        }
        ("file", Some((previous, path))) => restore(Path::new(path), previous),
        _ => Ok(()),
    };
}

/// Writes the previous content of a file, unless another program has replaced ours.
fn restore(path: &Path, previous: &str) -> Result<(), Error> {
    match from_hex(previous) {
        Some(previous) if read(path)?.starts_with(MARK) => write(path, &previous),
        _ => Ok(()),
    }
}

/// Applied changes. They are reverted when this is dropped.
#[derive(Debug)]
pub struct Changes {
    record: File,
    lines: Vec<String>,
}

/// Error: a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another process uses it.
    #[error("another process with this role is running")]
    InUse,
    /// The file belongs to another user, whose commands a privileged process must not execute.
    #[error("the record of changes belongs to another user; remove it, and revert its changes by hand")]
    NotOwned,
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
}

impl Changes {
    /// Opens a record, and reverts what a process that crashed has left. Returns the number of these changes, too.
    ///
    /// # Errors
    /// Returns [`RecordError::InUse`] while another process has the record open, and [`RecordError::NotOwned`] for a file of another
    /// user.
    pub fn open(path: &Path) -> Result<(Self, usize), RecordError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let mut record =
            options.mode(0o600).read(true).write(true).create(true).truncate(false).open(path)?;
        record.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => RecordError::InUse,
            TryLockError::Error(error) => error.into(),
        })?;
        if record.metadata()?.uid() != fs::metadata("/proc/self")?.uid() {
            return Err(RecordError::NotOwned);
        }
        let mut text = String::new();
        record.read_to_string(&mut text)?;
        // A line that was not written completely belongs to a change that was not applied.
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let changes = Changes { record, lines: whole.lines().map(str::to_owned).collect() };
        let left = changes.lines.len();
        let mut changes = changes;
        changes.revert();
        Ok((changes, left))
    }

    /// Applies a change.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<(), Error> {
        let line = change.record()?;
        let written = writeln!(self.record, "{line}").and_then(|()| self.record.sync_data());
        written.map_err(|error| Error::of("writing the record of changes".to_owned(), &error))?;
        self.lines.push(line);
        change.apply()
    }

    /// Reverts all changes, the latest one first.
    pub fn revert(&mut self) {
        while let Some(line) = self.lines.pop() {
            revert(&line);
        }
        // A record that stays is reverted again, which does no harm.
        let _ = self.record.set_len(0).and_then(|()| self.record.rewind());
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.revert();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        folder: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
            fs::write(bench.file(), "nameserver 192.0.2.1\n").expect("written");
            bench
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("resolv.conf")
        }

        fn record(&self) -> PathBuf {
            self.folder.path().join("state/record")
        }

        fn content(&self) -> String {
            fs::read_to_string(self.file()).expect("text")
        }

        fn change(&self) -> Change {
            Change::File { path: self.file(), content: "nameserver 192.0.2.2\n".to_owned() }
        }
    }

    #[test]
    fn changes_are_reverted_at_the_end() {
        let bench = Bench::new();
        let (mut changes, left) = Changes::open(&bench.record()).expect("a record");
        changes.apply(&bench.change()).expect("applied");
        assert!(left == 0 && bench.content().ends_with("192.0.2.2\n"));
        drop(changes);
        assert_eq!(bench.content(), "nameserver 192.0.2.1\n");
        assert_eq!(fs::read_to_string(bench.record()).expect("text"), "");
    }

    #[test]
    fn changes_of_a_crashed_process_are_reverted_by_the_next() {
        let bench = Bench::new();
        let (mut changes, _) = Changes::open(&bench.record()).expect("a record");
        changes.apply(&bench.change()).expect("applied");
        let record = fs::read_to_string(bench.record()).expect("text");
        drop(changes);
        bench.change().apply().expect("applied");
        fs::write(bench.record(), record + "file 00").expect("written");
        let (changes, left) = Changes::open(&bench.record()).expect("a record");
        assert_eq!((left, bench.content().as_str()), (1, "nameserver 192.0.2.1\n"));
        assert!(matches!(Changes::open(&bench.record()), Err(RecordError::InUse)));
        drop(changes);
    }

    #[test]
    fn file_that_another_program_has_replaced_stays() {
        let bench = Bench::new();
        let (mut changes, _) = Changes::open(&bench.record()).expect("a record");
        changes.apply(&bench.change()).expect("applied");
        fs::write(bench.file(), "nameserver 192.0.2.3\n").expect("written");
        drop(changes);
        assert_eq!(bench.content(), "nameserver 192.0.2.3\n");
    }

    #[test]
    fn damaged_lines_are_skipped() {
        let bench = Bench::new();
        fs::create_dir_all(bench.folder.path().join("state")).expect("a folder");
        let path = bench.file();
        let lines = format!("\nfile\nfile 0g. {0}\nfile 0. {0}\nfile 00 {0}\nother x y\n", path.display());
        fs::write(bench.record(), lines).expect("written");
        fs::write(&path, MARK).expect("written");
        assert_eq!(Changes::open(&bench.record()).expect("a record").1, 6);
        assert_eq!(bench.content(), MARK);
    }

    #[test]
    fn record_of_another_user_is_refused_unread() {
        let bench = Bench::new();
        let (mut changes, _) = Changes::open(&bench.record()).expect("a record");
        changes.apply(&bench.change()).expect("applied");
        let record = fs::read_to_string(bench.record()).expect("text");
        drop(changes);
        bench.change().apply().expect("applied");
        fs::write(bench.record(), record).expect("written");
        if std::os::unix::fs::chown(bench.record(), Some(65_534), None).is_err() {
            // Only root gives files to other users.
            return;
        }
        assert!(matches!(Changes::open(&bench.record()), Err(RecordError::NotOwned)));
        assert!(bench.content().starts_with(MARK), "nothing is reverted");
    }

    #[test]
    fn lines_change_no_file_outside_the_settings_of_the_network() {
        let bench = Bench::new();
        let before = bench.content();
        for path in [
            bench.file(),
            Path::new(SETTINGS).join("../../..").join(bench.file().strip_prefix("/").expect("absolute")),
        ] {
            revert(&format!("sysctl 1 {}", path.display()));
            assert_eq!(bench.content(), before);
        }
    }
}
