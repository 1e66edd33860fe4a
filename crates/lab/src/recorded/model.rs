//! A semi-Markov model of the rates of one trace, or of several that were recorded together.
//!
//! Each rate is in one of some bins: that of outages, and bins with equal numbers of the other rates. A state is the bin of every
//! trace. The model has the durations of each state, the numbers of its transitions to other states, and quantiles of the rates of
//! each bin. Traces that were recorded together thus keep their correlation.
//!
//! The sections of the data form a circle: each begins when the one before it ends, and the first one follows the last. Each state
//! is thus left as often as it is entered, and the model spends the same part of the time in it as the data.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anabranch_core::time::Span;
use anabranch_scenario::units::{format_span, parse_span};
use anabranch_sim::{Seeds, Stream};
use serde::Deserialize;
use thiserror::Error;
use toml_writer::ToTomlValue as _;

use super::statistics::quantile;

/// Version of the file format.
const FORMAT: u64 = 2;
/// Number of bins of each trace, by the number of traces. A model then has a few kB.
const BINS: [usize; 3] = [24, 7, 4];
/// Number of quantiles of a bin.
const QUANTILES: usize = 7;
/// Shares of these quantiles. The upper ones are close together, since the largest rates are rare.
const SHARES: [f64; QUANTILES] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0];
/// Largest change of a rate's place within its bin in a step, as a share of the bin.
const DRIFT: f64 = 0.25;
/// Largest number of states and of bins in a file.
const MOST_STATES: usize = 4096;

/// Model of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Text on the origin of the data, their licence, and the command that fitted the model.
    pub source: String,
    /// Time for which a rate holds.
    pub step: Span,
    /// Names of the traces.
    pub names: Vec<String>,
    /// Quantiles of the rates of each bin in bit/s, by trace.
    bins: Vec<Vec<[u64; QUANTILES]>>,
    /// Number of transitions to each other state, by state.
    transitions: Vec<Counts>,
    /// Number of visits of each duration in steps, by state.
    durations: Vec<Counts>,
}

/// Number of occurrences of each value.
type Counts = BTreeMap<u32, u32>;

/// Reason for which a model cannot be fitted or read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The traces do not suffice.
    #[error("{0}")]
    Unfit(&'static str),
    /// The file is invalid.
    #[error("{0}; `anabranch trace fit` writes such a file")]
    Document(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u64,
    source: String,
    step: String,
    trace: Vec<TraceDocument>,
    transitions: Vec<Vec<[u32; 2]>>,
    durations: Vec<Vec<[u32; 2]>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceDocument {
    name: String,
    bins_kbps: Vec<[f64; QUANTILES]>,
}

impl Model {
    /// Fits a model. A section has the rates of each trace at equal steps, in bit/s. Rates below `outage_bps` are outages.
    ///
    /// # Errors
    /// Returns [`ModelError::Unfit`] if there are no traces or more than three, or too few rates.
    pub fn fit(
        sections: &[Vec<Vec<u64>>],
        names: Vec<String>,
        step: Span,
        outage_bps: u64,
        source: String,
    ) -> Result<Model, ModelError> {
        let Some(&most) = names.len().checked_sub(1).and_then(|index| BINS.get(index)) else {
            return Err(ModelError::Unfit("a model has one to three traces; give one to three columns"));
        };
        let lows: Vec<Vec<u64>> =
            (0..names.len()).map(|trace| lower_ends(sections, trace, most, outage_bps)).collect();
        let mut members: Vec<Vec<Vec<u64>>> = lows.iter().map(|lows| vec![Vec::new(); lows.len()]).collect();
        let mut sequence = Vec::new();
        for section in sections {
            for at in 0..section.iter().map(Vec::len).min().unwrap_or(0) {
                let mut state = 0;
                for (trace, rates) in section.iter().enumerate() {
                    let bin = lows[trace].partition_point(|low| *low <= rates[at]) - 1;
                    members[trace][bin].push(rates[at]);
                    state = state * lows[trace].len() + bin;
                }
                sequence.push(state);
            }
        }
        if sequence.len() < 2 {
            return Err(ModelError::Unfit(
                "the traces have fewer than two steps; give longer ones, or a shorter step",
            ));
        }
        let bins = members.into_iter().map(|bins| bins.into_iter().map(quantiles).collect()).collect();
        let (transitions, durations) = count(&sequence, lows.iter().map(Vec::len).product());
        Ok(Model { source, step, names, bins, transitions, durations })
    }

    /// Generates the rates of each trace for some steps, in bit/s. They depend on the model and the seed only.
    pub fn generate(&self, steps: usize, seed: u64) -> Vec<Vec<u64>> {
        let mut stream = Seeds::new(seed, 0).stream(&["trace-model"]);
        let mut traces = vec![Vec::with_capacity(steps); self.names.len()];
        let mut places = vec![(usize::MAX, 0.0_f64); self.names.len()];
        let visits = self.durations.iter().map(|counts| counts.values().map(|&count| u64::from(count)).sum());
        let visits: Vec<(usize, u64)> = visits.enumerate().collect();
        let mut state = pick(&mut stream, visits.into_iter());
        let mut left = steps;
        while left > 0 {
            let duration = left.min(pick(&mut stream, weights(&self.durations[state])));
            for _ in 0..duration {
                self.add_rates(state, &mut places, &mut traces, &mut stream);
            }
            left -= duration;
            state = pick(&mut stream, weights(&self.transitions[state]));
        }
        traces
    }

    /// Adds the rates of a step. `places` are the former bin of each trace and the place within it.
    fn add_rates(
        &self,
        state: usize,
        places: &mut [(usize, f64)],
        traces: &mut [Vec<u64>],
        stream: &mut Stream,
    ) {
        let mut rest = state;
        for (trace, bins) in self.bins.iter().enumerate().rev() {
            let bin = rest % bins.len();
            let (former, place) = places[trace];
            // A reflected walk keeps places equally likely.
            let moved: f64 = place + DRIFT * (2.0 * stream.unit() - 1.0);
            let place = if bin == former { 1.0 - (1.0 - moved.abs()).abs() } else { stream.unit() };
            places[trace] = (bin, place);
            traces[trace].push(interpolate(&bins[bin], place));
            rest /= bins.len();
        }
    }

    /// Reads a file that [`to_toml`](Self::to_toml) wrote.
    ///
    /// # Errors
    /// Returns [`ModelError::Document`] if the text is not a model.
    pub fn parse(text: &str) -> Result<Model, ModelError> {
        let document: Document = toml::from_str(text)
            .map_err(|error| ModelError::Document(error.to_string().trim_end().to_owned()))?;
        let refused = |what: &str| Err(ModelError::Document(what.to_owned()));
        let Document { format, source, step, trace, transitions, durations } = document;
        if format != FORMAT {
            return refused("the format is of another version");
        }
        let Some(step) = parse_span(&step).ok().filter(|step| !step.is_zero()) else {
            return refused("`step` is not a time above zero");
        };
        let states = trace.iter().try_fold(1_usize, |states, trace| {
            states.checked_mul(trace.bins_kbps.len()).filter(|states| (1..=MOST_STATES).contains(states))
        });
        if trace.is_empty() || states != Some(transitions.len()) || states != Some(durations.len()) {
            return refused("`transitions` or `durations` does not have a list for each state");
        }
        let valid = |kbps: &f64| (0.0..=1e9).contains(kbps);
        let are_sorted = trace
            .iter()
            .flat_map(|trace| &trace.bins_kbps)
            .all(|bin| bin.is_sorted() && bin.iter().all(valid));
        if !are_sorted {
            return refused("`bins_kbps` has a rate out of order, below zero or above 1 Tbit/s");
        }
        check_states(&transitions, &durations)?;
        let bins = |trace: &TraceDocument| {
            let bin = |kbps: &[f64; QUANTILES]| kbps.map(|kbps| (kbps * 1000.0).round() as u64);
            trace.bins_kbps.iter().map(bin).collect()
        };
        let counts = |rows: Vec<Vec<[u32; 2]>>| -> Vec<Counts> {
            rows.into_iter().map(|row| row.into_iter().map(<(u32, u32)>::from).collect()).collect()
        };
        Ok(Model {
            source,
            step,
            bins: trace.iter().map(bins).collect(),
            names: trace.into_iter().map(|trace| trace.name).collect(),
            transitions: counts(transitions),
            durations: counts(durations),
        })
    }

    /// Returns the model as a file.
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "format = {FORMAT}\nsource = {}\nstep = {}\n",
            self.source.to_toml_value(),
            format_span(self.step).to_toml_value()
        );
        for (key, rows) in [("transitions", &self.transitions), ("durations", &self.durations)] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = [");
            for row in rows {
                let row: Vec<String> =
                    row.iter().map(|(value, count)| format!("[{value},{count}]")).collect();
                let _ = writeln!(text, "[{}],", row.join(","));
            }
            text += "]\n";
        }
        for (name, bins) in self.names.iter().zip(&self.bins) {
            let _ = write!(text, "\n[[trace]]\nname = {}\nbins_kbps = [\n", name.to_toml_value());
            for bin in bins {
                let kbps: Vec<String> =
                    bin.iter().map(|bps| format!("{}.{:03}", bps / 1000, bps % 1000)).collect();
                let _ = writeln!(text, "[{}],", kbps.join(","));
            }
            text += "]\n";
        }
        text
    }
}

/// Returns the transitions and durations of states in a circle of steps.
fn count(sequence: &[usize], states: usize) -> (Vec<Counts>, Vec<Counts>) {
    let mut transitions = vec![Counts::new(); states];
    let mut durations = vec![Counts::new(); states];
    let mut visits: Vec<(usize, u32)> =
        sequence.chunk_by(usize::eq).map(|visit| (visit[0], visit.len() as u32)).collect();
    if visits.len() > 1 && visits[0].0 == sequence[sequence.len() - 1] {
        // The last visit continues at the beginning of the circle.
        let last = visits.pop().map_or(0, |(_, duration)| duration);
        visits[0].1 += last;
    }
    for (&(state, duration), &(next, _)) in visits.iter().zip(visits.iter().cycle().skip(1)) {
        *durations[state].entry(duration).or_insert(0) += 1;
        *transitions[state].entry(next as u32).or_insert(0) += 1;
    }
    (transitions, durations)
}

/// Checks that each state that is entered is left after some steps, and that one is entered.
fn check_states(transitions: &[Vec<[u32; 2]>], durations: &[Vec<[u32; 2]>]) -> Result<(), ModelError> {
    let refused = |what: &str| Err(ModelError::Document(what.to_owned()));
    let is_left = |state: usize| transitions.get(state).is_some_and(|row| !row.is_empty());
    let leads_on = |[next, count]: &[u32; 2]| is_left(*next as usize) && *count > 0;
    if !transitions.iter().flatten().all(leads_on) || transitions.iter().all(Vec::is_empty) {
        return refused("`transitions` leads to a state that does not exist or is not left, or has no count");
    }
    let lasts = |row: &Vec<[u32; 2]>| row.iter().all(|[steps, count]| *steps > 0 && *count > 0);
    let is_complete = |(row, exits): (&Vec<_>, &Vec<_>)| lasts(row) && row.is_empty() == exits.is_empty();
    if !durations.iter().zip(transitions).all(is_complete) {
        return refused(
            "`durations` has no duration of a state in `transitions`, or one without steps or count",
        );
    }
    Ok(())
}

/// Returns values with their weights.
fn weights(counts: &Counts) -> impl Iterator<Item = (usize, u64)> + Clone {
    counts.iter().map(|(&value, &count)| (value as usize, u64::from(count)))
}

/// Draws a value by weight.
fn pick(stream: &mut Stream, weights: impl Iterator<Item = (usize, u64)> + Clone) -> usize {
    let sum = weights.clone().map(|(_, weight)| weight).sum::<u64>().max(1);
    let mut rest = stream.below(sum);
    for (value, weight) in weights {
        match rest.checked_sub(weight) {
            Some(less) => rest = less,
            None => return value,
        }
    }
    0
}

/// Returns the lower ends of the bins of a trace: zero for outages, and bins with equal numbers of the other rates.
fn lower_ends(sections: &[Vec<Vec<u64>>], trace: usize, most: usize, outage_bps: u64) -> Vec<u64> {
    let mut rates: Vec<u64> =
        sections.iter().flat_map(|section| section.get(trace).into_iter().flatten().copied()).collect();
    rates.sort_unstable();
    let outages = rates.partition_point(|rate| *rate < outage_bps);
    let rest = &rates[outages..];
    let mut lows = vec![0];
    if !rest.is_empty() {
        let bins = most - 1;
        let low = |bin: usize| rest[bin * rest.len() / bins];
        lows.extend((usize::from(outages == 0)..bins).map(low).filter(|low| *low > 0));
    }
    lows.dedup();
    lows
}

fn quantiles(mut rates: Vec<u64>) -> [u64; QUANTILES] {
    rates.sort_unstable();
    SHARES.map(|share| if rates.is_empty() { 0 } else { quantile(&rates, share).round() as u64 })
}

/// Returns the rate of a bin at a share from 0 to 1.
fn interpolate(bin: &[u64; QUANTILES], share: f64) -> u64 {
    let upper = SHARES.partition_point(|other| *other < share).clamp(1, QUANTILES - 1);
    let [low, high] = [bin[upper - 1] as f64, bin[upper] as f64];
    let part = (share - SHARES[upper - 1]) / (SHARES[upper] - SHARES[upper - 1]);
    (low + (high - low) * part).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{RateStatistics, correlation};

    const STEP: Span = Span::from_millis(500);
    const OUTAGE: u64 = 100_000;

    /// Returns sections of two traces with a common cause, outages of about 3 s, and slowly changing rates.
    fn recorded(seed: u64, sections: usize) -> Vec<Vec<Vec<u64>>> {
        let mut stream = Seeds::new(seed, 0).stream(&["recorded"]);
        let mut section = |_| {
            let (mut common, mut own, mut out) = (0.5, [0.5; 2], [0; 2]);
            let mut traces = vec![Vec::new(); 2];
            for _ in 0..1200 {
                common = 0.9 * common + 0.1 * stream.unit();
                for trace in 0..2 {
                    own[trace] = 0.9 * own[trace] + 0.1 * stream.unit();
                    if out[trace] == 0 && stream.chance(0.02) {
                        out[trace] = 1 + stream.below(11);
                    }
                    let rate = (common + own[trace]).powi(4) * 2e7;
                    traces[trace].push(if out[trace] > 0 { 0 } else { rate as u64 });
                    out[trace] = out[trace].saturating_sub(1);
                }
            }
            traces
        };
        (0..sections).map(&mut section).collect()
    }

    fn fitted() -> Model {
        let names = vec!["a".to_owned(), "b".to_owned()];
        Model::fit(&recorded(1, 20), names, STEP, OUTAGE, "a test".to_owned()).expect("enough rates")
    }

    #[test]
    fn generated_traces_match_sections_that_were_not_fitted() {
        let generated = fitted().generate(24_000, 7);
        let others = recorded(2, 20);
        for trace in 0..2 {
            let sections: Vec<&[u64]> = others.iter().map(|section| &section[trace][..]).collect();
            let source = RateStatistics::of(&sections, STEP, OUTAGE);
            let made = RateStatistics::of(&[&generated[trace]], STEP, OUTAGE);
            for (made, source) in made.quantiles_bps.iter().zip(&source.quantiles_bps) {
                assert!((made - source).abs() <= 0.1 * source + 1e5, "{made} for {source}");
            }
            let near = |made: f64, source: f64| (made / source - 1.0).abs() < 0.2;
            assert!(near(made.outages.per_hour, source.outages.per_hour), "{made:?} for {source:?}");
            assert!(near(made.outages.mean_s, source.outages.mean_s), "{made:?} for {source:?}");
        }
        let pooled =
            |trace: usize| others.iter().flat_map(|section| section[trace].clone()).collect::<Vec<_>>();
        let source = correlation(&pooled(0), &pooled(1)).expect("rates that vary");
        let made = correlation(&generated[0], &generated[1]).expect("rates that vary");
        assert!(source > 0.2 && (made - source).abs() < 0.1, "{made} for {source}");
    }

    #[test]
    fn model_is_small_and_the_same_after_writing_and_reading() {
        let model = fitted();
        let text = model.to_toml();
        assert!(text.len() < 16_000, "{} bytes", text.len());
        let read = Model::parse(&text).expect("a model");
        assert_eq!(read, model);
        assert_eq!(read.generate(1000, 3), model.generate(1000, 3));
        assert_ne!(read.generate(1000, 3), model.generate(1000, 4));
    }

    #[test]
    fn invalid_models_are_refused() {
        let text = fitted().to_toml();
        for (old, new) in [
            ("format = 2", "format = 1"),
            ("step = \"500 ms\"", "step = \"0 s\""),
            ("transitions = [\n", "transitions = [\n[],"),
            ("transitions = [\n[[", "transitions = [\n[[9999,1],["),
            ("durations = [\n[[", "durations = [\n[[0,1],["),
            ("durations = [\n[[1,", "durations = [\n[],[[1,"),
            ("bins_kbps = [\n[0.000", "bins_kbps = [\n[-1.0"),
            ("name", "title"),
        ] {
            assert!(text.contains(old), "{old}");
            assert!(Model::parse(&text.replacen(old, new, 1)).is_err(), "{old} to {new}");
        }
    }

    #[test]
    fn too_little_data_is_refused() {
        let fit = |sections: &[Vec<Vec<u64>>], traces: usize| {
            Model::fit(sections, vec!["a".to_owned(); traces], STEP, OUTAGE, String::new()).is_err()
        };
        assert!(
            fit(&[], 1) && fit(&[vec![vec![5]]], 1) && fit(&recorded(1, 1), 0) && fit(&recorded(1, 1), 4)
        );
        // A constant trace has one state.
        assert!(!fit(&[vec![vec![5; 9]]], 1));
    }
}
