//! Keys of associations in a file, and captures that are decrypted with it.
//!
//! [`KeyLogFile`] is told keys while associations run. [`decrypt()`] later reads a capture of them, and writes it as it would have
//! been without protection.

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

/// The body of a fuzz target: any bytes, read as the lines of a key log.
#[cfg(feature = "fuzzing")]
pub fn fuzz_lines(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    text.lines().for_each(line::fuzz);
}
