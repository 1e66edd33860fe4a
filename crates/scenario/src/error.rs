//! Errors of scenarios, with place, cause and remedy.

use std::fmt;

/// Problems printed in full; a file with more of them is usually not a scenario at all.
const SHOWN: usize = 25;

/// Characters of a source line shown around the place of a problem.
const LINE_WIDTH: usize = 120;

/// Why a scenario could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be opened or read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// The file, as it was named by the caller.
        file: String,
        /// Error of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// The text is not a scenario. Never empty, in the order of the file, overrides last, the first 200.
    #[error("{}", Listing(.0))]
    Invalid(Vec<Problem>),
}

impl ScenarioError {
    /// The problems found in the text; none if the file could not be read at all.
    pub fn problems(&self) -> &[Problem] {
        match self {
            ScenarioError::Unreadable { .. } => &[],
            ScenarioError::Invalid(problems) => problems,
        }
    }
}

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The scenario file, as it was named by the caller.
    pub file: String,
    /// Place of the wrong text.
    pub place: Place,
    /// Kind of problem.
    pub kind: ProblemKind,
    /// Dotted path of the key concerned, with list elements by name, as `--set` would write it. Empty for the file.
    pub key: String,
    /// One line saying what is wrong.
    pub message: String,
    /// Expected form.
    pub expected: Option<String>,
    /// Text or value found.
    pub found: Option<String>,
    /// The known word closest to the one that was written.
    pub nearest: Option<String>,
    /// Remedy, if it does not follow from the above.
    pub help: Option<String>,
}

/// Place of the text of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the file.
    At {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Characters to underline, at least 1.
        width: usize,
        /// The whole line.
        text: String,
    },
    /// Nowhere in particular: something is missing from the file.
    WholeFile,
    /// In an override: `key=value`.
    Override {
        /// The option: `--set`, or `--sweep` for one of its values. Without one, messages name the file instead.
        option: &'static str,
        /// The override as it was written.
        text: String,
    },
}

/// Sorts of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The text is not TOML.
    Syntax,
    /// A key that means nothing there.
    UnknownKey,
    /// A key that has to be given.
    MissingKey,
    /// A value of the wrong type, without its unit, or that is not one of the words allowed.
    InvalidValue,
    /// A value that is well formed but too small or too large.
    OutOfRange,
    /// A path or link that does not exist.
    UnknownName,
    /// A name given twice, or a value twice in a list.
    Duplicate,
    /// Values that are right one by one but do not go together.
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
    /// Expectation, finding, nearest word and help in one line.
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

/// The part of a line to show and the number of its characters before the place `at`. Control characters, which
/// would break the alignment or the terminal, are shown as blanks.
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

/// Prints problems one below the other, the first [`SHOWN`] of them.
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
