//! Key log files of associations, and decryption of captures with them.
//!
//! [`KeyLogFile`] records keys while associations run. [`decrypt()`] later reads a capture and writes it as it would be without
//! protection.

mod capture;
mod decrypt;
mod error;
mod file;
mod keys;
mod line;
mod link;

pub use decrypt::{Decrypted, decrypt};
pub use error::KeyLogError;
pub use file::KeyLogFile;

/// Fuzz target: reads any bytes as the lines of a key log.
#[cfg(feature = "fuzzing")]
pub fn fuzz_lines(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    text.lines().for_each(line::fuzz);
}
