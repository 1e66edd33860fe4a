//! Files that are read like pipes, because their size differs from the amount of data that can be read from them.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::scarcity::ScarcityRetries;
use crate::store::Folder;

/// A file that is open while it is read.
pub(super) struct UnsizedFile {
    place: FilePlace,
    state: State,
}

/// Place of a file that is read like a pipe.
pub(super) enum FilePlace {
    Inside { folder: Folder, path: String },
    Path(PathBuf),
}

enum State {
    NotOpened,
    Open(File),
    AtEnd,
}

impl UnsizedFile {
    pub(super) fn new(place: FilePlace) -> Self {
        UnsizedFile { place, state: State::NotOpened }
    }

    fn open(&self) -> io::Result<File> {
        ScarcityRetries::default().retry(|| match &self.place {
            FilePlace::Inside { folder, path } => folder.open_file(path),
            FilePlace::Path(path) => File::open(path),
        })
    }
}

impl Read for UnsizedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::NotOpened = self.state {
            self.state = State::Open(self.open()?);
        }
        let State::Open(file) = &mut self.state else { return Ok(0) };
        let read = file.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.state = State::AtEnd;
        }
        Ok(read)
    }
}

/// Returns `true` if a file with the size 0 has content, as files in `/proc` do.
pub(super) fn has_content(file: &File) -> io::Result<bool> {
    // Some files of this kind block until an event occurs.
    #[cfg(unix)]
    rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::NONBLOCK)?;
    let mut file = file;
    loop {
        match file.read(&mut [0]) {
            Ok(read) => return Ok(read > 0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Returns `true` if a path that the user has named is read as a pipe is: pipes, devices, and files that no path leads to, such
/// as those that a shell passes as `/dev/fd/63` or `/dev/stdin`.
pub(super) fn is_read_as_pipe(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    if metadata.is_dir() {
        return false;
    }
    !metadata.is_file() || path.canonicalize().and_then(|real| real.metadata()).is_err()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn pipes_and_unlinked_files_are_read_as_pipes_and_named_files_are_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        std::fs::write(&path, "content").expect("written");
        assert!(!is_read_as_pipe(&path) && !is_read_as_pipe(dir.path()));
        assert!(!is_read_as_pipe(&dir.path().join("nothing")));
        assert!(is_read_as_pipe(Path::new("/dev/null")));
        let unlinked = File::open(&path).expect("open");
        std::fs::remove_file(&path).expect("removed");
        let by_descriptor = PathBuf::from(format!("/dev/fd/{}", unlinked.as_raw_fd()));
        assert!(is_read_as_pipe(&by_descriptor));
        let mut content = String::new();
        UnsizedFile::new(FilePlace::Path(by_descriptor)).read_to_string(&mut content).expect("read");
        assert_eq!(content, "content");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn empty_files_have_no_content_and_those_of_proc_do() {
        let empty = tempfile::tempfile().expect("a file");
        assert!(!has_content(&empty).expect("read"));
        assert!(has_content(&File::open("/proc/self/status").expect("procfs")).expect("read"));
    }
}
