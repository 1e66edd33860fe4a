//! A CSV file of a trace, row by row.

use std::fs::File;
use std::io::{BufReader, Read as _, Take};
use std::path::Path;

use csv::ByteRecord;

use crate::explain::ExplainError;

/// Columns of a file. The first one is the time.
pub(super) type Columns = [&'static str];

/// Reader of a file with its current row.
pub(super) struct Table {
    rows: csv::Reader<BufReader<Take<File>>>,
    file: String,
    columns: &'static Columns,
    /// Index of each column in a row.
    places: Vec<usize>,
    row: ByteRecord,
    /// Time of the current row in nanoseconds; `None` after the last row.
    time: Option<u64>,
    until: u64,
}

/// Readable part of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Bytes up to the end of the last complete row.
    pub(super) bytes: u64,
    /// Time in nanoseconds after which rows are ignored.
    pub(super) until: u64,
}

impl Table {
    /// Opens a file and reads its first row.
    pub(super) fn open(
        path: &Path,
        columns: &'static Columns,
        limit: Limit,
        version: &str,
    ) -> Result<Self, ExplainError> {
        let file = path.display().to_string();
        let opened =
            File::open(path).map_err(|error| ExplainError::Unreadable { file: file.clone(), error })?;
        let mut rows = csv::Reader::from_reader(BufReader::new(opened.take(limit.bytes)));
        let header =
            rows.byte_headers().map_err(|error| ExplainError::Table { file: file.clone(), error })?.clone();
        let place = |&column: &&'static str| {
            header.iter().position(|name| name == column.as_bytes()).ok_or_else(|| ExplainError::Column {
                file: file.clone(),
                column,
                version: version.to_owned(),
            })
        };
        let places = columns.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
        let row = ByteRecord::new();
        let mut table = Table { rows, file, columns, places, row, time: Some(0), until: limit.until };
        table.advance()?;
        Ok(table)
    }

    /// Returns the time of the current row.
    pub(super) fn time(&self) -> Option<u64> {
        self.time
    }

    /// Reads the next row.
    pub(super) fn advance(&mut self) -> Result<(), ExplainError> {
        let before = self.time;
        let more = self
            .rows
            .read_byte_record(&mut self.row)
            .map_err(|error| ExplainError::Table { file: self.file.clone(), error })?;
        if !more {
            self.time = None;
            return Ok(());
        }
        let time = nanoseconds(self.bytes(0)).ok_or_else(|| self.wrong(0, "seconds such as 1.500000000"))?;
        if before.is_some_and(|before| time < before) {
            return Err(self.wrong(0, "a time that is not before that of the row above"));
        }
        self.time = (time <= self.until).then_some(time);
        Ok(())
    }

    fn bytes(&self, column: usize) -> &[u8] {
        // The reader rejects rows whose length differs from the header's.
        self.row.get(self.places[column]).unwrap_or_default()
    }

    /// Returns the text of a column of the current row.
    pub(super) fn text(&self, column: usize) -> Result<&str, ExplainError> {
        std::str::from_utf8(self.bytes(column)).map_err(|_| self.wrong(column, "text in UTF-8"))
    }

    /// Returns a whole number.
    pub(super) fn number(&self, column: usize) -> Result<u64, ExplainError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.wrong(column, "a whole number"))
    }

    /// Returns a number, or `None` for an empty field.
    pub(super) fn decimal(&self, column: usize) -> Result<Option<f64>, ExplainError> {
        match self.text(column)? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| self.wrong(column, "a number")),
        }
    }

    /// Returns the index in `names` of a column's value, or `None` for an empty field.
    pub(super) fn one_of(
        &self,
        column: usize,
        names: &[String],
        expected: &'static str,
    ) -> Result<Option<usize>, ExplainError> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Ok(None);
        }
        let at = names.iter().position(|name| name == text);
        at.map(Some).ok_or_else(|| self.wrong(column, expected))
    }

    /// Returns the error for a column of the current row.
    pub(super) fn wrong(&self, column: usize, expected: &'static str) -> ExplainError {
        ExplainError::Row {
            file: self.file.clone(),
            line: self.row.position().map_or(0, csv::Position::line),
            column: self.columns[column],
            expected,
            found: String::from_utf8_lossy(self.bytes(column)).into_owned(),
        }
    }
}

/// Converts seconds with up to nine decimals to nanoseconds, exactly.
pub(super) fn nanoseconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 9 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        let read = ["0.180336001", "200", "7.5", "1.0000000001", "-1", "1.-5", ""];
        let expected =
            [Some(180_336_001), Some(200_000_000_000), Some(7_500_000_000), None, None, None, None];
        assert_eq!(read.map(|text| nanoseconds(text.as_bytes())), expected);
    }
}
