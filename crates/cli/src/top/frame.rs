//! Lines of a screen: paths, connections and keys. Text of others is escaped.

use anabranch_observe::control::{Connections, Link, State};
use anabranch_transfer::escape;

use super::named;
use super::sample::{Path, Sample};
use crate::columns::{elide_middle, pad, width};
use crate::costs::link_text;
use crate::output::count;

/// Columns of text without a terminal.
const PLAIN_COLUMNS: usize = 120;
/// Keys of the terminal.
const KEYS: &str = "up, down: select   space or number: take out, take back   q: quit";
/// Column titles of paths.
const TITLES: [&str; 10] =
    ["#", "link", "to", "state", "up Mbit/s", "down Mbit/s", "RTT ms", "loss %", "in flight kB", "why"];
/// Columns of text, which are aligned on the left.
const TEXT_COLUMNS: [bool; 10] = [false, true, true, true, false, false, false, false, false, true];
const GAP: &str = "  ";

/// Emphasis of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emphasis {
    Plain,
    Title,
    /// A path that does not carry data because it has failed or was taken out.
    Unused,
    /// The selected link.
    Selected,
}

/// Line of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) emphasis: Emphasis,
    pub(super) text: String,
}

/// Size of the screen, in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Row of the table of paths.
struct Row {
    link: usize,
    is_unused: bool,
    cells: [String; 10],
}

/// Returns the text of a sample for a file or a pipe.
pub(super) fn plain(sample: &Sample) -> String {
    let size = Size { columns: PLAIN_COLUMNS, rows: usize::MAX };
    body(sample, None, size).into_iter().map(|line| line.text + "\n").collect()
}

/// Returns the lines of the screen, at most as many as it has rows. `message` is the result of the latest order.
pub(super) fn screen(sample: &Sample, selected: usize, message: &str, size: Size) -> Vec<Line> {
    let mut lines = body(sample, Some(selected), size);
    lines.truncate(size.rows.saturating_sub(2));
    lines.push(line(Emphasis::Plain, &escape(message), size));
    lines.push(line(Emphasis::Title, KEYS, size));
    let first = lines.len().saturating_sub(size.rows);
    lines.split_off(first)
}

fn line(emphasis: Emphasis, text: &str, size: Size) -> Line {
    Line { emphasis, text: elide_middle(text, size.columns).trim_end().to_owned() }
}

fn body(sample: &Sample, selected: Option<usize>, size: Size) -> Vec<Line> {
    let mut lines = vec![line(Emphasis::Title, &heading(sample), size)];
    let rows = rows(sample);
    lines.extend(table(&rows).into_iter().enumerate().map(|(at, text)| {
        let emphasis = match at.checked_sub(1).map(|at| &rows[at]) {
            None => Emphasis::Title,
            Some(row) if selected == Some(row.link) => Emphasis::Selected,
            Some(row) if row.is_unused => Emphasis::Unused,
            Some(_) => Emphasis::Plain,
        };
        line(emphasis, &text, size)
    }));
    if sample.more_associations > 0 {
        let more = count(sample.more_associations, "more association", "more associations");
        lines.push(line(Emphasis::Plain, &format!("{more} not shown"), size));
    }
    lines.extend(sample.link_costs.iter().map(|link| line(Emphasis::Plain, &escape(&link_text(link)), size)));
    if let Some(connections) = &sample.connections {
        lines.push(line(Emphasis::Plain, "", size));
        lines.extend(connection_lines(connections, size));
    }
    lines
}

fn heading(sample: &Sample) -> String {
    let paths = || sample.associations.iter().flat_map(|association| &association.paths);
    let sum = |rate: fn(&Path) -> Option<f64>| megabits(Some(paths().filter_map(rate).sum()));
    format!(
        "{} (process {}), scheme {}: up {} Mbit/s, down {} Mbit/s",
        escape(&sample.command),
        sample.pid,
        escape(&sample.scheme),
        sum(|path| path.up_kbps),
        sum(|path| path.down_kbps)
    )
}

fn megabits(kbps: Option<f64>) -> String {
    kbps.map_or_else(|| "-".to_owned(), |kbps| format!("{:.2}", kbps / 1e3))
}

fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn word(state: State) -> &'static str {
    match state {
        State::Unconfirmed => "unconfirmed",
        State::Active => "active",
        State::PotentiallyFailed => "suspected",
        State::Inactive => "failed",
    }
}

/// Returns the rows of all paths, and of the links that were taken out.
fn rows(sample: &Sample) -> Vec<Row> {
    let links = &sample.links;
    let number = |local, index| {
        links.iter().position(|link| (link.local, link.interface_index) == (local, index)).unwrap_or(0)
    };
    let paths = sample.associations.iter().flat_map(|association| &association.paths);
    let mut rows: Vec<Row> =
        paths.map(|path| path_row(path, number(path.local, path.interface_index))).collect();
    rows.extend(sample.taken_out.iter().map(|link| {
        let at = number(link.local, link.interface_index);
        let mut cells: [String; 10] = std::array::from_fn(|_| "-".to_owned());
        (cells[0], cells[1], cells[3]) = ((at + 1).to_string(), escape(&named(link)), "taken out".to_owned());
        (cells[2], cells[9]) = (String::new(), "taken out of use here".to_owned());
        Row { link: at, is_unused: true, cells }
    }));
    rows.sort_by_key(|row| row.link);
    rows
}

#[allow(clippy::cast_precision_loss)]
fn path_row(path: &Path, link: usize) -> Row {
    let name = named(&Link {
        local: path.local,
        interface: path.interface.clone(),
        interface_index: path.interface_index,
    });
    let cells = [
        (link + 1).to_string(),
        escape(&name),
        path.remote.to_string(),
        word(path.state).to_owned(),
        megabits(path.up_kbps),
        megabits(path.down_kbps),
        figure(path.srtt_ms, 1),
        figure(path.loss_percent, 2),
        figure(Some(path.in_flight_bytes as f64 / 1e3), 1),
        escape(path.why.as_deref().unwrap_or_default()),
    ];
    Row { link, is_unused: path.state != State::Active, cells }
}

/// Returns the titles and one line for each row.
fn table(rows: &[Row]) -> Vec<String> {
    let widths: [usize; 10] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| width(&row.cells[column]));
        cells.chain([width(TITLES[column])]).max().unwrap_or(0)
    });
    let titles = TITLES.map(str::to_owned);
    let lines = std::iter::once(&titles).chain(rows.iter().map(|row| &row.cells));
    lines
        .map(|cells| {
            let cells = cells.iter().enumerate().map(|(column, cell)| match TEXT_COLUMNS[column] {
                true => pad(cell, widths[column]),
                false => format!("{}{cell}", " ".repeat(widths[column] - width(cell))),
            });
            cells.collect::<Vec<_>>().join(GAP)
        })
        .collect()
}

fn connection_lines(connections: &Connections, size: Size) -> Vec<Line> {
    let Connections { open, complete, reset, failed, list } = connections;
    let heading = format!(
        "{}: {complete} complete, {reset} reset, {failed} not opened",
        count(*open, "open connection", "open connections")
    );
    let titles = format!("{:>10}{GAP}{:>10}{GAP}{:>8}{GAP}target", "up kB", "down kB", "age s");
    let mut lines = vec![line(Emphasis::Title, &heading, size)];
    if !list.is_empty() {
        lines.push(line(Emphasis::Title, &titles, size));
    }
    lines.extend(list.iter().map(|one| {
        let [up, down] = [one.to_peer_bytes, one.from_peer_bytes].map(|bytes| bytes / 1000);
        let text = format!("{up:>10}{GAP}{down:>10}{GAP}{:>8}{GAP}{}", one.age_s, escape(&one.target));
        line(Emphasis::Plain, &text, size)
    }));
    lines
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use anabranch_observe::control::{Connection, PathReport};

    use super::super::sample::Sampler;
    use super::super::sample::tests::{path, report};
    use super::*;

    const SIZE: Size = Size { columns: 150, rows: 24 };

    fn sample() -> Sample {
        let mut sampler = Sampler::default();
        let failed = PathReport { state: State::Inactive, errors: 6, ..path(2) };
        sampler.sample(report(0.0, vec![path(1), failed.clone()]));
        let mut later = report(1000.0, vec![PathReport { delivered_bytes: 250_000, ..path(1) }, failed]);
        later.taken_out.push(Link {
            local: IpAddr::from([10, 0, 3, 1]),
            interface: Some("wwan0".to_owned()),
            interface_index: 3,
        });
        let target = "example.org:443\u{1b}[2J".to_owned();
        let one =
            Connection { number: 1, target, age_s: 3, to_peer_bytes: 2_000, from_peer_bytes: 5_000_000 };
        later.connections =
            Some(Connections { open: 1, complete: 4, list: vec![one], ..Connections::default() });
        sampler.sample(later)
    }

    fn cells(line: &Line) -> Vec<&str> {
        line.text.split_whitespace().collect()
    }

    #[test]
    fn screen_has_paths_links_taken_out_connections_and_keys() {
        let lines = screen(&sample(), 1, "wwan0 is out of use", SIZE);
        assert_eq!(lines[0].text, "forward (process 7), scheme braid: up 2.00 Mbit/s, down 0.00 Mbit/s");
        let first =
            ["1", "wlan1", "(10.0.1.1)", "192.0.2.1:9899", "active", "2.00", "0.00", "20.5", "-", "30.0"];
        assert_eq!(cells(&lines[2]), first);
        assert!(lines[3].text.ends_with("failed, errors in a row: 6"), "{}", lines[3].text);
        assert!(
            lines[4].text.contains("wwan0 (10.0.3.1)") && lines[4].text.ends_with("taken out of use here")
        );
        let emphases: Vec<Emphasis> = lines[2..5].iter().map(|line| line.emphasis).collect();
        assert_eq!(emphases, [Emphasis::Plain, Emphasis::Selected, Emphasis::Unused]);
        assert_eq!(lines[6].text, "1 open connection: 4 complete, 0 reset, 0 not opened");
        assert_eq!(cells(&lines[8])[..3], ["2", "5000", "3"]);
        assert_eq!(lines[lines.len() - 2].text, "wwan0 is out of use");
        assert_eq!(lines[lines.len() - 1].text, KEYS);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let lines = screen(&sample(), 0, "\u{7}", SIZE);
        assert!(lines.iter().all(|line| !line.text.contains(char::is_control)), "{lines:?}");
    }

    #[test]
    fn screen_fits_every_size() {
        for (columns, rows) in [(0, 0), (1, 1), (20, 2), (40, 5), (80, 8), (200, 60)] {
            let lines = screen(&sample(), 0, "a message", Size { columns, rows });
            assert!(lines.len() <= rows, "{columns} x {rows}");
            assert!(lines.iter().all(|line| width(&line.text) <= columns), "{columns} x {rows}");
        }
    }

    #[test]
    fn plain_text_has_no_keys() {
        let text = plain(&sample());
        assert!(text.contains("example.org:443") && !text.contains(KEYS), "{text}");
    }
}
