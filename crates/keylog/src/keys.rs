//! Keys of a log, and the search for the key of a record.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

use anabranch_core::protection::RecordCipher;
use anabranch_wire::{DtlsRecordHeader, dtls_content};
use zeroize::Zeroizing;

use crate::error::KeyLogError;
use crate::line;

/// Maximum size of a key log, in bytes. Each key takes about 200 bytes.
const LONGEST_FILE: u64 = 64 << 20;

/// Maximum number of keys tried on one record. An unused key costs one attempt per candidate sequence number for each record.
const MOST_KEYS: usize = 10_000;

/// Number of distinct values of the sequence number field of a record, which contains the 16 low bits of the number.
const NUMBERS: u64 = 1 << 16;

/// Maximum number of wraps of the 16-bit sequence number before the capture begins. AES-GCM seals at most 2^24.5 records with one
/// key, fewer than 362 times 2^16. ChaCha20-Poly1305 has no such limit, so records of a capture that begins after more wraps are
/// not decrypted.
const MOST_TURNS: u64 = 362;

/// Sender of packets: its addresses on the path and the verification tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) tag: u32,
}

#[derive(Debug)]
struct Key {
    cipher: Box<dyn RecordCipher>,
    /// Highest sequence number opened so far.
    highest: Option<u64>,
}

/// Keys of a log.
#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Key>,
    /// Index of the key that opened the latest record of a flow with these epoch bits.
    latest: BTreeMap<(Flow, u8), usize>,
}

impl KeyRing {
    /// Reads a key log.
    pub(crate) fn load(path: &Path) -> Result<Self, KeyLogError> {
        let wrong = |reason| KeyLogError::Keys { path: path.to_owned(), reason };
        let mut text = Zeroizing::new(String::new());
        let file = File::open(path).map_err(KeyLogError::file(path))?;
        file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(KeyLogError::file(path))?;
        if text.len() as u64 > LONGEST_FILE {
            return Err(wrong("longer than 64 MiB, so it is not read; is it a key log?"));
        }
        // Some editors write a byte order mark at the start.
        let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
        let mut keys = Vec::new();
        for (at, line) in lines.enumerate() {
            let wrong = |reason| KeyLogError::Line { path: path.to_owned(), line: at + 1, reason };
            keys.extend(
                line::read(line).map_err(wrong)?.map(|keys| Key { cipher: keys.cipher(), highest: None }),
            );
        }
        match keys.len() {
            0 => Err(wrong("no keys of associations: was it written with --keylog?")),
            1..=MOST_KEYS => Ok(KeyRing { keys, latest: BTreeMap::new() }),
            _ => Err(wrong("more than 10,000 keys: remove those that the capture does not need")),
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the chunks of a record, or `None` if none of the keys opens it.
    pub(crate) fn open(&mut self, flow: Flow, header: DtlsRecordHeader, record: &[u8]) -> Option<Vec<u8>> {
        let place = (flow, header.epoch_bits());
        let likely = self.latest.get(&place).copied();
        let others = (0..self.keys.len()).filter(|at| Some(*at) != likely);
        // Tries the latest keys first, because new keys are appended to the log.
        for at in likely.into_iter().chain(others.rev()) {
            if let Some(chunks) = self.keys[at].open(header, record) {
                self.latest.insert(place, at);
                return Some(chunks);
            }
        }
        None
    }
}

impl Key {
    fn open(&mut self, header: DtlsRecordHeader, record: &[u8]) -> Option<Vec<u8>> {
        let plain = header.masked(self.cipher.mask(record.first_chunk()?));
        let low = u64::from(plain.sequence_number);
        let candidates = match self.highest {
            Some(highest) => nearest(highest, low).map_or(0..=0, |number| number..=number),
            None => low..=low + NUMBERS * MOST_TURNS,
        };
        let mut space = Vec::with_capacity(record.len());
        for number in candidates.step_by(NUMBERS as usize) {
            space.clear();
            // A failed attempt destroys the ciphertext, so each attempt starts from a copy.
            space.extend_from_slice(record);
            if let Ok(content) = self.cipher.open(number, &plain.to_wire(), &mut space) {
                let chunks = dtls_content(content)?.to_vec();
                self.highest = self.highest.max(Some(number));
                return Some(chunks);
            }
        }
        None
    }
}

/// Returns the number with these 16 low bits that is nearest to `highest`. Records of several paths are captured in any order.
fn nearest(highest: u64, low: u64) -> Option<u64> {
    let turn = highest & !(NUMBERS - 1);
    let numbers = [turn.checked_sub(NUMBERS), Some(turn), turn.checked_add(NUMBERS)];
    numbers.into_iter().flatten().map(|turn| turn | low).min_by_key(|number| number.abs_diff(highest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_number_is_taken_on_either_side() {
        assert_eq!(nearest(10, 65_530), Some(65_530));
        assert_eq!(nearest(65_536 + 10, 65_530), Some(65_530));
        assert_eq!(nearest(65_530, 10), Some(65_546));
        assert_eq!(nearest(3 * 65_536, 0), Some(3 * 65_536));
    }
}
