//! Text files with one entry per line: reads entries, and changes them without touching other lines.

use std::path::Path;

use crate::error::IdentityError;
use crate::private_file::{self, Others};

/// Maximum size of a file in bytes: about ten thousand entries.
const LONGEST_FILE: u64 = 1 << 20;
/// Maximum length of a line in bytes, which bounds the text examined for an error.
const LONGEST_LINE: usize = 1024;

/// Reads the entries of a file with their line numbers. A missing file has none. Empty lines and lines that begin with `#` are
/// comments.
pub(crate) fn load<T>(
    path: &Path,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(usize, T)>, IdentityError> {
    match private_file::read(path, Others::MayRead, LONGEST_FILE)? {
        Some(text) => parse(path, &text, read),
        None => Ok(Vec::new()),
    }
}

/// Parses the entries of a text.
pub(crate) fn parse<T>(
    path: &Path,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(usize, T)>, IdentityError> {
    let entries = text.lines().enumerate().filter(|(_, line)| is_entry(line));
    let entries = entries.map(|(at, line)| {
        let number = at + 1;
        let wrong = |reason| IdentityError::Line { path: path.to_owned(), line: number, reason };
        if line.len() > LONGEST_LINE {
            return Err(wrong(format!("a line has at most {LONGEST_LINE} bytes")));
        }
        read(line.trim()).map(|entry| (number, entry)).map_err(wrong)
    });
    entries.collect()
}

fn is_entry(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with('#')
}

/// Appends a line, unless `is_there` finds it among the current entries.
pub(crate) fn append<T>(
    path: &Path,
    line: &str,
    read: impl Fn(&str) -> Result<T, String>,
    is_there: impl FnOnce(&[(usize, T)]) -> Result<bool, IdentityError>,
) -> Result<(), IdentityError> {
    private_file::update(path, LONGEST_FILE, |before| {
        if is_there(&parse(path, before, read)?)? {
            return Ok(None);
        }
        // The last line may lack its line break.
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        Ok(Some(format!("{before}{gap}{line}\n")))
    })
}

/// Removes the lines of all entries that `goes` selects, and returns their number. Other lines stay unchanged.
pub(crate) fn remove<T>(
    path: &Path,
    read: impl Fn(&str) -> Result<T, String>,
    goes: impl Fn(&T) -> bool,
) -> Result<usize, IdentityError> {
    let mut removed = 0;
    private_file::update(path, LONGEST_FILE, |before| {
        let entries = parse(path, before, read)?;
        let gone: Vec<usize> =
            entries.iter().filter(|(_, entry)| goes(entry)).map(|(line, _)| *line).collect();
        removed = gone.len();
        let kept =
            before.split_inclusive('\n').enumerate().filter(|(at, _)| gone.binary_search(&(at + 1)).is_err());
        Ok((removed > 0).then(|| kept.map(|(_, line)| line).collect()))
    })?;
    Ok(removed)
}
