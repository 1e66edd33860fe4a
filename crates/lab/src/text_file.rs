//! Text files that users write and edit.

use std::io;
use std::path::Path;

/// Reads a text file without the byte order mark that some editors write at its beginning.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|text| anabranch_scenario::without_mark(&text).to_owned())
}
