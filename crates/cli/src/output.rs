//! Standard output, whose reader may go away at any time.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Context;

/// A blank at which [`labelled`] does not break the line.
pub(crate) const NO_BREAK: &str = "\u{a0}";
/// Columns used where the terminal does not say how many it has.
const USUAL_WIDTH: usize = 100;
/// Longer lines of text are hard to read.
const WIDEST_TEXT: usize = 110;

/// Whether somebody still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Everything was written.
    Listening,
    /// The other end of the pipe is closed, as `head` does once it has enough.
    Gone,
}

/// Writes text to standard output and flushes it.
pub(crate) fn print(text: &str) -> anyhow::Result<Reader> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Listening),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error).context("standard output"),
    }
}

/// Columns of the terminal that standard output goes to, if it goes to one.
pub(crate) fn terminal_width() -> Option<usize> {
    io::stdout().is_terminal().then(textwrap::termwidth)
}

/// Columns to wrap text at.
pub(crate) fn text_width() -> usize {
    terminal_width().unwrap_or(USUAL_WIDTH).clamp(40, WIDEST_TEXT)
}

/// Text below a label, wrapped; lines after the first are indented to stand below the first one's text.
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
    fn wrapped_text_stays_in_its_column() {
        let text = labelled("goodput", &"word ".repeat(40), 10);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 1 && lines[0].starts_with("goodput   word"));
        assert!(lines[1..].iter().all(|line| line.starts_with("          word")));
    }
}
