//! The keys of a log, and which record was sealed with which.

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

/// Bytes of a key log. Each key takes some 200.
const LONGEST_FILE: u64 = 64 << 20;

/// Keys that are tried on one record: one key that opens nothing costs each record an attempt with every number.
const MOST_KEYS: usize = 10_000;

/// Records carry 16 bits of their number.
const NUMBERS: u64 = 1 << 16;

/// How often these may have run over before the capture begins. AES-GCM seals 2^24.5 records with one key, and 362 times 2^16
/// are more; with ChaCha20-Poly1305 a capture may begin too late.
const MOST_TURNS: u64 = 362;

/// Who sends: addresses and ports on the way, and the verification tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) tag: u32,
}

#[derive(Debug)]
struct Key {
    cipher: Box<dyn RecordCipher>,
    /// The highest number so far.
    highest: Option<u64>,
}

/// All keys of a log.
#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Key>,
    /// Which key opened the latest record of a flow with these bits of the epoch.
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
        // Some editors put a byte order mark in front.
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
            _ => Err(wrong("more than 10,000 keys: leave in those of the capture")),
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The chunks of a record, if one of the keys sealed it.
    pub(crate) fn open(&mut self, flow: Flow, header: DtlsRecordHeader, record: &[u8]) -> Option<Vec<u8>> {
        let place = (flow, header.epoch_bits());
        let likely = self.latest.get(&place).copied();
        let others = (0..self.keys.len()).filter(|at| Some(*at) != likely);
        // New keys come later in the log, and most likely these are they.
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
            // Opening destroys what it cannot open.
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

/// The number with these 16 low bits that is nearest to another one: a capture has records of several paths, in any order.
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
