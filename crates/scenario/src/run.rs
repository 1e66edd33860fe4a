//! `[run]`: duration, repetitions and schemes.

use anabranch_core::time::Span;

use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{ANY_TIME, Flag, Form, IntegerIn, OneOf, SOME_TIME, Text, Texts};
use crate::reader::Reader;
use crate::section::{Described, section};

/// Maximum number of seeds, enough for useful intervals.
const MOST_SEEDS: u64 = 100_000;

/// Largest seed of a TOML file.
const LARGEST_SEED: u64 = i64::MAX as u64;

/// Settings of the runs of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Condition that ends a run.
    pub stop: Stop,
    /// Schemes for flows without one of their own, which run one after the other, as expressions of
    /// [`Scenario::vocabulary`](crate::Scenario::vocabulary). They are not checked here.
    pub schemes: Vec<String>,
    /// Seeds. Each scheme runs once with each of them.
    pub seeds: Vec<u64>,
    /// Name of the profile. It is not checked here.
    pub profile: String,
    /// Start of flows without a start of their own.
    pub start: Span,
    /// Time after `start` that is left out of the goodput.
    pub warmup: Span,
    /// Set if one-way delays of packets with DATA are measured.
    pub delays: bool,
}

/// Condition that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Run until this time.
    After(Span),
    /// Run until every flow with an end has been delivered.
    Transfer {
        /// Time at which the run is aborted.
        cap: Option<Span>,
    },
}

impl Run {
    /// Returns the latest end of the run.
    pub fn limit(&self) -> Option<Span> {
        match self.stop {
            Stop::After(duration) => Some(duration),
            Stop::Transfer { cap } => cap,
        }
    }
}

section! {
    /// Duration, repetitions and schemes, `[run]`.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RunRows {
        /// End the run when every flow with an end has been delivered; the default time limit is seven simulated days.
        stop: Option<()> = "stop" [optional "at `duration`"] OneOf(&[("transfer", ())]);
        /// End of the run, required without `stop`; with `stop`, time limit of the run.
        duration: Option<Span> = "duration" [optional "none"] SOME_TIME;
        /// Schemes to run, each a name or an expression such as `"cmt(rtx=rtx-asap)"`; `"all"` means all except those of
        /// the file. See [Schemes](schemes.md).
        schemes: Vec<String> = "schemes" [or vec!["cmt".to_owned()]] Texts;
        /// Each scheme runs once with each seed; `20` means 1 to 20.
        seeds: Vec<u64> = "seeds" [or vec![1]] Seeds;
        /// The rules around the schemes. See [Profiles](profiles.md).
        profile: String = "profile" [or "rfc9260".to_owned()] ProfileName;
        /// Default start of flows, and start of the goodput measurement.
        start: Span = "start" [or Span::ZERO] ANY_TIME;
        /// Time after `start` that goodput excludes. See [Figures of a run](figures.md).
        warmup: Span = "warmup" [or Span::ZERO] ANY_TIME;
        /// Measure the [one-way delays](figures.md#one-way-delays) of packets with DATA.
        delays: bool = "delays" [unless false] Flag;
    }
}

impl Described for Run {
    type Rows = RunRows;

    fn from_rows(rows: RunRows, reader: &mut Reader<'_>) -> Option<Run> {
        let RunRows { schemes, seeds, profile, start, warmup, delays, .. } = rows;
        let stop = match (rows.duration, rows.stop) {
            (cap, Some(())) => Stop::Transfer { cap },
            (Some(duration), None) => Stop::After(duration),
            (None, None) => return missing_end(reader),
        };
        check_times(reader, stop, start, warmup);
        Some(Run { stop, schemes, seeds, profile, start, warmup, delays })
    }

    fn to_rows(&self) -> RunRows {
        let (stop, duration) = match self.stop {
            Stop::After(duration) => (None, Some(duration)),
            Stop::Transfer { cap } => (Some(()), cap),
        };
        let Run { schemes, seeds, profile, .. } = self.clone();
        let Run { start, warmup, delays, .. } = *self;
        RunRows { stop, duration, schemes, seeds, profile, start, warmup, delays }
    }

    fn read(mut reader: Reader<'_>) -> Option<Run> {
        use crate::section::Section as _;
        let rows = RunRows::read_rows(&mut reader);
        if rows.is_none() && !reader.has("duration") && !reader.has("stop") {
            missing_end::<()>(&reader);
        }
        let run = rows.and_then(|rows| Run::from_rows(rows, &mut reader));
        reader.finish();
        run
    }
}

fn missing_end<T>(reader: &Reader<'_>) -> Option<T> {
    reader.missing("duration", "a `duration` such as \"60 s\", or `stop = \"transfer\"`".to_owned());
    None
}

/// Name of a profile, which the caller checks.
struct ProfileName;

impl Form for ProfileName {
    type Output = String;

    fn expected(&self) -> String {
        Text.expected()
    }

    fn read(&self, node: &Node) -> Result<String, Fault> {
        Text.read(node)
    }

    fn write(&self, value: &String) -> String {
        Text.write(value)
    }

    fn about(&self) -> About {
        let python = "Literal[\"rfc9260\", \"ns2\", \"net\"]";
        About::plain("`\"rfc9260\"`, `\"ns2\"`, `\"net\"`", python)
    }
}

/// Reports a run without time for the measurement.
fn check_times(reader: &Reader<'_>, stop: Stop, start: Span, warmup: Span) {
    let (Stop::After(limit) | Stop::Transfer { cap: Some(limit) }) = stop else { return };
    let conflict = |key, message: &str| {
        let help = "make `duration` longer or this shorter";
        reader.fault(key, Fault::explained(ProblemKind::Conflict, message, help));
    };
    if start >= limit {
        conflict("start", "no flow starts before the run is over");
    } else if start + warmup >= limit {
        conflict("warmup", "no time is left to measure: `start` and `warmup` take the whole run");
    }
}

/// Number of seeds, or a list of them.
struct Seeds;

impl Form for Seeds {
    type Output = Vec<u64>;

    fn expected(&self) -> String {
        "a number of seeds such as 20, or a list of them such as [1, 5, 9]".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<u64>, Fault> {
        match &node.value {
            Value::Integer(_) => {
                IntegerIn::<u64>(1..=MOST_SEEDS).read(node).map(|count| (1..=count).collect())
            }
            Value::List(items) if !items.is_empty() => {
                let seeds = items.iter().map(|item| {
                    let seed = IntegerIn::<u64>(0..=LARGEST_SEED).read(item);
                    seed.map_err(|fault| fault.at(&item.origin))
                });
                let seeds: Vec<u64> = seeds.collect::<Result<_, _>>()?;
                no_seed_twice(&seeds).map(|()| seeds)
            }
            Value::List(_) => Err(Fault::invalid(self.expected(), "an empty list")),
            other => Err(Fault::invalid(self.expected(), other.to_string())),
        }
    }

    fn write(&self, value: &Vec<u64>) -> String {
        let counted = value.iter().copied().eq(1..=value.len() as u64);
        if counted { value.len().to_string() } else { format!("{value:?}") }
    }

    fn about(&self) -> About {
        About::plain("number from 1 to 100,000, or a list of numbers", "int | Sequence[int]")
    }
}

/// Rejects repeated seeds, which would count as two runs in every interval.
fn no_seed_twice(seeds: &[u64]) -> Result<(), Fault> {
    let mut sorted = seeds.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let message = format!("seed {} is in the list twice", pair[0]);
            Err(Fault::explained(
                ProblemKind::Duplicate,
                message,
                "both runs would be the same run: remove one of the two",
            ))
        }
    }
}
