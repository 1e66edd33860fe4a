//! Table that is written row by row.

use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anabranch_core::time::Time;
use thiserror::Error;

/// Reason for which a file of a trace could not be written.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct TraceError {
    /// Path of the file.
    pub path: PathBuf,
    /// Error of the system.
    pub error: std::io::Error,
}

/// Writer of a CSV file. Rows are written deep within a run, so the first error is kept until the file is flushed.
pub struct CsvTable {
    path: PathBuf,
    file: BufWriter<File>,
    /// Row that is being written.
    row: String,
    error: Option<std::io::Error>,
}

/// A row that is written field by field into the buffer of its table, since traces have millions of rows.
pub struct Row<'a>(&'a mut String);

impl Row<'_> {
    /// Writes a text field, quoted if necessary.
    pub fn word(&mut self, word: &str) -> &mut Self {
        if word.contains(['"', ',', '\n', '\r']) {
            self.0.push('"');
            self.0.push_str(&word.replace('"', "\"\""));
            self.0.push('"');
        } else {
            self.0.push_str(word);
        }
        self.end()
    }

    /// Writes a decimal number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        // A number has at most 20 digits.
        let (mut digits, mut at, mut left) = ([0_u8; 20], 20, number);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.0.extend(digits[at..].iter().map(|digit| char::from(*digit)));
        self.end()
    }

    /// Writes a time in the format of all files.
    pub fn seconds(&mut self, time: Time) -> &mut Self {
        write_seconds(self.0, time);
        self.end()
    }

    /// Writes text without quotes and commas.
    pub fn plain(&mut self, text: Arguments<'_>) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(text);
        self.end()
    }

    /// Writes an empty field.
    pub fn empty(&mut self) -> &mut Self {
        self.end()
    }

    fn end(&mut self) -> &mut Self {
        self.0.push(',');
        self
    }
}

impl CsvTable {
    /// Begins the file `name` with a row of column names. Creates the folder if it is missing.
    ///
    /// # Errors
    /// Returns [`TraceError`] if it cannot be written.
    pub fn create(folder: &Path, name: &str, columns: &[&str]) -> Result<Self, TraceError> {
        let path = folder.join(name);
        let wrong = |error: std::io::Error| TraceError { path: path.clone(), error };
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let file = File::create(&path).map_err(wrong)?;
        let mut table = CsvTable { path, file: BufWriter::new(file), row: String::new(), error: None };
        table.write(|row| {
            for column in columns {
                row.word(column);
            }
        });
        Ok(table)
    }

    /// Writes a row of text fields.
    pub fn row<const N: usize>(&mut self, row: &[String; N]) {
        self.write(|fields| {
            for field in row {
                fields.word(field);
            }
        });
    }

    /// Writes a row of at least two fields.
    pub fn write(&mut self, fields: impl FnOnce(&mut Row<'_>)) {
        self.row.clear();
        fields(&mut Row(&mut self.row));
        self.row.pop();
        self.row.push('\n');
        if let Err(error) = self.file.write_all(self.row.as_bytes()) {
            self.error.get_or_insert(error);
        }
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// Returns the first error of a write since the previous flush.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        let flushed = match self.error.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        };
        flushed.map_err(|error| TraceError { path: self.path.clone(), error })
    }
}

/// Returns a time in the format of all files.
pub(crate) fn seconds(now: Time) -> String {
    let mut text = String::new();
    write_seconds(&mut text, now);
    text
}

fn write_seconds(text: &mut String, now: Time) {
    /// Time up to which a float is nearer to its nanosecond than to any other.
    const EXACT_NS: u64 = 1_000_000_000_000_000;
    const SECOND_NS: u64 = 1_000_000_000;
    let nanos = now.as_nanos();
    // Writing to a string cannot fail.
    let _ = if nanos < EXACT_NS {
        write!(text, "{}.{:09}", nanos / SECOND_NS, nanos % SECOND_NS)
    } else {
        write!(text, "{:.9}", now.as_secs_f64())
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_equal_those_of_a_csv_library() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut table = CsvTable::create(folder.path(), "t.csv", &["a", "b, c"]).expect("a table");
        let words = ["", "plain", "a,b", "say \"so\"", "two\nlines", "back\rslash\\"];
        let numbers = [0, 9, 10, 1_234_567_890, u64::MAX];
        let mut expected = csv::Writer::from_writer(Vec::new());
        expected.write_record(["a", "b, c"]).expect("a row");
        for word in words {
            table.row(&[word.to_owned(), "x".to_owned()]);
            expected.write_record([word, "x"]).expect("a row");
        }
        for number in numbers {
            table.write(|row| {
                row.number(number).plain(format_args!("{:.3}", 0.5)).empty();
            });
        }
        table.flush().expect("it can be written");
        let written = std::fs::read_to_string(folder.path().join("t.csv")).expect("it is there");
        let mut lines = String::from_utf8(expected.into_inner().expect("all of it")).expect("text");
        for number in numbers {
            lines += &format!("{number},0.500,\n");
        }
        assert_eq!(written, lines);
    }

    #[test]
    fn times_are_those_of_floats() {
        let mut nanos = 1_u64;
        for step in 0..20_000_u64 {
            nanos = nanos.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            for shift in [14, 20, 30, 40, 50, 63] {
                let time = Time::from_nanos(nanos >> shift);
                assert_eq!(seconds(time), format!("{:.9}", time.as_secs_f64()));
            }
        }
    }
}
