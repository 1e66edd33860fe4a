//! Lines that show a running transfer, as a function of its state and the size of the terminal.
//!
//! The first line has a bar and figures, the second one the count of files and the current name, and each path has a row. A line
//! that does not fit loses its least important columns first, and its names are cut in the middle.

use std::time::Duration;

use anabranch_transfer::Totals;

use super::figures::{amount, clock, part, rate};
use super::paths::PathLine;
use crate::columns::{elide_middle, fitting, pad, width};
use crate::output::count;

/// Blanks between columns.
const GAP: &str = "  ";
/// Range of widths of the bar.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 10..=40;
/// Minimum width of the current name.
const LEAST_NAME: usize = 8;
/// Lines above the rows of paths, and the line of the cursor.
const OTHER_LINES: usize = 3;
/// Longest remaining time that is shown.
const LONGEST_LEFT_S: f64 = 1e7;

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// State of a transfer at one time.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) totals: Totals,
    /// Smoothed rate of user data.
    pub(super) bytes_per_s: f64,
    pub(super) phase: Phase,
    /// Escaped name of the current file.
    pub(super) file: Option<String>,
    pub(super) paths: Vec<PathLine>,
    /// Set if this side sends blocks.
    pub(super) sends: bool,
}

/// Activity of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Data arrived recently.
    Moving,
    /// No progress for this time.
    Stalled(Duration),
    /// The association was lost this long ago, and the transfer connects again.
    Disconnected(Duration),
    /// The sender of a one-time code waits.
    Waiting(Waiting),
}

/// Step of the receiver for which the sender of a one-time code waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// A receiver connects and proves the code.
    Receiver,
    /// The receiver accepts the list of files.
    Answer,
    /// The receiver connects again.
    Return,
}

impl Waiting {
    fn text(self) -> &'static str {
        match self {
            Waiting::Receiver => "waiting for the receiver",
            Waiting::Answer => "waiting for the answer of the receiver",
            Waiting::Return => "waiting for the receiver to connect again",
        }
    }
}

impl Snapshot {
    /// Returns the lines for a terminal, of at most its width.
    pub(super) fn lines(&self, size: Size) -> Vec<String> {
        if let Some(step) = self.first_step() {
            return vec![elide_middle(step.text(), size.columns)];
        }
        let mut lines = vec![self.overall(size.columns), self.files(size.columns)];
        lines.extend(self.rows(size.columns, size.rows.saturating_sub(OTHER_LINES)));
        lines
    }

    /// Returns the step of the receiver that has to precede any transfer.
    fn first_step(&self) -> Option<Waiting> {
        match self.phase {
            Phase::Waiting(step) if self.totals.found_files == 0 => Some(step),
            _ => None,
        }
    }

    /// Returns the lines for a file or a pipe, without a limit of width.
    pub(super) fn plain_lines(&self) -> Vec<String> {
        if let Some(step) = self.first_step() {
            return vec![step.text().to_owned()];
        }
        let figures = self.figures().into_iter().map(|(_, text)| text);
        let name = self.file.clone().into_iter();
        let first = figures.chain([self.file_count()]).chain(name).collect::<Vec<_>>().join(GAP);
        std::iter::once(first).chain(self.rows(usize::MAX, usize::MAX)).collect()
    }

    /// Returns the seconds that remain at the current rate, if they can be estimated.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        let all = self.totals.all_bytes()?;
        let left = seconds(all.saturating_sub(settled_bytes(&self.totals)), self.bytes_per_s);
        (self.phase == Phase::Moving && left < LONGEST_LEFT_S).then_some(left)
    }

    fn overall(&self, columns: usize) -> String {
        let figures = fitting(self.figures(), GAP, columns);
        let text = figures.join(GAP);
        let left = columns.saturating_sub(width(&text) + GAP.len()).min(*BAR_COLUMNS.end());
        match self.fraction() {
            Some(fraction) if left >= *BAR_COLUMNS.start() => format!("{}{GAP}{text}", bar(fraction, left)),
            _ => text,
        }
    }

    /// Returns the figures of the first line with their ranks. Figures with the highest rank are dropped first.
    fn figures(&self) -> Vec<(u8, String)> {
        let Totals { held_bytes, .. } = self.totals;
        let mut figures = Vec::new();
        if let Some(fraction) = self.fraction() {
            figures.push((0, format!("{:>3}%", percent(fraction))));
        }
        figures.push(match self.totals.all_bytes() {
            Some(all) => (3, part(held_bytes, all)),
            None => (0, amount(held_bytes)),
        });
        figures.push((2, rate(self.bytes_per_s)));
        figures.extend(self.phase_text().map(|text| (1, text)));
        figures
    }

    /// Returns the remaining time, or the reason for its absence.
    fn phase_text(&self) -> Option<String> {
        match self.phase {
            Phase::Waiting(step) => Some(step.text().to_owned()),
            Phase::Disconnected(time) => Some(format!("connecting again for {}", clock(time))),
            Phase::Stalled(time) => Some(format!("stalled for {}", clock(time))),
            Phase::Moving if self.totals.all_files().is_none() => Some("counting files".to_owned()),
            Phase::Moving if self.fraction().is_some_and(|fraction| fraction >= 1.0) => {
                Some("finishing".to_owned())
            }
            Phase::Moving => {
                let left = self.seconds_left()?;
                Some(format!("{} left", clock(Duration::from_secs_f64(left.ceil()))))
            }
        }
    }

    /// Returns the completed fraction of the transfer, between 0 and 1.
    fn fraction(&self) -> Option<f64> {
        let Totals { done_files, failed_files, .. } = self.totals;
        match (self.totals.all_bytes()?, self.totals.all_files()?) {
            (0, 0) => None,
            (0, files) => Some(ratio(done_files + failed_files, files)),
            (bytes, _) => Some(ratio(settled_bytes(&self.totals), bytes)),
        }
    }

    fn file_count(&self) -> String {
        let Totals { done_files, failed_files, .. } = self.totals;
        let done = match self.totals.all_files() {
            Some(files) => format!("{done_files} of {}", count(files, "file", "files")),
            None => format!("{} so far", count(done_files, "file", "files")),
        };
        if failed_files == 0 { done } else { format!("{done}, {failed_files} omitted") }
    }

    fn files(&self, columns: usize) -> String {
        let count = elide_middle(&self.file_count(), columns);
        let left = columns.saturating_sub(width(&count) + GAP.len());
        match &self.file {
            Some(name) if left >= LEAST_NAME => format!("{count}{GAP}{}", elide_middle(name, left)),
            _ => count,
        }
    }

    /// Returns the aligned rows of paths. The last row sums up the paths that do not fit.
    fn rows(&self, columns: usize, most: usize) -> Vec<String> {
        let shown = if self.paths.len() > most { most.saturating_sub(1) } else { self.paths.len() };
        let (paths, others) = self.paths.split_at(shown);
        let mut rows = table(paths, self.sends, columns);
        if !others.is_empty() && most > 0 {
            let active = others.iter().filter(|path| path.is_active()).count();
            let text =
                format!("  and {}, {active} active", count(others.len() as u64, "more path", "more paths"));
            rows.push(elide_middle(&text, columns));
        }
        rows
    }
}

/// Returns rows with a path's addresses, its state, and the figures that fit into all rows.
fn table(paths: &[PathLine], sends: bool, columns: usize) -> Vec<String> {
    let indent = if columns < 40 { "" } else { GAP };
    let addresses: Vec<String> = paths.iter().map(PathLine::addresses).collect();
    let others: Vec<Vec<String>> = paths
        .iter()
        .map(|path| std::iter::once(path.state_text().to_owned()).chain(path.figures(sends)).collect())
        .collect();
    let widest = |column: usize| others.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let mut wanted = addresses.iter().map(|text| width(text)).max().unwrap_or(0);
    let mut left = columns.saturating_sub(indent.len() + GAP.len() + widest(0));
    wanted = wanted.min(left);
    left -= wanted;
    let mut shown = 1;
    while shown < others.first().map_or(0, Vec::len) && GAP.len() + widest(shown) <= left {
        left -= GAP.len() + widest(shown);
        shown += 1;
    }
    let row = |(addresses, cells): (&String, &Vec<String>)| {
        let mut row = format!("{indent}{}", pad(&elide_middle(addresses, wanted), wanted));
        for (column, cell) in cells.iter().enumerate().take(shown) {
            row += &format!("{GAP}{}", pad(cell, widest(column)));
        }
        row.trim_end().to_owned()
    };
    addresses.iter().zip(&others).map(row).collect()
}

/// Bytes that the receiver has or that will not be sent.
fn settled_bytes(totals: &Totals) -> u64 {
    totals.held_bytes.saturating_add(totals.skipped_bytes)
}

#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, all: u64) -> f64 {
    (part as f64 / all as f64).min(1.0)
}

#[allow(clippy::cast_precision_loss)]
fn seconds(bytes: u64, bytes_per_s: f64) -> f64 {
    if bytes == 0 { 0.0 } else { bytes as f64 / bytes_per_s.max(f64::MIN_POSITIVE) }
}

/// Returns whole percent, rounded down: 100 means that the transfer is complete.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn percent(fraction: f64) -> u64 {
    (fraction * 100.0) as u64
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bar(fraction: f64, columns: usize) -> String {
    let inside = columns - 2;
    let full = (fraction * inside as f64) as usize;
    let tip = if full < inside { ">" } else { "" };
    format!("[{}{tip}{}]", "=".repeat(full), " ".repeat(inside - full - tip.len()))
}

#[cfg(test)]
mod tests;
