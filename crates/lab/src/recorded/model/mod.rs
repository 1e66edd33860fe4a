//! A semi-Markov model of the rates of one trace, or of several that were recorded together.
//!
//! It has two time scales. Each recorded section is divided into blocks of about a minute, and the mean of each block is at one of
//! some levels. A semi-Markov chain of the levels of all traces describes how they follow each other, so that traces that were
//! recorded together keep their correlation. Within a level, another chain describes how the rates of a trace move between bins:
//! that of outages, and bins with equal numbers of the other rates. The model has the durations of each state, the numbers of its
//! transitions to other states, and quantiles of the rates of each bin.
//!
//! The sections of the data form a circle: each begins when the one before it ends, and the first one follows the last.

mod chain;
mod document;
mod level;

use anabranch_core::time::Span;
use anabranch_sim::Seeds;
use thiserror::Error;

use chain::Chain;
use level::{Course, Level};

/// Sizes of a model with some number of traces. A file then has some kB.
struct Sizes {
    /// Shares of the time below the levels after the first. The upper levels are rarer, since the largest rates differ most.
    levels: &'static [f64],
    /// Number of bins of each level.
    bins: usize,
}

/// Sizes of models with one, two and three traces.
const SIZES: [Sizes; 3] = [
    Sizes { levels: &[0.2, 0.4, 0.6, 0.75, 0.87, 0.95, 0.985], bins: 6 },
    Sizes { levels: &[0.3, 0.6, 0.8, 0.92, 0.98], bins: 4 },
    Sizes { levels: &[0.5, 0.85], bins: 4 },
];
/// Duration of a block in seconds. Sections are divided evenly, so that blocks are longer or shorter.
const BLOCK_S: f64 = 60.0;

/// Model of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Text on the origin of the data, their licence, and the command that fitted the model.
    pub source: String,
    /// Time for which a rate holds.
    pub step: Span,
    /// Names of the traces.
    pub names: Vec<String>,
    /// Chain of the levels. A state is the level of every trace.
    levels: Chain,
    /// Levels of each trace.
    traces: Vec<Vec<Level>>,
}

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
        let Some(sizes) = names.len().checked_sub(1).and_then(|index| SIZES.get(index)) else {
            return Err(ModelError::Unfit("a model has one to three traces; give one to three columns"));
        };
        let lengths: Vec<usize> =
            sections.iter().map(|section| section.iter().map(Vec::len).min().unwrap_or(0)).collect();
        if lengths.iter().sum::<usize>() < 2 {
            return Err(ModelError::Unfit(
                "the traces have fewer than two steps; give longer ones, or a shorter step",
            ));
        }
        let mut combined = vec![0; lengths.iter().sum()];
        let mut combinations = 1;
        let mut traces = Vec::new();
        for trace in 0..names.len() {
            let parts = sections.iter().zip(&lengths).filter(|(_, length)| **length > 0);
            let parts: Vec<&[u64]> = parts.map(|(section, length)| &section[trace][..*length]).collect();
            let (of_steps, count) = levels_of(&parts, sizes.levels, step);
            let mut rates = vec![Vec::new(); count];
            for (&rate, &level) in parts.iter().copied().flatten().zip(&of_steps) {
                rates[level].push(rate);
            }
            traces.push(rates.iter().map(|rates| Level::of(rates, sizes.bins, outage_bps)).collect());
            for (all, level) in combined.iter_mut().zip(of_steps) {
                *all = *all * count + level;
            }
            combinations *= count;
        }
        Ok(Model { source, step, names, levels: Chain::of(&combined, combinations), traces })
    }

    /// Generates the rates of each trace for some steps, in bit/s. They depend on the model and the seed only.
    pub fn generate(&self, steps: usize, seed: u64) -> Vec<Vec<u64>> {
        let mut stream = Seeds::new(seed, 0).stream(&["trace-model"]);
        let mut made = vec![Vec::with_capacity(steps); self.names.len()];
        let mut courses: Vec<Option<(usize, Course)>> = vec![None; self.names.len()];
        let mut visit = self.levels.enter(&mut stream);
        let mut left = steps;
        while left > 0 {
            let duration = left.min(visit.left);
            let mut rest = visit.state;
            for (trace, levels) in self.traces.iter().enumerate().rev() {
                let number = rest % levels.len();
                let level = &levels[number];
                let course = match courses[trace] {
                    Some((former, course)) if former == number => course,
                    _ => level.enter(&mut stream),
                };
                let (_, course) = courses[trace].insert((number, course));
                made[trace].extend((0..duration).map(|_| level.rate(course, &mut stream)));
                rest /= levels.len();
            }
            left -= duration;
            visit = self.levels.leave(visit.state, &mut stream);
        }
        made
    }
}

/// Returns the level of each step of a trace, and the number of levels.
fn levels_of(sections: &[&[u64]], shares: &[f64], step: Span) -> (Vec<usize>, usize) {
    let block_steps = (BLOCK_S / step.as_secs_f64()).max(1.0);
    let mut means = Vec::new();
    for section in sections {
        let blocks = (section.len() as f64 / block_steps).round().max(1.0) as usize;
        let end = |block: usize| block * section.len() / blocks;
        for block in (0..blocks).map(|block| &section[end(block)..end(block + 1)]) {
            let sum: u128 = block.iter().map(|rate| u128::from(*rate)).sum();
            means.extend(vec![(sum / block.len() as u128) as u64; block.len()]);
        }
    }
    let mut sorted = means.clone();
    sorted.sort_unstable();
    let mut lows: Vec<u64> =
        shares.iter().map(|share| sorted[(share * sorted.len() as f64) as usize]).collect();
    // A level without a step would have no rates.
    lows.retain(|low| *low > sorted[0]);
    lows.dedup();
    let count = lows.len() + 1;
    (means.iter().map(|mean| lows.partition_point(|low| low <= mean)).collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{RateStatistics, correlation};

    const STEP: Span = Span::from_millis(500);
    const OUTAGE: u64 = 100_000;

    /// Returns sections of two traces with a common level that changes every 300 s in the mean, and outages of about 3 s.
    fn recorded(seed: u64, sections: usize) -> Vec<Vec<Vec<u64>>> {
        let mut stream = Seeds::new(seed, 0).stream(&["recorded"]);
        let mut section = |_| {
            let (mut level, mut own, mut out) = (stream.unit(), [0.5; 2], [0; 2]);
            let mut traces = vec![Vec::new(); 2];
            for _ in 0..1200 {
                if stream.chance(1.0 / 600.0) {
                    level = stream.unit();
                }
                for trace in 0..2 {
                    own[trace] = 0.9 * own[trace] + 0.1 * stream.unit();
                    if out[trace] == 0 && stream.chance(0.02) {
                        out[trace] = 1 + stream.below(11);
                    }
                    let rate = (0.1 + level * level) * (0.5 + own[trace]).powi(4) * 2e7;
                    traces[trace].push(if out[trace] > 0 { 0 } else { rate as u64 });
                    out[trace] = out[trace].saturating_sub(1);
                }
            }
            traces
        };
        (0..sections).map(&mut section).collect()
    }

    fn fitted(sections: usize) -> Model {
        let names = vec!["a".to_owned(), "b".to_owned()];
        Model::fit(&recorded(1, sections), names, STEP, OUTAGE, "a test".to_owned()).expect("enough rates")
    }

    #[test]
    fn generated_traces_match_sections_that_were_not_fitted() {
        let generated = fitted(400).generate(480_000, 7);
        let others = recorded(2, 400);
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
            let [made, source] =
                [made, source].map(|statistics| statistics.autocorrelation[2].expect("30 s of rates"));
            assert!(source > 0.3 && (made - source).abs() < 0.15, "{made} for {source} after 30 s");
        }
        let pooled =
            |trace: usize| others.iter().flat_map(|section| section[trace].clone()).collect::<Vec<_>>();
        let source = correlation(&pooled(0), &pooled(1)).expect("rates that vary");
        let made = correlation(&generated[0], &generated[1]).expect("rates that vary");
        assert!(source > 0.2 && (made - source).abs() < 0.15, "{made} for {source}");
    }

    #[test]
    fn model_is_small_and_the_same_after_writing_and_reading() {
        let model = fitted(20);
        let text = model.to_toml();
        assert!(text.len() < 16_000, "{} bytes", text.len());
        let read = Model::parse(&text).expect("a model");
        assert_eq!(read, model);
        assert_eq!(read.generate(1000, 3), model.generate(1000, 3));
        assert_ne!(read.generate(1000, 3), model.generate(1000, 4));
    }

    #[test]
    fn invalid_models_are_refused() {
        let text = fitted(20).to_toml();
        let chain = "transitions = [[[0,1]]]\ndurations = [[[1,1]]]\n";
        let more_traces =
            format!("[[trace]]\nname = 'c'\n[[trace.level]]\nbins_kbps = [[0,1,2,3,4,5,6]]\n{chain}");
        for (old, new) in [
            ("format = 3", "format = 2"),
            ("step = \"500 ms\"", "step = \"0 s\""),
            ("transitions = [\n", "transitions = [\n[],"),
            ("transitions = [\n[[", "transitions = [\n[[9999,1],["),
            ("durations = [\n[[", "durations = [\n[[0,1],["),
            ("durations = [\n", "durations = [\n[],"),
            ("bins_kbps = [\n[0,", "bins_kbps = [\n[-1,"),
            ("bins_kbps = [\n", "bins_kbps = [\n[0,0,0,0,0,0,0],\n"),
            ("name", "title"),
            ("[[trace.level]]", "[[trace.other]]"),
            ("\n[[trace]]\n", &format!("\n{more_traces}{more_traces}[[trace]]\n")),
        ] {
            assert!(text.contains(old), "{old}");
            assert!(Model::parse(&text.replacen(old, new, 1)).is_err(), "{old} to {new}");
        }
    }

    #[test]
    fn counts_of_any_size_are_generated_from() {
        let most = u32::MAX;
        let chain = format!("transitions = [[[0,{most}]]]\ndurations = [[[{most},{most}],[1,{most}]]]\n");
        let bins = "bins_kbps = [[0, 1, 2, 3, 4, 5, 1e9]]\n";
        let text = format!(
            "format = 3\nsource = ''\nstep = '1 s'\n[levels]\n{chain}[[trace]]\nname = 'a'\n[[trace.level]]\n{bins}{chain}"
        );
        let model = Model::parse(&text).expect("a model");
        assert_eq!(model.generate(100, 1)[0].len(), 100);
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
