//! Table of the comparisons and their stored ratios.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Args;

use crate::end::{Association, LARGE_MESSAGE};
use crate::site::Site;
use crate::subject::{Crowd, Measure, Subject};
use crate::transfer::{Amount, Stack, Transfer};
use crate::{Failure, iperf3, usrsctp};

/// File next to the counts of instructions.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cost/wire.tsv");
/// Relative deterioration from which on a row is marked.
const MUCH: f64 = 0.05;

/// Amount of one GiB.
const BULK: Amount = Amount { message_bytes: LARGE_MESSAGE, messages: 16 << 10 };
const SMALL: Amount = Amount { message_bytes: 64, messages: 4 << 20 };
/// Smaller amount, since usrsctp takes longer for each message.
const SMALL_USRSCTP: Amount = Amount { messages: 1 << 20, ..SMALL };
/// Amount of three seconds at the rate of `PACE_MBIT_PER_S`.
const PACED: Amount = Amount { message_bytes: 16 << 10, messages: 22_889 };
const PACE_MBIT_PER_S: u32 = 1000;
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
    Iperf3,
    Quinn,
    Usrsctp,
    /// One path of this project, with the same protection.
    OnePath,
    /// The same association without protection.
    Plain,
    OneOfCrowd,
    /// No comparison: a figure in this unit.
    Nothing(&'static str),
}

/// Measurement of a row.
#[derive(Clone, Copy, Debug)]
enum Measured {
    Bulk { site: Site, scheme: &'static str, paths: u8 },
    Small,
    Paced,
    Crowd(Measure),
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

const BOTH: &[bool] = &[false, true];
const PLAIN: &[bool] = &[false];
const PROTECTED: &[bool] = &[true];

const fn one(site: Site) -> Measured {
    Measured::Bulk { site, scheme: "bonded", paths: 1 }
}

const fn two(scheme: &'static str) -> Measured {
    Measured::Bulk { site: Site::Veth, scheme, paths: 2 }
}

const fn row(name: &'static str, measured: Measured, beside: Beside, protected: &'static [bool]) -> Row {
    Row { name, measured, beside, protected, better: Better::More }
}

const fn less(name: &'static str, measured: Measured, beside: Beside) -> Row {
    Row { name, measured, beside, protected: PLAIN, better: Better::Less }
}

pub(crate) const ROWS: &[Row] = &[
    row("loopback, one path / iperf3", one(Site::Loopback), Beside::Iperf3, BOTH),
    row("loopback, one path / quinn", one(Site::Loopback), Beside::Quinn, PROTECTED),
    row("MTU 1500, one path / iperf3", one(Site::Veth), Beside::Iperf3, BOTH),
    row("MTU 1500, one path / quinn", one(Site::Veth), Beside::Quinn, PROTECTED),
    row("MTU 1500, one path / plain", one(Site::Veth), Beside::Plain, PROTECTED),
    row("MTU 1500, two paths, cmt / one", two("cmt"), Beside::OnePath, BOTH),
    row("MTU 1500, two paths, braid / one", two("braid"), Beside::OnePath, BOTH),
    row("64-byte messages / usrsctp", Measured::Small, Beside::Usrsctp, BOTH),
    row("3000 associations / one", Measured::Crowd(Measure::Rate(MANY)), Beside::OneOfCrowd, PLAIN),
    less("CPU at 1 Gbit/s / usrsctp", Measured::Paced, Beside::Usrsctp),
    less(
        "memory of an idle association",
        Measured::Crowd(Measure::IdleBytes(IDLE)),
        Beside::Nothing("bytes"),
    ),
    less(
        "CPU of 10000 idle associations",
        Measured::Crowd(Measure::IdleCpu(IDLE)),
        Beside::Nothing("of a core"),
    ),
];

impl Row {
    fn subject(&self, protected: bool) -> Subject {
        match self.measured {
            Measured::Bulk { scheme, paths, .. } => {
                let stack = Stack::Anabranch(Association { scheme, paths, protected });
                Subject::Rate(Transfer { stack, site: self.site(), amount: BULK, mbit_per_s: None })
            }
            Measured::Small => {
                let stack = Stack::Anabranch(Association { scheme: "bonded", paths: 1, protected });
                Subject::Rate(Transfer { stack, site: Site::Loopback, amount: SMALL, mbit_per_s: None })
            }
            Measured::Paced => paced(Stack::Anabranch(Association { scheme: "bonded", paths: 1, protected })),
            Measured::Crowd(measure) => Subject::Crowd(measure),
        }
    }

    fn base(&self, protected: bool) -> Option<Subject> {
        let bulk =
            |stack| Subject::Rate(Transfer { stack, site: self.site(), amount: BULK, mbit_per_s: None });
        let one_path = |protected| Association { scheme: "bonded", paths: 1, protected };
        Some(match (self.beside, self.measured) {
            (Beside::Iperf3, _) => bulk(Stack::Iperf3),
            (Beside::Quinn, _) => bulk(Stack::Quinn),
            (Beside::OnePath, _) => bulk(Stack::Anabranch(one_path(protected))),
            (Beside::Plain, _) => bulk(Stack::Anabranch(one_path(false))),
            (Beside::Usrsctp, Measured::Paced) => paced(Stack::Usrsctp),
            (Beside::Usrsctp, _) => Subject::Rate(Transfer {
                stack: Stack::Usrsctp,
                site: self.site(),
                amount: SMALL_USRSCTP,
                mbit_per_s: None,
            }),
            (Beside::OneOfCrowd, _) => Subject::Crowd(Measure::Rate(Crowd { associations: 1 })),
            (Beside::Nothing(_), _) => return None,
        })
    }

    fn site(&self) -> Site {
        match self.measured {
            Measured::Bulk { site, .. } => site,
            Measured::Small | Measured::Paced | Measured::Crowd(_) => Site::Loopback,
        }
    }

    /// Returns all measurements that the row requires.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let columns = self.protected.iter();
        columns
            .flat_map(|&protected| [Some(self.subject(protected)), self.base(protected)])
            .flatten()
            .collect()
    }

    /// Returns the program that the row requires, if it is missing.
    fn missing(&self, found: &Found) -> Option<&'static str> {
        match self.beside {
            Beside::Iperf3 if !found.iperf3 => Some("iperf3"),
            Beside::Usrsctp if !found.usrsctp => Some("usrsctp"),
            _ => None,
        }
    }

    /// Returns `true` for a figure that varies less than rates and takes a minute.
    fn once(&self) -> bool {
        matches!(self.beside, Beside::Nothing(_))
    }
}

fn paced(stack: Stack) -> Subject {
    Subject::Cpu(Transfer { stack, site: Site::Loopback, amount: PACED, mbit_per_s: Some(PACE_MBIT_PER_S) })
}

/// Other stacks that are installed.
struct Found {
    iperf3: bool,
    usrsctp: bool,
}

/// Figures of each measurement, by round.
#[derive(Debug, Default)]
struct Figures(BTreeMap<Subject, Vec<f64>>);

impl Figures {
    fn measure(&mut self, round: usize, subject: &Subject) -> Result<(), Failure> {
        let figures = self.0.entry(*subject).or_default();
        // Several rows may require the same measurement.
        if figures.len() <= round {
            figures.push(subject.measure()?);
        }
        Ok(())
    }

    fn of(&self, subject: &Subject) -> &[f64] {
        self.0.get(subject).map_or(&[], Vec::as_slice)
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
    let found = Found { iperf3: iperf3::is_there(), usrsctp: usrsctp::is_there() };
    let chosen = ROWS.iter().filter(|row| row.name.contains(&options.only));
    let (rows, left_out): (Vec<&Row>, Vec<&Row>) = chosen.partition(|row| row.missing(&found).is_none());
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
        let missing = row.missing(&found).unwrap_or_default();
        println!("{:32} {:10} {:>8}  {missing} is not installed", row.name, "", "not there");
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
pub(crate) fn transfers() -> Vec<Transfer> {
    let subjects = ROWS.iter().flat_map(Row::subjects);
    let transfer = |subject| match subject {
        Subject::Rate(transfer) | Subject::Cpu(transfer) => Some(transfer),
        Subject::Crowd(_) => None,
    };
    subjects.filter_map(transfer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(row: Row, value: f64) -> Cell {
        Cell { row, protected: false, value, told: String::new() }
    }

    #[test]
    fn stored_table_is_read_unchanged() {
        let row = ("one path / iperf3".to_owned(), "plain".to_owned());
        let stored = Stored([(row, 0.75)].into());
        assert_eq!(Stored::parse(&stored.text()).expect("it was written so"), stored);
        assert!(Stored::parse("row\tcolumn\tvalue\none path\tplain\n").is_err());
    }

    #[test]
    fn slower_is_worse_and_so_is_more_memory() {
        let worse = |row, value| cell(row, value).worse_than(1.0);
        let (faster, smaller) =
            (row("", one(Site::Loopback), Beside::Iperf3, PLAIN), less("", Measured::Paced, Beside::Usrsctp));
        assert!(worse(faster, 0.9) > MUCH && worse(faster, 1.1) < 0.0);
        assert!(worse(smaller, 1.1) > MUCH && worse(smaller, 0.9) < 0.0);
    }

    #[test]
    fn a_ratio_is_of_two_measurements_of_one_round() {
        let row = row("", one(Site::Loopback), Beside::Iperf3, PLAIN);
        let mut figures = Figures::default();
        figures.0.insert(row.subject(false), vec![10.0, 1.0, 30.0]);
        figures.0.insert(row.base(false).expect("iperf3"), vec![20.0, 2.0, 40.0]);
        assert_eq!(Cell::of(row, false, &figures).value, 0.5);
    }
}
