//! Opens, reads and hashes files on its own thread.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::sync::{PoisonError, mpsc};

use tokio::sync::mpsc::UnboundedSender;

use super::walk::{Origin, Pipe, describe};
use crate::block::{BLOCK_BYTES, Hash, block_at};
use crate::protocol::{BlockMessages, FileTime, Kind, read_block};
use crate::scarcity::ScarcityRetries;
use crate::store::from_system_time;

/// Request to the reader.
pub(super) enum Request {
    /// Open a file that was found in this state, or report that it has changed.
    Open { id: u32, origin: Origin, kind: Kind, changed: FileTime },
    /// Read a block of a file that is open.
    Block { id: u32, index: u64, block_len: u32 },
    /// Hash a block of a file that is open.
    Hash { id: u32, index: u64, block_len: u32 },
    /// Check that the file is still in the state in which it was found.
    Check { id: u32, kind: Kind, changed: FileTime },
    /// Read the next block of a pipe.
    Next { id: u32, index: u64, from: Pipe },
    /// Close a file.
    Close { id: u32 },
}

/// Reply of the reader.
pub(super) struct Reply {
    pub(super) id: u32,
    /// Set if a block was requested.
    pub(super) is_block: bool,
    pub(super) what: ReplyKind,
}

pub(super) enum ReplyKind {
    Opened,
    Block {
        index: u64,
        block: BlockMessages,
    },
    /// A block of a pipe, with its length, and a flag for the last one.
    Next {
        index: u64,
        block: BlockMessages,
        bytes: u32,
        is_last: bool,
    },
    Hashed(Hash),
    Checked,
    /// The file was closed.
    Closed,
    /// The file has changed, with its current state if it can be determined.
    Changed(Option<(Kind, FileTime)>),
    Failed(io::Error),
}

/// Starts a reader; it ends when all senders of requests are dropped.
pub(super) fn start(replies: UnboundedSender<Reply>) -> mpsc::Sender<Request> {
    let (requests, asked) = mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut files = Files::new();
        for request in asked {
            // A pipe is read on a separate thread, because it may have no data for a long time.
            if let Request::Next { id, index, from } = request {
                let replies = replies.clone();
                runtime.spawn_blocking(move || {
                    let what = next(id, index, &from).unwrap_or_else(ReplyKind::Failed);
                    // The sender may have been dropped.
                    let _ = replies.send(Reply { id, is_block: true, what });
                });
                continue;
            }
            // The channel needs no bound: each request has one reply, and the sender bounds the requests.
            if replies.send(answer(&mut files, request)).is_err() {
                return;
            }
        }
    });
    requests
}

/// Open files, by offer.
type Files = BTreeMap<u32, (File, Origin)>;

fn answer(files: &mut Files, request: Request) -> Reply {
    let is_block = matches!(request, Request::Block { .. } | Request::Hash { .. } | Request::Next { .. });
    let (id, what) = match request {
        Request::Open { id, origin, kind, changed } => (id, open(files, id, &origin, &kind, changed)),
        Request::Block { id, index, block_len } => {
            let block = held(files, id).and_then(|file| read(file, id, index, block_len));
            (id, block.map(|block| ReplyKind::Block { index, block }))
        }
        Request::Hash { id, index, block_len } => {
            (id, held(files, id).and_then(|file| hash(file, index, block_len)).map(ReplyKind::Hashed))
        }
        Request::Check { id, kind, changed } => {
            let same = held(files, id)
                .and_then(|file| Ok(is_same(file, &kind, changed)? && ends_at_size(file, &kind)?));
            (id, same.map(|same| if same { ReplyKind::Checked } else { ReplyKind::Changed(None) }))
        }
        // Another thread replies to this request.
        Request::Next { id, index, from } => (id, next(id, index, &from)),
        Request::Close { id } => {
            files.remove(&id);
            (id, Ok(ReplyKind::Closed))
        }
    };
    let what = what.unwrap_or_else(|error| match error.kind() {
        // The file has become shorter.
        ErrorKind::UnexpectedEof => ReplyKind::Changed(None),
        _ => ReplyKind::Failed(error),
    });
    let what = match what {
        // The old file is closed before the new one is opened.
        ReplyKind::Changed(None) => match files.remove(&id).map(|(_, origin)| current_state(&origin)) {
            Some(Ok(now)) => ReplyKind::Changed(now),
            Some(Err(error)) => ReplyKind::Failed(error),
            None => ReplyKind::Changed(None),
        },
        what => what,
    };
    Reply { id, is_block, what }
}

fn held(files: &Files, id: u32) -> io::Result<&File> {
    files.get(&id).map(|(file, _)| file).ok_or_else(|| ErrorKind::NotFound.into())
}

fn open(
    files: &mut Files,
    id: u32,
    origin: &Origin,
    kind: &Kind,
    changed: FileTime,
) -> io::Result<ReplyKind> {
    let Origin::File { folder, path } = origin else { return Ok(ReplyKind::Opened) };
    let file = folder.open_file(path)?;
    let is_same = is_same(&file, kind, changed)?;
    files.insert(id, (file, origin.clone()));
    Ok(if is_same { ReplyKind::Opened } else { ReplyKind::Changed(None) })
}

fn is_same(file: &File, kind: &Kind, changed: FileTime) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let is_size = matches!(kind, Kind::File { size_bytes, .. } if *size_bytes == metadata.len());
    Ok(is_size && from_system_time(metadata.modified()?) == changed)
}

/// Returns `true` if nothing can be read behind the size that a file reports.
fn ends_at_size(mut file: &File, kind: &Kind) -> io::Result<bool> {
    let Kind::File { size_bytes, .. } = kind else { return Ok(true) };
    file.seek(SeekFrom::Start(*size_bytes))?;
    Ok(file.read(&mut [0])? == 0)
}

/// Returns the present state of a file.
fn current_state(origin: &Origin) -> io::Result<Option<(Kind, FileTime)>> {
    let Origin::File { folder, path } = origin else { return Ok(None) };
    let file = ScarcityRetries::default().retry(|| folder.open_file(path))?;
    let metadata = file.metadata()?;
    Ok(Some((describe(&file, metadata.len())?, from_system_time(metadata.modified()?))))
}

fn read(mut file: &File, id: u32, index: u64, block_len: u32) -> io::Result<BlockMessages> {
    file.seek(SeekFrom::Start(block_at(index)))?;
    read_block(id, index, block_len, |buffer| file.read_exact(buffer))
}

fn hash(mut file: &File, index: u64, block_len: u32) -> io::Result<Hash> {
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(block_at(index)))?;
    file.take(u64::from(block_len)).read_to_end(&mut content)?;
    if content.len() < block_len as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Hash::of(&content))
}

/// Reads until a block is full or the pipe ends.
fn next(id: u32, index: u64, from: &Pipe) -> io::Result<ReplyKind> {
    let mut content = Vec::new();
    let mut from = from.lock().unwrap_or_else(PoisonError::into_inner);
    (&mut *from).take(u64::from(BLOCK_BYTES)).read_to_end(&mut content)?;
    let bytes = u32::try_from(content.len()).unwrap_or(BLOCK_BYTES);
    let mut rest = &content[..];
    let block = read_block(id, index, bytes, |buffer| rest.read_exact(buffer))?;
    Ok(ReplyKind::Next { index, block, bytes, is_last: bytes < BLOCK_BYTES })
}
