//! Table of a sweep: goodput by scheme and value.

use std::collections::BTreeSet;

use anabranch_lab::run::{Outcome, RunResult};
use anabranch_lab::statistics::Summary;

use super::arguments::RunArguments;
use super::plan::Plan;
use super::report::{LABEL, definitions, length, written};
use crate::output::{NO_BREAK, count, labelled};
use crate::seeds;
use crate::table::{TextTable, interval};

/// Results of one scheme.
struct Row<'a> {
    scheme: &'a str,
    /// Runs of the scheme at each value.
    cells: Vec<Vec<&'a RunResult>>,
}

impl Row<'_> {
    fn cell(&self, value: usize) -> Option<Summary> {
        Summary::of(self.cells[value].iter().map(|run| run.goodput_kbps))
    }

    /// Returns the mean over the values, each with the same weight. The samples are the means of seeds that have run at every
    /// value.
    fn mean(&self) -> Option<Summary> {
        let seeds = |cell: &Vec<&RunResult>| cell.iter().map(|run| run.seed).collect::<BTreeSet<u64>>();
        let all = self.cells.iter().map(seeds).reduce(|all, more| &all & &more)?;
        let of_seed = |seed: u64| {
            let runs = self.cells.iter().flatten().filter(move |run| run.seed == seed);
            runs.map(|run| run.goodput_kbps).sum::<f64>() / self.cells.len() as f64
        };
        Summary::of(all.into_iter().map(of_seed))
    }
}

/// Returns the schemes in the order of their first run.
fn rows<'a>(values: usize, owners: &[usize], outcome: &'a Outcome) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (job, result) in outcome.jobs.iter().zip(&outcome.results) {
        let index = rows.iter().position(|row| row.scheme == result.scheme).unwrap_or(rows.len());
        if index == rows.len() {
            rows.push(Row { scheme: &result.scheme, cells: vec![Vec::new(); values] });
        }
        rows[index].cells[owners[*job]].push(result);
    }
    rows
}

/// Returns the table with its notes. `owners` are the indices of the jobs' plans.
pub(crate) fn report(
    plans: &[Plan],
    owners: &[usize],
    arguments: &RunArguments,
    outcome: &Outcome,
) -> String {
    let rows = rows(plans.len(), owners, outcome);
    let mut text = String::new();
    if outcome.skipped > 0 {
        let done = outcome.results.len();
        text =
            format!("interrupted: {done} of {}\n\n", count((done + outcome.skipped) as u64, "run", "runs"));
    }
    if rows.is_empty() {
        return text;
    }
    text += &table(plans, &rows);
    text.push('\n');
    text += &notes(plans, arguments, outcome);
    text += &written(arguments, outcome.results.len());
    text
}

fn table(plans: &[Plan], rows: &[Row<'_>]) -> String {
    let mut table = TextTable::new().text("scheme");
    for value in plans.iter().filter_map(|plan| plan.value.as_ref()) {
        table = table.figure(&value.value);
    }
    table = table.figure("mean");
    for row in rows {
        let cells = (0..plans.len()).map(|value| interval(row.cell(value)));
        let mut all: Vec<String> = std::iter::once(row.scheme.to_owned()).chain(cells).collect();
        all.push(interval(row.mean()));
        table.row(all);
    }
    table.print()
}

fn notes(plans: &[Plan], arguments: &RunArguments, outcome: &Outcome) -> String {
    let Some(first) = plans.first() else { return String::new() };
    let key = first.value.as_ref().map_or("", |value| value.key.as_str());
    let mut text = labelled("scenario", &scenario_note(first, key, arguments), LABEL);
    for set in &arguments.set {
        text += &labelled("", &format!("with {set}"), LABEL);
    }
    text += &labelled("columns", key, LABEL);
    text += &definitions(&first.scenario, &outcome.results);
    let mut counted: Vec<&str> = Vec::new();
    for plan in plans {
        let definition = plan.conventions.goodput.definition();
        if !counted.contains(&definition) {
            counted.push(definition);
        }
    }
    let of_flows = if first.scenario.flows.len() > 1 { ", of all flows together" } else { "" };
    let what = format!("goodput in kbit/s{of_flows}: {}", counted.join("; or "));
    text += &labelled("cells", &what, LABEL);
    text += &labelled(
        "",
        "± is the 95 % confidence interval of the mean; where it is missing all runs gave the same, or there was one only",
        LABEL,
    );
    text += &labelled("mean", "over the columns, for each seed; ± is that of the mean over seeds", LABEL);
    text
}

/// Returns a note with the settings that are the same at every value of this key.
fn scenario_note(plan: &Plan, key: &str, arguments: &RunArguments) -> String {
    let run = &plan.scenario.run;
    let mut parts = vec![arguments.scenario.display().to_string()];
    if key != "run.profile" {
        parts.push(format!("profile {}", run.profile));
    }
    if !["run.duration", "run.stop"].contains(&key) {
        parts.push(length(run.stop));
    }
    if key != "run.seeds" {
        parts.push(seeds::in_words(&plan.scenario));
    }
    parts.iter().map(|part| part.replace(' ', NO_BREAK)).collect::<Vec<_>>().join(", ")
}
