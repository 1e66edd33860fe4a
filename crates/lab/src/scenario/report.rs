//! Gathers the problems of one scenario and finds their places in the text.

use std::cell::RefCell;
use std::ops::Range;

use super::document::{Origin, printable};
use super::error::{Place, Problem, ProblemKind, ScenarioError};
use super::overrides::Override;

/// Problems kept of a text; each one keeps its line, and with this many nobody reads on.
const MOST: usize = 200;

/// What is wrong with a value.
#[derive(Clone, Debug)]
pub(super) struct Fault(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    kind: ProblemKind,
    /// Where it is, if that is more exact than the place of the whole value.
    at: Option<Origin>,
    /// Without it the kind of problem and the key make the message.
    message: Option<String>,
    expected: Option<String>,
    found: Option<String>,
    nearest: Option<String>,
    help: Option<String>,
}

impl Fault {
    pub(super) fn new(kind: ProblemKind) -> Self {
        let details =
            Details { kind, at: None, message: None, expected: None, found: None, nearest: None, help: None };
        Fault(Box::new(details))
    }

    /// A value that is not what it should be.
    pub(super) fn invalid(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Fault::new(ProblemKind::InvalidValue).expecting(expected).finding(found)
    }

    /// A value outside its range.
    pub(super) fn out_of_range(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Fault::new(ProblemKind::OutOfRange).expecting(expected).finding(found)
    }

    /// Anything else, with a message of its own and what to do about it.
    pub(super) fn because(kind: ProblemKind, message: impl Into<String>, help: impl Into<String>) -> Self {
        Fault::new(kind).saying(message).helping(help)
    }

    /// A word that is not among the known ones.
    pub(super) fn unknown(kind: ProblemKind, message: String, word: &str, known: &[&str]) -> Self {
        let fault = Fault::new(kind).saying(message).near(word, known.iter().copied());
        match known {
            [] => fault.helping("there are none"),
            [one] => fault.expecting(format!("`{one}`")),
            many => fault.expecting(format!("one of: {}", many.join(", "))),
        }
    }

    pub(super) fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    pub(super) fn has_proposal(&self) -> bool {
        self.0.nearest.is_some()
    }

    pub(super) fn at(mut self, origin: &Origin) -> Self {
        self.0.at = Some(origin.clone());
        self
    }

    pub(super) fn saying(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into());
        self
    }

    pub(super) fn expecting(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    pub(super) fn finding(mut self, found: impl Into<String>) -> Self {
        self.0.found = Some(found.into());
        self
    }

    pub(super) fn helping(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Proposes the known word closest to the one that was found, if one is close.
    pub(super) fn near<'w>(self, word: &str, known: impl IntoIterator<Item = &'w str>) -> Self {
        let nearest = super::nearest(word, known).map(str::to_owned);
        self.proposing(nearest)
    }

    pub(super) fn proposing(mut self, nearest: Option<String>) -> Self {
        self.0.nearest = nearest;
        self
    }

    fn message(&self, key: &str) -> String {
        let plain = match self.0.kind {
            ProblemKind::OutOfRange => format!("`{key}` is out of range"),
            ProblemKind::MissingKey => format!("missing key `{key}`"),
            ProblemKind::UnknownKey => format!("unknown key `{key}`"),
            _ => format!("invalid value for `{key}`"),
        };
        self.0.message.clone().unwrap_or(plain)
    }
}

/// The problems found so far in one scenario.
pub(super) struct Report<'a> {
    file: &'a str,
    text: &'a str,
    overrides: &'a [Override],
    found: RefCell<Vec<(Origin, String, Fault)>>,
}

impl<'a> Report<'a> {
    pub(super) fn new(file: &'a str, text: &'a str, overrides: &'a [Override]) -> Self {
        Report { file, text, overrides, found: RefCell::default() }
    }

    pub(super) fn add(&self, origin: &Origin, key: &str, fault: Fault) {
        let origin = fault.0.at.as_ref().unwrap_or(origin).clone();
        self.found.borrow_mut().push((origin, key.to_owned(), fault));
    }

    /// A key that has to be there.
    pub(super) fn missing(&self, origin: &Origin, key: &str, expected: String) {
        let fault = Fault::new(ProblemKind::MissingKey).expecting(expected);
        self.add(origin, key, fault);
    }

    /// The value read, if no problem was found.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, ScenarioError> {
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

/// The line and column of a range of bytes, of which the part on the first line is underlined.
fn place_in(text: &str, span: &Range<usize>) -> Place {
    let text = text.strip_prefix('\u{feff}').map_or((text, 0), |rest| (rest, text.len() - rest.len()));
    let (text, skipped) = text;
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

/// The last character boundary at or before a byte index.
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
