//! Tables and the format of their figures.

use anabranch_lab::statistics::Summary;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::output::terminal_width;

/// Columns of text and figures under a header.
pub(crate) struct TextTable {
    header: Vec<String>,
    left: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Returns a table without columns.
    pub(crate) fn new() -> Self {
        TextTable { header: Vec::new(), left: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column of text, aligned on the left.
    pub(crate) fn text(mut self, header: &str) -> Self {
        self.header.push(header.to_owned());
        self.left.push(true);
        self
    }

    /// Adds a column of figures, aligned on the right.
    pub(crate) fn figure(mut self, header: &str) -> Self {
        self.header.push(header.to_owned());
        self.left.push(false);
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells);
    }

    /// Returns `true` if there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table in the width of the terminal, if there is one.
    pub(crate) fn print(&self) -> String {
        self.print_in(terminal_width())
    }

    /// Formats the table for a width. Narrow terminals get narrower gaps, then expressions on several lines, and cells broken at any
    /// character as the last resort.
    fn print_in(&self, width: Option<usize>) -> String {
        let layouts = [(2, false), (1, false), (1, true)];
        let texts = layouts.map(|(gap, fold)| lines(&self.table(gap, fold)));
        let Some(width) = width else { return texts[0].concat() };
        let fits = |text: &&Vec<String>| text.iter().all(|line| line.trim_end().chars().count() <= width);
        if let Some(text) = texts.iter().find(fits) {
            return text.concat();
        }
        let mut table = self.table(1, true);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        table.set_content_arrangement(ContentArrangement::Dynamic);
        lines(&table).concat()
    }

    fn table(&self, gap: u16, fold: bool) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
        if self.header.iter().any(|header| !header.is_empty()) {
            table.set_header(&self.header);
        }
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| if fold { folded(cell) } else { cell.clone() }));
        }
        let last = self.header.len().saturating_sub(1);
        for (index, column) in table.column_iter_mut().enumerate() {
            // The style adds a blank between two columns.
            column.set_padding((0, if index == last { 0 } else { gap - 1 }));
            let side = if self.left[index] { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(side);
        }
        table
    }
}

fn lines(table: &Table) -> Vec<String> {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Returns a scheme expression with each parameter and each component on a line of its own.
fn folded(cell: &str) -> String {
    let begins_name = |c: char| c.is_ascii_lowercase();
    let mut parts = cell.split('+');
    let first = parts.next().map(folded_term).unwrap_or_default();
    parts.fold(first, |text, part| match part.starts_with(begins_name) {
        true => format!("{text}\n+{}", folded_term(part)),
        false => format!("{text}+{part}"),
    })
}

/// Returns one term of an expression with each parameter on a line of its own.
fn folded_term(term: &str) -> String {
    match term.split_once('(') {
        Some((name, parameters)) if parameters.contains('=') => {
            format!("{name}(\n {}", parameters.replace(',', ",\n "))
        }
        _ => term.to_owned(),
    }
}

/// Returns a mean with the digits that its size requires, and its interval if it has one.
pub(crate) fn interval(summary: Option<Summary>) -> String {
    interval_of(summary, summary.map_or(0, |summary| decimals(summary.mean)))
}

/// Returns a mean with this number of decimals, and its interval if it has one.
pub(crate) fn interval_of(summary: Option<Summary>, decimals: usize) -> String {
    let Some(Summary { mean, half_width, .. }) = summary else { return "-".to_owned() };
    match half_width {
        Some(half) => format!("{} ± {}", rounded(mean, decimals), rounded(half, decimals)),
        None => rounded(mean, decimals),
    }
}

/// Returns the mean of a count or a time.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> String {
    let Some(Summary { n, mean, .. }) = Summary::of(values) else { return "-".to_owned() };
    let whole = mean == mean.trunc() && (n == 1 || mean == 0.0);
    rounded(mean, if whole { 0 } else { decimals(mean).min(1) })
}

/// Returns fractions in per cent, with a decimal if one of them is small.
pub(crate) fn shares(parts: &[f64]) -> String {
    let small = parts.iter().any(|part| *part > 0.0 && (*part < 0.095 || *part > 0.995) && *part < 1.0);
    let cells: Vec<String> = parts.iter().map(|part| rounded(part * 100.0, usize::from(small))).collect();
    cells.join("/")
}

/// Returns the decimals of a mean. Four digits suffice for a mean with an interval.
fn decimals(value: f64) -> usize {
    match value.abs() {
        large if large >= 1000.0 => 0,
        medium if medium >= 100.0 => 1,
        _ => 2,
    }
}

fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // Rounding turns small negative figures into zeros, which should have no sign.
    if text.trim_start_matches('-').chars().all(|c| "0.".contains(c)) {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_significant_digits() {
        assert_eq!(interval(Summary::of([1.0, 2.0, 3.0])), "2.00 ± 2.48");
        assert_eq!(interval(Summary::of([9000.0, 9100.0])), "9050 ± 635");
        assert_eq!(interval(Summary::of([9000.4])), "9000");
        assert_eq!(interval(None), "-");
        assert_eq!(interval_of(Summary::of([0.9, 0.92, 0.94]), 3), "0.920 ± 0.050");
        assert_eq!(mean([3.0, 4.0]), "3.5");
        assert_eq!(mean([3.0]), "3");
        assert_eq!(mean([0.0, 0.0]), "0");
        assert_eq!(mean([3.0, 3.0]), "3.0");
    }

    #[test]
    fn shares_get_a_decimal_where_one_is_small() {
        assert_eq!(shares(&[0.83, 0.17]), "83/17");
        assert_eq!(shares(&[0.991, 0.009]), "99.1/0.9");
        assert_eq!(shares(&[1.0, 0.0]), "100/0");
    }

    #[test]
    fn narrow_table_wraps_schemes_before_figures() {
        let mut table = TextTable::new().text("scheme").figure("goodput\nkbit/s");
        table.row(vec!["cmt(rtx=rtx-asap,trigger=4)".to_owned(), "9050 ± 635".to_owned()]);
        for width in [20, 30, 80] {
            let text = table.print_in(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        }
        assert!(
            table.print_in(Some(30)).contains("\ncmt(           9050 ± 635\n rtx=rtx-asap,\n trigger=4)\n")
        );
        assert!(table.print_in(None).contains("cmt(rtx=rtx-asap,trigger=4)  9050 ± 635\n"));
    }

    #[test]
    fn long_components_are_wrapped() {
        assert_eq!(folded("cmt(trigger=4)+late(delay=9)+pf"), "cmt(\n trigger=4)\n+late(\n delay=9)\n+pf");
        assert_eq!(folded("1e+3 ± 5"), "1e+3 ± 5");
    }
}
