//! Content that flows send.

use std::cell::RefCell;
use std::path::Path;

use anabranch_sim::Seeds;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::run::RunError;

/// Sizes of generated content that is kept for the next run of a thread. Smaller content takes no time to generate, and larger
/// content takes too much memory.
const KEPT_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=128 << 20;

/// Distance, in bytes, of the stored states of a hash.
const HASH_STEP_BYTES: usize = 1 << 20;

thread_local! {
    /// Content of this thread's latest run. Runs that differ only in scheme, network or size send the same content or a part of it.
    static KEPT: RefCell<Option<SyntheticData>> = const { RefCell::new(None) };
}

struct SyntheticData {
    seeds: Seeds,
    flow: String,
    content: Bytes,
    /// States of SHA-256 after each [`HASH_STEP_BYTES`], from zero on, as far as they were needed.
    hashed: Vec<Sha256>,
}

impl SyntheticData {
    fn is_of(&self, seeds: &Seeds, flow: &str) -> bool {
        self.seeds == *seeds && self.flow == flow
    }

    /// Returns the hash of the first bytes.
    fn sha256(&mut self, bytes: usize) -> [u8; 32] {
        let steps = bytes / HASH_STEP_BYTES;
        while self.hashed.len() <= steps {
            let next = match self.hashed.last() {
                None => Sha256::new(),
                Some(hash) => {
                    let begin = (self.hashed.len() - 1) * HASH_STEP_BYTES;
                    hash.clone().chain_update(&self.content[begin..begin + HASH_STEP_BYTES])
                }
            };
            self.hashed.push(next);
        }
        self.hashed[steps]
            .clone()
            .chain_update(&self.content[steps * HASH_STEP_BYTES..bytes])
            .finalize()
            .into()
    }
}

/// Returns the content of a file.
pub(crate) fn read_file(folder: &Path, path: &Path) -> Result<Bytes, RunError> {
    let full = folder.join(path);
    std::fs::read(&full)
        .map(Bytes::from)
        .map_err(|error| RunError::File { path: full.display().to_string(), error })
}

/// Returns random bytes that depend only on the seed and the flow's name. A content is a prefix of longer ones.
pub(crate) fn random_bytes(seeds: &Seeds, flow: &str, size: usize) -> Bytes {
    if !KEPT_BYTES.contains(&size) {
        return drawn(seeds, flow, size);
    }
    KEPT.with_borrow_mut(|kept| {
        if let Some(made) = kept.as_ref().filter(|made| made.is_of(seeds, flow) && made.content.len() >= size)
        {
            return made.content.slice(..size);
        }
        // Memory may not suffice for two contents.
        *kept = None;
        let content = drawn(seeds, flow, size);
        let made = SyntheticData {
            seeds: *seeds,
            flow: flow.to_owned(),
            content: content.clone(),
            hashed: Vec::new(),
        };
        *kept = Some(made);
        content
    })
}

/// Returns the hash of a prefix of a content. The hash of this thread's generated content is computed once only.
pub(crate) fn sha256(content: &[u8]) -> [u8; 32] {
    let kept = KEPT.with_borrow_mut(|kept| {
        // Slices that begin at the same address are the same while both exist.
        kept.as_mut()
            .filter(|made| made.content.as_ptr() == content.as_ptr() && made.content.len() >= content.len())
            .map(|made| made.sha256(content.len()))
    });
    kept.unwrap_or_else(|| Sha256::digest(content).into())
}

fn drawn(seeds: &Seeds, flow: &str, size: usize) -> Bytes {
    let mut stream = seeds.stream(&["payload", flow]);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&stream.next_u64().to_le_bytes());
    }
    bytes.truncate(size);
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_that_is_kept_is_the_one_that_is_drawn() {
        const MIB: usize = 1 << 20;
        let (one, other) = (Seeds::new(1, 0), Seeds::new(2, 0));
        for (seeds, flow, size) in [
            (one, "a", 3 * MIB + 5),
            (one, "a", 2 * MIB),
            (one, "a", 3 * MIB + 5),
            (one, "a", 100_000),
            (one, "a", 4 * MIB),
            (one, "b", MIB + 1),
            (other, "b", MIB - 1),
            (other, "b", 10),
            (one, "a", 2 * MIB),
        ] {
            let content = random_bytes(&seeds, flow, size);
            assert_eq!(content, drawn(&seeds, flow, size));
            for end in [size, 0, size / 2] {
                let part = &content[..end];
                assert_eq!(sha256(part), <[u8; 32]>::from(Sha256::digest(part)));
            }
            assert_eq!(sha256(&content[1..]), <[u8; 32]>::from(Sha256::digest(&content[1..])));
        }
    }
}
