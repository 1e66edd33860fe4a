//! Record of the keys that a key log receives, to search for them in places that must not contain them.

use std::fmt::Write as _;
use std::sync::Mutex;

use anabranch_keying::{Direction, KeyLog, LoggedKeys};

/// Value that is combined with the recorded keys, so that the record itself does not contain any.
const VEIL: u8 = 0x5A;

/// Keys and initialization vectors, veiled.
#[derive(Debug, Default)]
pub struct SeenKeys(Mutex<Vec<Vec<u8>>>);

impl KeyLog for SeenKeys {
    fn log(&self, _: Direction, keys: &LoggedKeys<'_>) {
        let veiled = |bytes: &[u8]| bytes.iter().map(|byte| byte ^ VEIL).collect();
        let parts = [keys.key, keys.sequence_number_key, keys.iv];
        self.0.lock().expect("nobody panics").extend(parts.map(veiled));
    }
}

impl SeenKeys {
    /// Returns the first bytes of each key, veiled.
    ///
    /// # Panics
    /// Panics if a key is shorter.
    pub fn beginnings(&self) -> Vec<u64> {
        let seen = self.0.lock().expect("nobody panics");
        let beginnings = seen.iter().map(|bytes| bytes.first_chunk().copied().expect("no key is as short"));
        beginnings.map(u64::from_le_bytes).collect()
    }

    /// Returns the keys as hexadecimal digits and as lists of numbers.
    fn printed(&self) -> Vec<String> {
        let mut all = Vec::new();
        for beginning in self.beginnings() {
            let bytes = beginning.to_le_bytes().map(|byte| byte ^ VEIL);
            let hex = bytes.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
            all.push(format!("{bytes:?}").replace(['[', ']', ' '], ""));
            all.push(hex);
        }
        all
    }

    /// Returns `true` if a text contains one of the keys, with any line breaks in lists.
    pub fn are_shown_in(&self, text: &str) -> bool {
        let text = text.to_lowercase().replace(char::is_whitespace, "");
        self.printed().iter().any(|key| text.contains(key))
    }
}

/// Returns the number of occurrences of these beginnings in the bytes.
pub fn count_in(bytes: &[u8], veiled: &[u64]) -> usize {
    let veil = u64::from_le_bytes([VEIL; 8]);
    let windows = bytes.windows(8).filter_map(<[u8]>::first_chunk::<8>);
    windows.filter(|bytes| veiled.contains(&(u64::from_le_bytes(**bytes) ^ veil))).count()
}
