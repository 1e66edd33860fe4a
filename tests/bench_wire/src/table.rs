//! Table of the comparisons and their stored ratios.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Args;

use crate::bulk::Flow;
use crate::subject::{Amount, Crowd, LARGE_MESSAGE, Paced, Subject};
use crate::{Failure, process, usrsctp};

/// File next to the counts of instructions.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cost/wire.tsv");
/// Relative deterioration from which on a row is marked.
const MUCH: f64 = 0.05;

/// Amount of one GiB.
const BULK: Amount = Amount { message_bytes: LARGE_MESSAGE, messages: 16 << 10 };
const SMALL: Amount = Amount { message_bytes: 64, messages: 4 << 20 };
/// Smaller amount, since usrsctp takes longer for each message.
const SMALL_USRSCTP: Amount = Amount { messages: 1 << 20, ..SMALL };
/// Amount of three seconds at one Gbit/s.
const PACED: Paced = Paced { amount: Amount { message_bytes: 16 << 10, messages: 22_889 }, mbit_per_s: 1000 };
const MANY: Crowd = Crowd { associations: 3000 };
const IDLE: Crowd = Crowd { associations: 10_000 };

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Number of rounds; the median of their ratios counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only rows whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

/// Direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

/// Subject with which a row is compared.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Tcp,
    Quic,
    UsrsctpSmall,
    UsrsctpPaced,
    /// One path of this project, with the same protection.
    OnePath,
    OneOfCrowd,
    /// No comparison: a figure in this unit.
    Nothing(&'static str),
}

/// Measurement of a row.
#[derive(Clone, Copy, Debug)]
enum Measured {
    Bulk { scheme: &'static str, paths: u8 },
    Small,
    Paced,
    Crowd,
    IdleBytes,
    IdleCpu,
}

/// Row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    name: &'static str,
    measured: Measured,
    beside: Beside,
    /// Columns of the row: plain, protected, or both.
    protected: &'static [bool],
    better: Better,
}

const ONE: Measured = Measured::Bulk { scheme: "bonded", paths: 1 };
const BOTH: &[bool] = &[false, true];
const PLAIN: &[bool] = &[false];

const fn two(scheme: &'static str) -> Measured {
    Measured::Bulk { scheme, paths: 2 }
}

const fn row(name: &'static str, measured: Measured, beside: Beside, protected: &'static [bool]) -> Row {
    Row { name, measured, beside, protected, better: Better::More }
}

const fn less(name: &'static str, measured: Measured, beside: Beside) -> Row {
    Row { name, measured, beside, protected: PLAIN, better: Better::Less }
}

pub(crate) const ROWS: &[Row] = &[
    row("one path / TCP", ONE, Beside::Tcp, BOTH),
    row("one path / quinn", ONE, Beside::Quic, BOTH),
    row("two paths, bonded / one path", two("bonded"), Beside::OnePath, BOTH),
    row("two paths, cmt / one path", two("cmt"), Beside::OnePath, BOTH),
    row("two paths, braid / one path", two("braid"), Beside::OnePath, BOTH),
    row("64-byte messages / usrsctp", Measured::Small, Beside::UsrsctpSmall, BOTH),
    row("3000 associations / one", Measured::Crowd, Beside::OneOfCrowd, PLAIN),
    less("CPU at 1 Gbit/s / usrsctp", Measured::Paced, Beside::UsrsctpPaced),
    less("memory of an idle association", Measured::IdleBytes, Beside::Nothing("bytes")),
    less("CPU of 10000 idle associations", Measured::IdleCpu, Beside::Nothing("of a core")),
];

impl Row {
    fn subject(&self, protected: bool) -> Subject {
        let bulk = |amount, scheme: &str, paths| {
            Subject::Bulk(Flow { amount, scheme: scheme.to_owned(), paths, protected })
        };
        match self.measured {
            Measured::Bulk { scheme, paths } => bulk(BULK, scheme, paths),
            Measured::Small => bulk(SMALL, "bonded", 1),
            Measured::Paced => Subject::BulkPaced(PACED),
            Measured::Crowd => Subject::Crowd(MANY),
            Measured::IdleBytes => Subject::IdleBytes(IDLE),
            Measured::IdleCpu => Subject::IdleCpu(IDLE),
        }
    }

    fn base(&self, protected: bool) -> Option<Subject> {
        Some(match self.beside {
            Beside::Tcp => Subject::Tcp(BULK),
            Beside::Quic => Subject::Quic(BULK),
            Beside::UsrsctpSmall => Subject::Usrsctp(SMALL_USRSCTP),
            Beside::UsrsctpPaced => Subject::UsrsctpPaced(PACED),
            Beside::OnePath => {
                let scheme = "bonded".to_owned();
                Subject::Bulk(Flow { amount: BULK, scheme, paths: 1, protected })
            }
            Beside::OneOfCrowd => Subject::Crowd(Crowd { associations: 1 }),
            Beside::Nothing(_) => return None,
        })
    }

    /// Returns all measurements that the row requires.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let columns = self.protected.iter();
        columns
            .flat_map(|&protected| [Some(self.subject(protected)), self.base(protected)])
            .flatten()
            .collect()
    }

    fn needs_usrsctp(&self) -> bool {
        matches!(self.beside, Beside::UsrsctpSmall | Beside::UsrsctpPaced)
    }

    /// Returns `true` for a figure that varies less than rates and takes a minute.
    fn once(&self) -> bool {
        matches!(self.beside, Beside::Nothing(_))
    }
}

/// Figures of each measurement, by round.
#[derive(Debug, Default)]
struct Figures(BTreeMap<Vec<String>, Vec<f64>>);

impl Figures {
    fn measure(&mut self, round: usize, subject: &Subject) -> Result<(), Failure> {
        let arguments = subject.arguments();
        let figures = self.0.entry(arguments.clone()).or_default();
        // Several rows may require the same measurement.
        if figures.len() <= round {
            figures.push(process::figure_of(&arguments)?);
        }
        Ok(())
    }

    fn of(&self, subject: &Subject) -> &[f64] {
        self.0.get(&subject.arguments()).map_or(&[], Vec::as_slice)
    }
}

/// Figure of a row in one column.
#[derive(Clone, Debug)]
struct Cell {
    row: Row,
    protected: bool,
    /// Ratio to the compared subject, or the figure itself without one.
    value: f64,
    told: String,
}

impl Cell {
    fn of(row: Row, protected: bool, figures: &Figures) -> Self {
        let measured = figures.of(&row.subject(protected));
        let Some(base) = row.base(protected) else {
            let Beside::Nothing(unit) = row.beside else { unreachable!("only that has no base") };
            let value = median(measured.iter().copied());
            return Cell { row, protected, value, told: unit.to_owned() };
        };
        let base = figures.of(&base);
        let value = median(measured.iter().zip(base).map(|(ours, theirs)| ours / theirs));
        let (ours, theirs) = (median(measured.iter().copied()), median(base.iter().copied()));
        let unit = if row.better == Better::More { "Mbit/s" } else { "s" };
        Cell { row, protected, value, told: format!("{} beside {} {unit}", short(ours), short(theirs)) }
    }

    fn key(&self) -> (String, String) {
        (self.row.name.to_owned(), column(self.protected).to_owned())
    }

    /// Returns the relative deterioration from the stored value; negative for an improvement.
    fn worse_than(&self, stored: f64) -> f64 {
        match self.row.better {
            Better::More => 1.0 - self.value / stored,
            Better::Less => self.value / stored - 1.0,
        }
    }
}

fn column(protected: bool) -> &'static str {
    if protected { "protected" } else { "plain" }
}

fn short(value: f64) -> String {
    if value < 100.0 { format!("{value:.3}") } else { format!("{value:.0}") }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures and prints the rows in turn.
fn measure(options: &Options, stored: &Stored) -> Result<Vec<Cell>, Failure> {
    let with_usrsctp = usrsctp::is_there();
    let chosen = ROWS.iter().filter(|row| row.name.contains(&options.only));
    let (rows, left_out): (Vec<&Row>, Vec<&Row>) =
        chosen.partition(|row| with_usrsctp || !row.needs_usrsctp());
    let mut figures = Figures::default();
    for round in 0..options.rounds {
        for row in rows.iter().filter(|row| round == 0 || !row.once()) {
            for subject in row.subjects() {
                figures.measure(round, &subject)?;
            }
        }
        eprintln!("round {} of {} is done", round + 1, options.rounds);
    }
    let cells = rows.iter().flat_map(|&&row| {
        let figures = &figures;
        row.protected.iter().map(move |&protected| Cell::of(row, protected, figures))
    });
    let cells: Vec<Cell> = cells.collect();
    for cell in &cells {
        let before = stored
            .0
            .get(&cell.key())
            .map_or("not stored".to_owned(), |value| format!("stored {}", short(*value)));
        println!(
            "{:32} {:10} {:>8}  {:14}  {}",
            cell.row.name,
            column(cell.protected),
            short(cell.value),
            before,
            cell.told
        );
    }
    for row in left_out {
        println!("{:32} {:10} {:>8}  usrsctp is not installed", row.name, "", "not there");
    }
    Ok(cells)
}

pub(crate) fn check(options: &Options) -> Result<(), Failure> {
    let stored = Stored::read()?;
    for cell in measure(options, &stored)? {
        let Some(before) = stored.0.get(&cell.key()) else { continue };
        let worse = cell.worse_than(*before);
        if worse > MUCH {
            let column = column(cell.protected);
            println!("*** WORSE THAN STORED by {:.0} %: {}, {column}", 100.0 * worse, cell.row.name);
        }
    }
    Ok(())
}

pub(crate) fn store(options: &Options) -> Result<(), Failure> {
    let mut stored = Stored::read()?;
    for cell in measure(options, &stored)? {
        stored.0.insert(cell.key(), cell.value);
    }
    stored.write()
}

/// Stored ratios by row and column.
#[derive(Debug, Default, PartialEq)]
struct Stored(BTreeMap<(String, String), f64>);

impl Stored {
    fn read() -> Result<Self, Failure> {
        if Path::new(STORED).exists() {
            Self::parse(&fs::read_to_string(STORED)?)
        } else {
            Ok(Stored::default())
        }
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let lines = text.lines().skip(1).map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [row, column, value] => Ok(((row.to_owned(), column.to_owned()), value.parse()?)),
            _ => Err(Failure::from(format!("`{line}`: expected three fields"))),
        });
        Ok(Stored(lines.collect::<Result<_, _>>()?))
    }

    fn text(&self) -> String {
        let lines =
            self.0.iter().map(|((row, column), value)| format!("{row}\t{column}\t{}\n", short(*value)));
        ["row\tcolumn\tvalue\n".to_owned()].into_iter().chain(lines).collect()
    }

    fn write(&self) -> Result<(), Failure> {
        Ok(fs::write(STORED, self.text())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(row: Row, value: f64) -> Cell {
        Cell { row, protected: false, value, told: String::new() }
    }

    #[test]
    fn stored_table_is_read_unchanged() {
        let row = ("one path / TCP".to_owned(), "plain".to_owned());
        let stored = Stored([(row, 0.75)].into());
        assert_eq!(Stored::parse(&stored.text()).expect("it was written so"), stored);
        assert!(Stored::parse("row\tcolumn\tvalue\none path\tplain\n").is_err());
    }

    #[test]
    fn slower_is_worse_and_so_is_more_memory() {
        let worse = |row, value| cell(row, value).worse_than(1.0);
        let (faster, smaller) =
            (row("", ONE, Beside::Tcp, PLAIN), less("", Measured::Paced, Beside::UsrsctpPaced));
        assert!(worse(faster, 0.9) > MUCH && worse(faster, 1.1) < 0.0);
        assert!(worse(smaller, 1.1) > MUCH && worse(smaller, 0.9) < 0.0);
    }

    #[test]
    fn a_ratio_is_of_two_measurements_of_one_round() {
        let row = row("", ONE, Beside::Tcp, PLAIN);
        let mut figures = Figures::default();
        figures.0.insert(row.subject(false).arguments(), vec![10.0, 1.0, 30.0]);
        figures.0.insert(Subject::Tcp(BULK).arguments(), vec![20.0, 2.0, 40.0]);
        assert_eq!(Cell::of(row, false, &figures).value, 0.5);
    }
}
