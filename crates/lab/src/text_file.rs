//! Text files that users write and edit.

use std::io;
use std::path::Path;

/// Reads a text file without the byte order mark that some editors write at its beginning.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|text| without_mark(&text).to_owned())
}

/// Returns `text` without a byte order mark at its beginning.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
