//! `[run]`: how long, how often and with which schemes.

use anabranch_core::time::Span;

use super::document::{Node, Value};
use super::error::ProblemKind;
use super::fault::Fault;
use super::reader::Reader;
use super::shape::{ANY_TIME, Flag, IntegerIn, OneOf, SOME_TIME, Shape, Text, TextList};

/// Seeds at most: enough for any interval worth printing.
const MOST_SEEDS: u64 = 100_000;

/// The largest seed a TOML file can hold.
const LARGEST_SEED: u64 = i64::MAX as u64;

/// What is run and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// When a run ends.
    pub stop: Stop,
    /// Schemes to run one after the other, for flows that do not choose their own, as expressions of
    /// [`Scenario::vocabulary`](super::Scenario::vocabulary). Not checked here.
    pub schemes: Vec<String>,
    /// Each scheme is run once with each of these.
    pub seeds: Vec<u64>,
    /// Name of the set of protocol details to follow. Not checked here.
    pub profile: String,
    /// When flows start that do not say so themselves.
    pub start: Span,
    /// Time after `start` that is left out of the goodput.
    pub warmup: Span,
    /// Whether the one-way delays of packets with DATA are measured.
    pub delays: bool,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At this time.
    After(Span),
    /// When every flow that has an end has been delivered.
    Transfer {
        /// The time at which the run is given up.
        cap: Option<Span>,
    },
}

impl Run {
    /// The time no run goes beyond.
    pub fn limit(&self) -> Option<Span> {
        match self.stop {
            Stop::After(duration) => Some(duration),
            Stop::Transfer { cap } => cap,
        }
    }

    pub(super) fn read(mut reader: Reader<'_>) -> Option<Run> {
        let duration = reader.optional("duration", &SOME_TIME);
        let stop = reader.optional("stop", &OneOf(&[("transfer", ())]));
        let schemes = reader.optional("schemes", &TextList);
        let seeds = reader.or("seeds", &Seeds, vec![1]);
        let profile = reader.or("profile", &Text, "rfc9260".to_owned());
        let start = reader.or("start", &ANY_TIME, Span::ZERO);
        let warmup = reader.or("warmup", &ANY_TIME, Span::ZERO);
        let delays = reader.or("delays", &Flag, false);
        let stop = duration.zip(stop).and_then(|(duration, stop)| read_stop(&reader, duration, stop));
        if let (Some(stop), Some(start), Some(warmup)) = (stop, start, warmup) {
            check_times(&reader, stop, start, warmup);
        }
        reader.finish();
        let schemes = match schemes? {
            Some(schemes) => schemes.into_iter().map(|(scheme, _)| scheme).collect(),
            None => vec!["cmt".to_owned()],
        };
        Some(Run {
            stop: stop?,
            schemes,
            seeds: seeds?,
            profile: profile?,
            start: start?,
            warmup: warmup?,
            delays: delays?,
        })
    }
}

fn read_stop(reader: &Reader<'_>, duration: Option<Span>, stop: Option<()>) -> Option<Stop> {
    match (duration, stop) {
        (cap, Some(())) => Some(Stop::Transfer { cap }),
        (Some(duration), None) => Some(Stop::After(duration)),
        (None, None) => {
            reader.missing("duration", "a `duration` such as \"60 s\", or `stop = \"transfer\"`".to_owned());
            None
        }
    }
}

/// There has to be time left to measure in.
fn check_times(reader: &Reader<'_>, stop: Stop, start: Span, warmup: Span) {
    let (Stop::After(limit) | Stop::Transfer { cap: Some(limit) }) = stop else { return };
    let conflict = |key, message: &str| {
        let help = "make `duration` longer or this shorter";
        reader.fault(key, Fault::because(ProblemKind::Conflict, message, help));
    };
    if start >= limit {
        conflict("start", "no flow starts before the run is over");
    } else if start + warmup >= limit {
        conflict("warmup", "nothing is measured: `start` and `warmup` take the whole run");
    }
}

/// A number of seeds or a list of them.
struct Seeds;

impl Shape for Seeds {
    type Output = Vec<u64>;

    fn expected(&self) -> String {
        "a number of seeds such as 20, or a list of them such as [1, 5, 9]".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<u64>, Fault> {
        match &node.value {
            Value::Integer(_) => IntegerIn(1..=MOST_SEEDS).read(node).map(|count| (1..=count).collect()),
            Value::List(items) if !items.is_empty() => {
                let seeds = items.iter().map(|item| {
                    let seed = IntegerIn(0..=LARGEST_SEED).read(item);
                    seed.map_err(|fault| fault.at(&item.origin))
                });
                let seeds: Vec<u64> = seeds.collect::<Result<_, _>>()?;
                no_seed_twice(&seeds).map(|()| seeds)
            }
            Value::List(_) => Err(Fault::invalid(self.expected(), "an empty list")),
            other => Err(Fault::invalid(self.expected(), other.to_string())),
        }
    }
}

/// A seed run twice would count as two runs in every interval.
fn no_seed_twice(seeds: &[u64]) -> Result<(), Fault> {
    let mut sorted = seeds.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let message = format!("seed {} is in the list twice", pair[0]);
            Err(Fault::because(
                ProblemKind::Duplicate,
                message,
                "both runs would be the same run: leave one out",
            ))
        }
    }
}
