//! Output: results on standard output, notices and progress on standard error.
//!
//! A failed write never panics and never ends a transfer. A result that could not be written is reported when the command ends; a
//! notice that could not be written is dropped. The lints `print_stdout` and `print_stderr` forbid the macros, which panic.

#![allow(clippy::disallowed_methods, reason = "this module is the one that writes")]

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::builder::StyledStr;
use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};
use textwrap::WordSplitter;

/// Blank at which [`labelled`] does not break the line.
pub(crate) const NO_BREAK: &str = "\u{a0}";
/// Columns that are assumed if the terminal does not report its width.
const USUAL_WIDTH: usize = 100;
/// Maximum width of text. Longer lines are hard to read.
const WIDEST_TEXT: usize = 110;

/// First failed write of a result in this command. A closed pipe is no failure.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// State of the reader of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Everything was written.
    Listening,
    /// The pipe is closed, as by `head` once it has enough lines, or writing failed.
    Gone,
}

/// Writes a result to standard output and flushes it. A failure is kept for [`failure`].
pub(crate) fn print(text: &str) -> Reader {
    let mut out = io::stdout().lock();
    reader_after(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Like [`print()`], for the help: with colours if standard output is a terminal.
pub(crate) fn print_styled(text: &StyledStr) -> Reader {
    if io::stdout().is_terminal() { print(&text.ansi().to_string()) } else { print(&text.to_string()) }
}

/// Returns standard output for the content of a file. The transfer reports a failed write.
pub(crate) fn content() -> io::Stdout {
    io::stdout()
}

fn reader_after(written: io::Result<()>) -> Reader {
    let Err(error) = written else { return Reader::Listening };
    if error.kind() != ErrorKind::BrokenPipe {
        FAILURE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
    Reader::Gone
}

/// Returns and clears the first failed write of a result.
pub(crate) fn failure() -> Option<io::Error> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Clears failures of an earlier command in this process.
pub(crate) fn forget_failure() {
    drop(failure());
}

/// Writes a line to standard error. On a terminal it is broken at blanks.
pub(crate) fn notice(text: impl Display) {
    let text = text.to_string();
    let shown = if is_err_terminal() { wrapped_at_blanks(&text, textwrap::termwidth()) } else { text };
    notices(&format!("{shown}\n"));
}

/// Breaks lines that are too long at blanks, and never within a word such as a key or a path.
///
/// A line that is indented by four blanks is a command. A backslash at each break keeps it one command when it is copied.
fn wrapped_at_blanks(text: &str, columns: usize) -> String {
    let broken = text.split('\n').map(|line| {
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        let rest = format!("{indent}  ");
        let is_command = indent.len() >= 4;
        let options = textwrap::Options::new(columns - if is_command { 2 } else { 0 })
            .subsequent_indent(&rest)
            .break_words(false)
            .word_splitter(WordSplitter::NoHyphenation);
        match line.chars().count() <= columns {
            true => line.to_owned(),
            false => textwrap::wrap(line, options).join(if is_command { " \\\n" } else { "\n" }),
        }
    });
    broken.collect::<Vec<_>>().join("\n")
}

/// Writes lines to standard error.
pub(crate) fn notices(lines: &str) {
    let mut err = io::stderr().lock();
    // There is no other channel to report a failure.
    let _ = err.write_all(lines.as_bytes()).and_then(|()| err.flush());
}

/// Writes a question to standard error. The user types the answer behind it.
pub(crate) fn prompt(text: &str) {
    notices(text);
}

/// Returns `true` if standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns standard output for a screen, if it is a terminal and keys can be read from standard input.
pub(crate) fn screen() -> Option<io::Stdout> {
    (io::stdout().is_terminal() && io::stdin().is_terminal()).then(io::stdout)
}

/// Returns `true` if standard error is a terminal, so that progress can be drawn there.
pub(crate) fn is_err_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns a target on standard error for progress bars, redrawn at most this often.
pub(crate) fn err_target(redraws_per_s: u8) -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(ErrTerminal::default()), redraws_per_s)
}

/// Terminal on standard error that ignores errors: indicatif panics if a line cannot be drawn, for example after a hang-up.
#[derive(Debug)]
struct ErrTerminal(Mutex<Term>);

impl Default for ErrTerminal {
    fn default() -> Self {
        ErrTerminal(Mutex::new(Term::buffered_stderr()))
    }
}

impl ErrTerminal {
    fn term(&self) -> MutexGuard<'_, Term> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ignoring_errors(&self, draw: impl FnOnce(&Term) -> io::Result<()>) -> io::Result<()> {
        let mut term = self.term();
        if draw(&term).is_err() {
            // The buffer still contains the failed frame, and would grow with each further one.
            *term = Term::buffered_stderr();
        }
        Ok(())
    }
}

impl TermLike for ErrTerminal {
    fn width(&self) -> u16 {
        self.term().size().1
    }

    fn height(&self) -> u16 {
        self.term().size().0
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.ignoring_errors(|term| term.move_cursor_up(lines))
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.ignoring_errors(|term| term.move_cursor_down(lines))
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.ignoring_errors(|term| term.move_cursor_right(columns))
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.ignoring_errors(|term| term.move_cursor_left(columns))
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.ignoring_errors(|term| term.write_line(line))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.ignoring_errors(|term| term.write_str(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.ignoring_errors(Term::clear_line)
    }

    fn flush(&self) -> io::Result<()> {
        self.ignoring_errors(Term::flush)
    }
}

/// Returns the columns of the terminal on standard output, if it is one.
pub(crate) fn terminal_width() -> Option<usize> {
    io::stdout().is_terminal().then(textwrap::termwidth)
}

/// Returns the columns at which text is wrapped.
pub(crate) fn text_width() -> usize {
    terminal_width().unwrap_or(USUAL_WIDTH).clamp(40, WIDEST_TEXT)
}

/// Returns a number with its noun, in the singular for one.
pub(crate) fn count(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Returns wrapped text behind a label. Further lines are indented to the column of the text.
pub(crate) fn labelled(label: &str, text: &str, label_width: usize) -> String {
    let first = format!("{label:label_width$}");
    let rest = " ".repeat(label_width);
    let options = textwrap::Options::new(text_width()).initial_indent(&first).subsequent_indent(&rest);
    textwrap::fill(text, options).replace(NO_BREAK, " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_is_broken_at_blanks_and_never_within_a_word() {
        let key = "SHA256:Ojc93P6OOc9yYJtqlYZb8o6IymCnHjz78zEuq3TdGrM";
        let text = format!("new host example.org:9899: its key {key} was added to /a/b-c/known_hosts");
        for columns in 20..120 {
            let broken = wrapped_at_blanks(&text, columns);
            assert_eq!(broken.split_whitespace().collect::<Vec<_>>(), text.split(' ').collect::<Vec<_>>());
            let fits = |line: &str| line.len() <= columns || line.trim_start().split(' ').count() == 1;
            assert!(broken.lines().all(fits), "{columns}:\n{broken}");
        }
    }

    #[test]
    fn command_in_a_notice_stays_one_command_where_it_is_broken() {
        let text = "or everyone:\n    anabranch bench -s --listen 192.0.2.1 --insecure --from 192.0.2.0/24";
        let expected = "or everyone:\n    anabranch bench -s --listen \\\n      192.0.2.1 --insecure --from \\\n      192.0.2.0/24";
        assert_eq!(wrapped_at_blanks(text, 40), expected);
        assert_eq!(wrapped_at_blanks(text, 80), text);
    }

    #[test]
    fn wrapped_text_stays_in_its_column() {
        let text = labelled("goodput", &"word ".repeat(40), 10);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 1 && lines[0].starts_with("goodput   word"));
        assert!(lines[1..].iter().all(|line| line.starts_with("          word")));
    }
}
