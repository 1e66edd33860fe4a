//! The file of a model.

use std::fmt::Write as _;

use anabranch_scenario::units::{format_span, parse_span};
use serde::Deserialize;
use toml_writer::ToTomlValue as _;

use super::chain::{Chain, ChainRows, Counts};
use super::level::{Bin, Level, QUANTILES};
use super::{Model, ModelError, SIZES};

/// Version of the file format.
const FORMAT: u64 = 3;
/// Largest number of combinations of levels, and of bins of a level, in a file.
const MOST_STATES: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u64,
    source: String,
    step: String,
    levels: ChainRows,
    trace: Vec<TraceDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceDocument {
    name: String,
    level: Vec<LevelDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelDocument {
    bins_kbps: Vec<[f64; QUANTILES]>,
    transitions: Vec<Vec<[u32; 2]>>,
    durations: Vec<Vec<[u32; 2]>>,
}

impl Model {
    /// Reads a file that [`to_toml`](Self::to_toml) wrote.
    ///
    /// # Errors
    /// Returns [`ModelError::Document`] if the text is not a model.
    pub fn parse(text: &str) -> Result<Model, ModelError> {
        let document: Document = toml::from_str(text)
            .map_err(|error| ModelError::Document(error.to_string().trim_end().to_owned()))?;
        let refused = |what: &str| ModelError::Document(what.to_owned());
        if document.format != FORMAT {
            return Err(refused("the format is of another version"));
        }
        let step = parse_span(&document.step).ok().filter(|step| !step.is_zero());
        let step = step.ok_or_else(|| refused("`step` is not a time above zero"))?;
        let combinations = document.trace.iter().try_fold(1_usize, |count, trace| {
            count.checked_mul(trace.level.len()).filter(|count| (1..=MOST_STATES).contains(count))
        });
        let combinations = combinations.filter(|_| (1..=SIZES.len()).contains(&document.trace.len()));
        let combinations = combinations
            .ok_or_else(|| refused("a trace has no level, or there are too many traces or levels"))?;
        let levels = Chain::read(&document.levels, combinations)?;
        let mut names = Vec::new();
        let mut traces = Vec::new();
        for TraceDocument { name, level } in document.trace {
            names.push(name);
            traces.push(level.into_iter().map(read_level).collect::<Result<Vec<Level>, ModelError>>()?);
        }
        Ok(Model { source: document.source, step, names, levels, traces })
    }

    /// Returns the model as a file.
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "format = {FORMAT}\nsource = {}\nstep = {}\n\n[levels]\n",
            self.source.to_toml_value(),
            format_span(self.step).to_toml_value()
        );
        write_chain(&mut text, &self.levels);
        for (name, levels) in self.names.iter().zip(&self.traces) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n[[trace]]\nname = {}", name.to_toml_value());
            for level in levels {
                text += "\n[[trace.level]]\nbins_kbps = [\n";
                for bin in &level.bins {
                    let kbps: Vec<String> = bin.iter().map(|bps| kbps(*bps)).collect();
                    let _ = writeln!(text, "[{}],", kbps.join(","));
                }
                text += "]\n";
                write_chain(&mut text, &level.chain);
            }
        }
        text
    }
}

fn read_level(document: LevelDocument) -> Result<Level, ModelError> {
    let LevelDocument { bins_kbps, transitions, durations } = document;
    let valid = |kbps: &f64| (0.0..=1e9).contains(kbps);
    let are_sorted = bins_kbps.iter().all(|bin| bin.is_sorted() && bin.iter().all(valid));
    if bins_kbps.len() > MOST_STATES || !are_sorted {
        let what = "`bins_kbps` has too many bins, or a rate out of order, below zero or above 1 Tbit/s";
        return Err(ModelError::Document(what.to_owned()));
    }
    let chain = Chain::read(&ChainRows { transitions, durations }, bins_kbps.len())?;
    let bin = |kbps: &[f64; QUANTILES]| -> Bin { kbps.map(|kbps| (kbps * 1000.0).round() as u64) };
    Ok(Level { bins: bins_kbps.iter().map(bin).collect(), chain })
}

fn write_chain(text: &mut String, chain: &Chain) {
    for (key, rows) in [("transitions", &chain.transitions), ("durations", &chain.durations)] {
        let row = |row: &Counts| {
            let pairs: Vec<String> = row.iter().map(|(value, count)| format!("[{value},{count}]")).collect();
            format!("[{}],\n", pairs.join(","))
        };
        let rows: String = rows.iter().map(row).collect();
        let _ = write!(text, "{key} = [\n{rows}]\n");
    }
}

/// Returns a rate in kbit/s without needless digits.
fn kbps(bps: u64) -> String {
    match bps % 1000 {
        0 => (bps / 1000).to_string(),
        fraction => format!("{}.{fraction:03}", bps / 1000),
    }
}
