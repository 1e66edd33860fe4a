//! Errors of scenarios, with place, cause and remedy.

use std::fmt;

/// Maximum number of problems that are printed. A file with more of them is usually not a scenario at all.
const SHOWN: usize = 25;

/// Number of characters of a source line that are shown around the place of a problem.
const LINE_WIDTH: usize = 120;

/// Reason for which a scenario could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be opened or read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// Path of the file, as the caller named it.
        file: String,
        /// Error of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// The text is not a scenario. The list has 1 to 200 problems, in the order of the file, with overrides last.
    #[error("{}", Listing(.0))]
    Invalid(Vec<Problem>),
}

impl ScenarioError {
    /// Returns the problems of the text. The list is empty if the file could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            ScenarioError::Unreadable { .. } => &[],
            ScenarioError::Invalid(problems) => problems,
        }
    }
}

/// One error of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the scenario file, as the caller named it.
    pub file: String,
    /// Place of the wrong text.
    pub place: Place,
    /// Kind of problem.
    pub kind: ProblemKind,
    /// Dotted path of the key, with list elements by name, in the form of `--set`. The path is empty for a problem of the whole
    /// file.
    pub key: String,
    /// Description of the error in one line.
    pub message: String,
    /// Expected form.
    pub expected: Option<String>,
    /// Text or value found.
    pub found: Option<String>,
    /// Known word closest to the given one.
    pub nearest: Option<String>,
    /// Remedy, if it does not follow from the other fields.
    pub help: Option<String>,
}

/// Place of the text of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Place in the file.
    At {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Characters to underline, at least 1.
        width: usize,
        /// Text of the whole line.
        text: String,
    },
    /// The file as a whole: a part is missing.
    WholeFile,
    /// Place in an override: `key=value`.
    Override {
        /// Option: `--set`, or `--sweep` for one of its values. If it is empty, messages name the file instead.
        option: &'static str,
        /// Text of the override.
        text: String,
    },
}

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The text is not TOML.
    Syntax,
    /// The key is unknown at this place.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// The value has the wrong type, lacks its unit, or is not one of the permitted words.
    InvalidValue,
    /// The value is too small or too large.
    OutOfRange,
    /// A path or link does not exist.
    UnknownName,
    /// A name occurs twice, or a value twice in a list.
    Duplicate,
    /// Values are valid alone, but not together.
    Conflict,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, message, advice) = (&self.file, &self.message, self.advice());
        match &self.place {
            Place::At { line, column, width, text } => {
                writeln!(f, "{file}:{line}:{column}: {message}")?;
                let (shown, before) = window(text, column.saturating_sub(1));
                let room = shown.chars().count().saturating_sub(before).max(1);
                writeln!(f, "{line:>5} | {shown}")?;
                write!(f, "      | {}{} {advice}", " ".repeat(before), "^".repeat((*width).clamp(1, room)))
            }
            Place::WholeFile => write!(f, "{file}: {message}\n      | {advice}"),
            Place::Override { option: "", text } => write!(f, "{file}: {text}: {message}\n      | {advice}"),
            Place::Override { option, text } => write!(f, "{option} {text}: {message}\n      | {advice}"),
        }
    }
}

impl Problem {
    /// Returns expectation, finding, nearest word and help in one line.
    fn advice(&self) -> String {
        let mut parts = Vec::new();
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => parts.push(format!("expected {expected}, found {found}")),
            (Some(expected), None) => parts.push(format!("expected {expected}")),
            (None, Some(found)) => parts.push(format!("found {found}")),
            (None, None) => {}
        }
        parts.extend(self.nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?")));
        parts.extend(self.help.clone());
        parts.join("; ")
    }
}

/// Returns the part of a line to show, and the number of its characters before the place `at`. Control characters are replaced by
/// blanks, because they would break the alignment or the terminal.
fn window(line: &str, at: usize) -> (String, usize) {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let length = line.chars().count();
    if length <= LINE_WIDTH {
        return (line.chars().map(printable).collect(), at);
    }
    let first = at.saturating_sub(LINE_WIDTH / 3).min(length - LINE_WIDTH);
    let (head, tail) = (if first > 0 { "..." } else { "" }, first + LINE_WIDTH < length);
    let middle: String = line.chars().skip(first).take(LINE_WIDTH).map(printable).collect();
    (format!("{head}{middle}{}", if tail { "..." } else { "" }), at - first + head.len())
}

/// Prints the first [`SHOWN`] problems.
struct Listing<'a>(&'a [Problem]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            1 => write!(f, "\nand 1 more problem"),
            more => write!(f, "\nand {more} more problems"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_to_the_part_around_the_place() {
        let line = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let (shown, before) = window(&line, 500);
        assert!(shown.len() < 140);
        assert_eq!(shown.chars().nth(before), Some('x'));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(window("\tx\u{1b}[0m", 1), (" x [0m".to_owned(), 1));
    }
}
