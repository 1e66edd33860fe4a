//! Keys that a key log is told, remembered so that they can be looked for where they must not be.

use std::fmt::Write as _;
use std::sync::Mutex;

use anabranch_keying::{Direction, KeyLog, LoggedKeys};

/// What keys are combined with where they are remembered, so that memory holds none for that reason.
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
    /// The first bytes of each, veiled.
    ///
    /// # Panics
    /// If a key is shorter.
    pub fn beginnings(&self) -> Vec<u64> {
        let seen = self.0.lock().expect("nobody panics");
        let beginnings = seen.iter().map(|bytes| bytes.first_chunk().copied().expect("no key is as short"));
        beginnings.map(u64::from_le_bytes).collect()
    }

    /// As hexadecimal digits, and as numbers in a list.
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

    /// Whether a text shows one of them, however it breaks lists.
    pub fn are_shown_in(&self, text: &str) -> bool {
        let text = text.to_lowercase().replace(char::is_whitespace, "");
        self.printed().iter().any(|key| text.contains(key))
    }
}

/// How often bytes hold one of these beginnings.
pub fn count_in(bytes: &[u8], veiled: &[u64]) -> usize {
    let veil = u64::from_le_bytes([VEIL; 8]);
    let windows = bytes.windows(8).filter_map(<[u8]>::first_chunk::<8>);
    windows.filter(|bytes| veiled.contains(&(u64::from_le_bytes(**bytes) ^ veil))).count()
}
