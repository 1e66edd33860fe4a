//! Collects the problems of one scenario and finds their places in the text.

use std::cell::RefCell;
use std::ops::Range;

use crate::error::{Place, Problem, ProblemKind, ScenarioError};
use crate::fault::{Details, Fault};
use crate::origin::Origin;
use crate::overrides::Override;
use crate::text::{printable, without_mark};

/// Maximum number of problems that are stored, each with its line.
const MOST: usize = 200;

/// Problems found so far in one scenario.
pub(crate) struct Report<'a> {
    file: &'a str,
    text: &'a str,
    overrides: &'a [Override],
    homes: fn(&str) -> Option<String>,
    found: RefCell<Vec<(Origin, String, Fault)>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str, overrides: &'a [Override]) -> Self {
        Report { file, text, overrides, homes: |_| None, found: RefCell::default() }
    }

    /// Sets the function that returns the sections to which a key belongs.
    pub(crate) fn with_homes(mut self, homes: fn(&str) -> Option<String>) -> Self {
        self.homes = homes;
        self
    }

    pub(crate) fn home_of(&self, key: &str) -> Option<String> {
        (self.homes)(key)
    }

    pub(crate) fn add(&self, origin: &Origin, key: &str, fault: Fault) {
        let origin = fault.0.at.as_ref().unwrap_or(origin).clone();
        self.found.borrow_mut().push((origin, key.to_owned(), fault));
    }

    /// Reports a missing key.
    pub(crate) fn missing(&self, origin: &Origin, key: &str, expected: String) {
        let fault = Fault::new(ProblemKind::MissingKey).with_expected(expected);
        self.add(origin, key, fault);
    }

    /// Returns the value, unless there are problems.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, ScenarioError> {
        let mut found = self.found.take();
        match value {
            Some(value) if found.is_empty() => return Ok(value),
            _ => {}
        }
        found.sort_by_key(|(origin, ..)| match origin {
            Origin::Assumed => (0, 0),
            Origin::File(span) => (1, span.start),
            Origin::Override(index) => (2, *index),
        });
        found.truncate(MOST);
        let problem = |(origin, key, fault): (Origin, String, Fault)| {
            let message = fault.message(&key);
            let Details { kind, expected, found, nearest, help, .. } = *fault.0;
            let (file, place) = (self.file.to_owned(), self.place(&origin));
            Problem { file, place, kind, key, message, expected, found, nearest, help }
        };
        Err(ScenarioError::Invalid(found.into_iter().map(problem).collect()))
    }

    fn place(&self, origin: &Origin) -> Place {
        match origin {
            Origin::File(span) => place_in(self.text, span),
            Origin::Override(index) => self.overrides.get(*index).map_or(Place::WholeFile, |set| {
                Place::Override { option: set.option, text: printable(&set.to_string()) }
            }),
            Origin::Assumed => Place::WholeFile,
        }
    }
}

/// Returns the line and column of a range of bytes. The part on the first line is underlined.
fn place_in(text: &str, span: &Range<usize>) -> Place {
    let skipped = text.len() - without_mark(text).len();
    let text = without_mark(text);
    let start = floor_char(text, span.start.saturating_sub(skipped));
    let end = floor_char(text, span.end.saturating_sub(skipped)).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    let line = text[line_start..line_end].trim_end_matches('\r');
    Place::At {
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        width: text[start..end.min(line_end)].trim_end().chars().count().max(1),
        text: line.to_owned(),
    }
}

/// Returns the last character boundary at or before a byte index.
fn floor_char(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, span: Range<usize>) -> (usize, usize, usize) {
        match place_in(text, &span) {
            Place::At { line, column, width, .. } => (line, column, width),
            other => panic!("no place in the text: {other:?}"),
        }
    }

    #[test]
    fn places_count_characters_not_bytes() {
        assert_eq!(at("a\nüx = 1\n", 4..5), (2, 2, 1));
        assert_eq!(at("\u{feff}x = 1\r\n", 3..4), (1, 1, 1));
        assert_eq!(at("x = '''\na'''", 4..12), (1, 5, 3));
        assert_eq!(at("x =", 3..9), (1, 4, 1));
        assert_eq!(at("", 0..0), (1, 1, 1));
    }
}
