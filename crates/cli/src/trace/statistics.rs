//! Output of `anabranch trace info`.

use std::fmt::Write as _;

use anabranch_core::time::{Rate, Span};
use anabranch_lab::recorded::{RateStatistics, correlation};
use serde_json::json;

use super::input::{Input, Recorded};
use crate::exit::CommandError;
use crate::output;

/// Rates of one trace by section.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) sections: Vec<Vec<u64>>,
}

impl Input {
    /// Returns the rates of each column, with a section for each file; or those of each file if no column is named.
    pub(super) fn groups(&self, step: Span) -> Result<Vec<Group>, CommandError> {
        let loaded = self.load()?;
        let names = self.column_names();
        if names.is_empty() {
            let group = |recorded: &Recorded| {
                Ok(Group { name: recorded.name.clone(), sections: vec![recorded.rates(step)?] })
            };
            return loaded.iter().map(group).collect();
        }
        let mut groups: Vec<Group> =
            names.iter().map(|name| Group { name: name.clone(), sections: Vec::new() }).collect();
        for (recorded, index) in loaded.iter().zip((0..names.len()).cycle()) {
            groups[index].sections.push(recorded.rates(step)?);
        }
        Ok(groups)
    }
}

/// Prints the statistics of each trace, and the correlation of each pair.
pub(super) fn print(groups: &[Group], step: Span, outage: Rate, as_json: bool) {
    let mut out = String::new();
    for Group { name, sections } in groups {
        let sections: Vec<&[u64]> = sections.iter().map(Vec::as_slice).collect();
        let found = RateStatistics::of(&sections, step, outage.as_bps());
        out += &if as_json { json_line(name, &found) } else { text(name, &found) };
    }
    for (index, one) in groups.iter().enumerate() {
        for other in &groups[index + 1..] {
            let pairs = one.sections.iter().zip(&other.sections).flat_map(|(a, b)| a.iter().zip(b));
            let (a, b): (Vec<u64>, Vec<u64>) = pairs.unzip();
            let found = correlation(&a, &b);
            out += &if as_json {
                format!("{}\n", json!({"traces": [one.name, other.name], "correlation": found}))
            } else {
                format!("correlation of {} and {}: {}\n", one.name, other.name, shown(found))
            };
        }
    }
    output::print(&out);
}

fn json_line(name: &str, found: &RateStatistics) -> String {
    format!("{}\n", json!({"trace": name, "statistics": found}))
}

fn text(name: &str, found: &RateStatistics) -> String {
    let mbps = |bps: f64| format!("{:.3}", bps / 1e6);
    let [q05, q25, q50, q75, q95] = found.quantiles_bps.map(mbps);
    let [lag1, lag5, lag30] = found.autocorrelation.map(shown);
    let outages = &found.outages;
    let mut text = format!("{name}\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  duration         {:.1} s", found.duration_s);
    let _ = writeln!(text, "  mean             {} Mbit/s", mbps(found.mean_bps));
    let _ = writeln!(text, "  5 to 95 %        {q05}, {q25}, {q50}, {q75}, {q95} Mbit/s");
    let _ = writeln!(
        text,
        "  outages          {:.2} % of the time, {:.1} per hour, {:.1} s in the mean, {:.1} s at most",
        100.0 * outages.share,
        outages.per_hour,
        outages.mean_s,
        outages.longest_s
    );
    let _ = writeln!(text, "  autocorrelation  {lag1} after 1 s, {lag5} after 5 s, {lag30} after 30 s");
    text
}

fn shown(correlation: Option<f64>) -> String {
    correlation.map_or_else(|| "-".to_owned(), |found| format!("{found:.2}"))
}
