//! Lines at the bottom of a terminal that are redrawn in place.
//!
//! indicatif draws the bars of other commands. It stores the rows of its lines at the time of drawing, so it clears too few after a
//! narrower terminal has wrapped them. The few lines here are measured again instead.

use console::Term;

use super::layout::Size;
use crate::columns::width;

/// Columns behind each line for the `^C` that a terminal shows after Ctrl-C. A `^C` in a new row would leave a row of the frame
/// behind.
const ECHO_COLUMNS: usize = 2;

/// Size that is assumed if the terminal does not report one.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// Lines on standard error. The last one has no line break.
#[derive(Debug)]
pub(super) struct Live {
    terminal: Term,
    /// Columns of each line that is shown.
    shown: Vec<usize>,
}

impl Live {
    /// Returns `None` unless standard error is a terminal that can move its cursor.
    pub(super) fn on_stderr() -> Option<Self> {
        let terminal = Term::buffered_stderr();
        let is_able = terminal.is_term() && !console::is_dumb();
        is_able.then_some(Live { terminal, shown: Vec::new() })
    }

    /// Returns the available columns and rows.
    pub(super) fn room(&self) -> Size {
        room_of(self.size())
    }

    fn size(&self) -> Size {
        self.terminal.size_checked().map_or(USUAL_SIZE, |(rows, columns)| Size {
            columns: usize::from(columns).max(1),
            rows: usize::from(rows),
        })
    }

    /// Replaces the lines that are shown.
    pub(super) fn draw(&mut self, lines: &[String]) {
        self.to_first_row();
        let text = lines.join("\n");
        // A terminal that has hung up shows nothing more, and the transfer continues.
        let _ = self.terminal.clear_to_end_of_screen();
        let _ = self.terminal.write_str(&text);
        self.flush();
        self.shown = lines.iter().map(|line| width(line)).collect();
    }

    /// Removes the lines, and leaves the cursor at their beginning. Does nothing if no lines are shown, because standard output may
    /// be the same terminal.
    pub(super) fn clear(&mut self) {
        if self.shown.is_empty() {
            return;
        }
        self.to_first_row();
        let _ = self.terminal.clear_to_end_of_screen();
        self.flush();
        self.shown.clear();
    }

    fn to_first_row(&self) {
        let rows = rows_of(&self.shown, self.size().columns);
        let _ = self.terminal.write_str("\r");
        if rows > 1 {
            let _ = self.terminal.move_cursor_up(rows - 1);
        }
    }

    /// Writes the frame. A failed frame is dropped, because the buffer would grow with each further one.
    fn flush(&mut self) {
        if self.terminal.flush().is_err() {
            self.terminal = Term::buffered_stderr();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

fn room_of(Size { columns, rows }: Size) -> Size {
    Size { columns: columns.saturating_sub(ECHO_COLUMNS).max(1), rows }
}

/// Returns the rows of lines, after a narrower terminal has wrapped them.
fn rows_of(shown: &[usize], columns: usize) -> usize {
    shown.iter().map(|width| width.div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_of_ctrl_c_behind_widest_line_begins_no_row() {
        for columns in [2, 3, 60, 80, 200] {
            let widest = room_of(Size { columns, rows: 24 }).columns;
            assert!(columns == 2 || widest + "^C".len() <= columns);
            assert!(widest > 0);
        }
    }

    #[test]
    fn narrower_terminal_wraps_lines_into_more_rows() {
        let shown = [80, 30, 0, 81];
        assert_eq!(rows_of(&shown, 200), 4);
        assert_eq!(rows_of(&shown, 80), 5);
        assert_eq!(rows_of(&shown, 40), 2 + 1 + 1 + 3);
        assert_eq!(rows_of(&[], 80), 0);
    }
}
