//! Writes canonical TOML: every key on its own line below its header, and nested tables in one line.

use std::fmt::{Display, Write as _};

use toml_writer::ToTomlValue as _;

/// Writer of keys and headers.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    /// Header of the current table, without brackets.
    above: String,
    inline: bool,
    /// Keys of an inline table so far.
    keys: Vec<String>,
}

impl Writer {
    /// Returns a writer of one table in one line, which records the keys.
    pub(crate) fn inline() -> Writer {
        Writer { inline: true, ..Writer::default() }
    }

    /// Returns the text, and the keys of an inline table.
    pub(crate) fn finish(self) -> (String, Vec<String>) {
        (self.text, self.keys)
    }

    /// Writes a key with a value in TOML.
    pub(crate) fn raw(&mut self, key: &str, value: impl Display) {
        let (before, after) = match (self.inline, self.text.is_empty()) {
            (false, _) => ("", "\n"),
            (true, true) => ("", ""),
            (true, false) => (", ", ""),
        };
        if self.inline {
            self.keys.push(key.to_owned());
        }
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{before}{key} = {value}{after}");
    }

    /// Returns `true` if the writer writes a table in one line.
    pub(crate) fn is_inline(&self) -> bool {
        self.inline
    }

    /// Writes a table of the document under `[name]`, or as a list element under `[[name]]`.
    pub(crate) fn table(&mut self, name: &str, element: bool, write: impl FnOnce(&mut Writer)) {
        let header = if self.above.is_empty() { name.to_owned() } else { format!("{}.{name}", self.above) };
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let (open, close) = if element { ("[[", "]]") } else { ("[", "]") };
        let _ = writeln!(self.text, "{gap}{open}{header}{close}");
        let above = std::mem::replace(&mut self.above, header);
        write(self);
        self.above = above;
    }
}

/// Returns text as a TOML string.
pub(crate) fn quote(text: &str) -> String {
    text.to_toml_value()
}
