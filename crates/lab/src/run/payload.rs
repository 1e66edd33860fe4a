//! What flows send.

use std::path::Path;

use anabranch_sim::Seeds;
use bytes::Bytes;

use crate::run::RunError;

/// A file's content.
pub(crate) fn read_file(folder: &Path, path: &Path) -> Result<Bytes, RunError> {
    let full = folder.join(path);
    std::fs::read(&full)
        .map(Bytes::from)
        .map_err(|error| RunError::File { path: full.display().to_string(), error })
}

/// Random bytes that depend on the seed and the flow's name only.
pub(crate) fn random_bytes(seeds: &Seeds, flow: &str, size: usize) -> Bytes {
    let mut stream = seeds.stream(&["payload", flow]);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&stream.next_u64().to_le_bytes());
    }
    bytes.truncate(size);
    Bytes::from(bytes)
}
