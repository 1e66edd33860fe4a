//! Tables of `anabranch run`.

use std::collections::BTreeSet;
use std::path::Path;

use anabranch_core::time::Span;
use anabranch_lab::run::{FlowResult, Outcome, RunResult};
use anabranch_lab::statistics::Summary;
use anabranch_scenario::units::format_span;
use anabranch_scenario::{Scenario, SchemeDefinition, Stop};

use super::arguments::RunArguments;
use super::delivery::{self, SchemeRuns};
use super::plan::Plan;
use super::window;
use crate::output::{NO_BREAK, count, labelled};
use crate::seeds;
use crate::table::{TextTable, interval, interval_of, mean, shares};

/// Maximum number of failures that are listed one by one.
const FAILURES_SHOWN: usize = 20;
/// Columns for the labels of notes.
pub(crate) const LABEL: usize = 12;

/// Results of a scheme.
struct Group<'a> {
    scheme: &'a str,
    runs: Vec<&'a RunResult>,
}

impl Group<'_> {
    fn goodput(&self) -> Option<Summary> {
        Summary::of(self.runs.iter().map(|run| run.goodput_kbps))
    }

    /// Returns Jain's index over the flows of each run.
    fn jain_index(&self) -> Option<Summary> {
        Summary::of(self.runs.iter().filter_map(|run| run.jain_index))
    }

    fn mean(&self, figure: impl Fn(&RunResult) -> f64) -> String {
        mean(self.runs.iter().map(|run| figure(run)))
    }

    fn shares(&self) -> Vec<f64> {
        let each: Vec<Vec<f64>> = self.runs.iter().map(|run| run.shares()).collect();
        let paths = each.first().map_or(0, Vec::len);
        let mean = |path: usize| each.iter().map(|run| run[path]).sum::<f64>() / each.len() as f64;
        (0..paths).map(mean).collect()
    }

    /// Returns `true` if all runs had the same results, as runs without random events have.
    fn is_deterministic(&self) -> bool {
        // These fields differ in any case.
        let alike = |run: &RunResult| {
            let mut run = RunResult { seed: 0, label: String::new(), digest: None, ..run.clone() };
            run.flows.iter_mut().for_each(|flow| flow.sha256 = None);
            run
        };
        let mut runs = self.runs.iter().map(|run| alike(run));
        let first = runs.next();
        runs.all(|run| Some(run) == first)
    }

    /// Returns the results of a flow in all runs.
    fn flow(&self, index: usize) -> impl Iterator<Item = &FlowResult> + Clone {
        self.runs.iter().filter_map(move |run| run.flows.get(index))
    }
}

/// Groups results by scheme, in the order of the first runs.
fn groups(results: &[RunResult]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for result in results {
        match groups.iter_mut().find(|group| group.scheme == result.scheme) {
            Some(group) => group.runs.push(result),
            None => groups.push(Group { scheme: &result.scheme, runs: vec![result] }),
        }
    }
    groups
}

/// Returns the tables and their notes.
pub(crate) fn report(plan: &Plan, arguments: &RunArguments, outcome: &Outcome) -> String {
    let groups = groups(&outcome.results);
    let mut text = String::new();
    if outcome.skipped > 0 {
        let done = outcome.results.len();
        text =
            format!("interrupted: {done} of {}\n\n", count((done + outcome.skipped) as u64, "run", "runs"));
    }
    if groups.is_empty() {
        return text;
    }
    text += &summary_table(&plan.scenario, &groups);
    text += &flow_table(&plan.scenario, &groups);
    let by_scheme: Vec<SchemeRuns<'_>> =
        groups.iter().map(|group| (group.scheme, group.runs.as_slice())).collect();
    text += &delivery::tables(&by_scheme, LABEL);
    text.push('\n');
    text += &notes(plan, arguments, &groups, &outcome.results);
    if let Some(note) = window::note(&plan.scenario, &plan.files, &outcome.results) {
        text += &labelled("window", &note, LABEL);
    }
    text += &transfers(&outcome.results);
    text += &written(arguments, outcome.results.len());
    text
}

fn summary_table(scenario: &Scenario, groups: &[Group<'_>]) -> String {
    let several_paths = scenario.paths.len() > 1;
    let mut table = TextTable::new().text("scheme").figure("n").figure("goodput\nkbit/s");
    if several_paths {
        table = table.figure("share\n%");
    }
    for header in
        ["resent\nchunks", "time-\nouts", "fast\nretr.", "spurious\nresent", "reorder\nKiB", "blocked\ns"]
    {
        table = table.figure(header);
    }
    for group in groups {
        let mut row = vec![group.scheme.to_owned(), group.runs.len().to_string(), interval(group.goodput())];
        if several_paths {
            row.push(shares(&group.shares()));
        }
        row.push(group.mean(|run| run.retransmissions as f64));
        row.push(group.mean(|run| run.timeouts as f64));
        row.push(group.mean(|run| run.fast_retransmits as f64));
        row.push(group.mean(|run| run.spurious_retransmissions as f64));
        row.push(group.mean(|run| run.peak_reorder_bytes as f64 / 1024.0));
        row.push(group.mean(|run| run.rwnd_blocked_s));
        table.row(row);
    }
    table.print()
}

/// Returns a table of flows, if there are several or if they are transfers.
fn flow_table(scenario: &Scenario, groups: &[Group<'_>]) -> String {
    let several = scenario.flows.len() > 1;
    let transfers = scenario.flows.iter().any(|flow| flow.kind.ends());
    if !several && !transfers {
        return String::new();
    }
    let mut table = TextTable::new().text("scheme");
    if several {
        table = table.text("flow").figure("goodput\nkbit/s").figure("of all\n%").figure("Jain's\nindex");
    }
    if transfers {
        table = table.figure("transfer time\ns").figure("finished\nruns");
    }
    for group in groups {
        for index in 0..scenario.flows.len() {
            let Some(first) = group.flow(index).next() else { continue };
            let mut row = vec![group.scheme.to_owned()];
            if several {
                row.extend(flow_cells(group, index, first));
                row.push(if index == 0 { interval_of(group.jain_index(), 3) } else { String::new() });
            }
            if transfers {
                let times = group.flow(index).filter_map(|flow| flow.transfer_s);
                let finished = times.clone().count();
                row.push(interval(Summary::of(times)));
                row.push(match scenario.flows[index].kind.ends() {
                    true => format!("{finished} of {}", group.runs.len()),
                    false => "-".to_owned(),
                });
            }
            table.row(row);
        }
    }
    format!("\n{}", table.print())
}

fn flow_cells(group: &Group<'_>, index: usize, first: &FlowResult) -> [String; 3] {
    let name = match first.scheme == group.scheme {
        true => first.name.clone(),
        false => format!("{} ({})", first.name, first.scheme),
    };
    let goodput = interval(Summary::of(group.flow(index).map(|flow| flow.goodput_kbps)));
    let part = |run: &&RunResult| run.flows[index].goodput_kbps / run.goodput_kbps.max(f64::MIN_POSITIVE);
    let parts: f64 = group.runs.iter().map(part).sum();
    [name, goodput, shares(&[parts / group.runs.len() as f64])]
}

/// Returns notes on the definition and origin of the figures.
fn notes(plan: &Plan, arguments: &RunArguments, groups: &[Group<'_>], results: &[RunResult]) -> String {
    let goodput = format!("{}; {}", plan.conventions.goodput.definition(), interval_note(groups));
    let mut text = labelled("scenario", &scenario_note(plan, arguments), LABEL);
    text += &definitions(&plan.scenario, results);
    text += &labelled("goodput", &goodput, LABEL);
    if plan.scenario.paths.len() > 1 {
        let names: Vec<&str> = plan.scenario.paths.iter().map(|path| path.name.as_str()).collect();
        let share = format!("of the packets with data that arrived, over {}", names.join("/"));
        text += &labelled("share", &share, LABEL);
    }
    let resent = "chunks retransmitted; of the spurious ones an earlier copy had arrived";
    text += &labelled("resent", resent, LABEL);
    text += &labelled("fast retr.", "SACKs that led to fast retransmissions", LABEL);
    text += &labelled("reorder", "most user bytes that a receiver held at once", LABEL);
    text += &labelled("blocked", "time in which only the peer's receive window kept data back", LABEL);
    let means = match plan.scenario.flows.len() {
        1 => "All but goodput and transfer time are plain means per run.",
        _ => {
            text += &labelled("fairness", "Jain's index of the flows' goodput: 1 if all are equal", LABEL);
            "All but goodput, transfer time and Jain's index are plain means per run, of the sums over all flows."
        }
    };
    text += &labelled("", means, LABEL);
    text
}

/// Returns the definitions of names that the scenario gave to schemes, if these were run.
pub(crate) fn definitions(scenario: &Scenario, results: &[RunResult]) -> String {
    let words = scenario.vocabulary();
    let is_part = |text: &str, name: &str| text.split([',', '+', '(']).any(|part| part == name);
    let flows = results.iter().flat_map(|run| run.flows.iter().map(|flow| flow.scheme.as_str()));
    let all: BTreeSet<&str> = results.iter().map(|run| run.scheme.as_str()).chain(flows).collect();
    let was_run = |name: &str| all.iter().any(|scheme| is_part(scheme, name));
    let run = scenario.schemes.iter().filter(|scheme| was_run(&scheme.name));
    let note = |scheme: &SchemeDefinition| {
        let expression =
            words.parse(&scheme.name).map_or(scheme.expression.clone(), |named| named.expression());
        let about = scheme.about.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
        labelled("scheme", &format!("{} is {expression}{about}", scheme.name), LABEL)
    };
    run.map(note).collect()
}

/// Returns the kind of interval of a scheme's goodput, or the reason for its absence.
fn interval_kind(group: &Group<'_>) -> &'static str {
    match group.goodput() {
        Some(Summary { half_width: Some(_), .. }) => "± is the 95 % confidence interval of the mean",
        Some(Summary { n: 2.., .. }) if group.is_deterministic() => "deterministic, no interval",
        Some(Summary { n: 2.., .. }) => "the same in every run, no interval",
        _ => "n = 1, no interval",
    }
}

/// Returns a note on the intervals of all schemes.
fn interval_note(groups: &[Group<'_>]) -> String {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for group in groups {
        let kind = interval_kind(group);
        match kinds.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, schemes)) => schemes.push(group.scheme),
            None => kinds.push((kind, vec![group.scheme])),
        }
    }
    let one_for_all = kinds.len() == 1;
    let notes = kinds.iter().map(|(kind, schemes)| {
        let kind = kind.replace(' ', NO_BREAK);
        if one_for_all { kind } else { format!("{kind} ({})", schemes.join(", ")) }
    });
    notes.collect::<Vec<_>>().join("; ")
}

fn scenario_note(plan: &Plan, arguments: &RunArguments) -> String {
    let run = &plan.scenario.run;
    let mut parts =
        vec![arguments.scenario.display().to_string(), format!("profile {}", run.profile), length(run.stop)];
    if run.start + run.warmup > Span::ZERO {
        parts.push(format!("counted from {} on", format_span(run.start + run.warmup)));
    }
    parts.push(seeds::in_words(&plan.scenario));
    parts.iter().map(|part| part.replace(' ', NO_BREAK)).collect::<Vec<_>>().join(", ")
}

/// Returns the length of a run in words.
pub(crate) fn length(stop: Stop) -> String {
    match stop {
        Stop::After(duration) => format_span(duration),
        Stop::Transfer { cap: Some(cap) } => {
            format!("until the transfers are complete, {} at most", format_span(cap))
        }
        Stop::Transfer { cap: None } => "until the transfers are complete".to_owned(),
    }
}

/// Returns a note on the integrity of transferred data.
fn transfers(results: &[RunResult]) -> String {
    let ended = |result: &RunResult| result.flows.iter().filter(|flow| flow.intact.is_some()).count();
    let total: usize = results.iter().map(ended).sum();
    if total == 0 {
        return String::new();
    }
    let flows = || results.iter().flat_map(|result| &result.flows);
    let intact = flows().filter(|flow| flow.intact == Some(true)).count();
    let hashes: BTreeSet<&str> =
        flows().filter(|flow| flow.intact == Some(true)).filter_map(|flow| flow.sha256.as_deref()).collect();
    let what = if total == results.len() { "runs" } else { "transfers" };
    let equal = format!("SHA-256 equal to what was sent in {intact} of {total} {what}");
    let hash = match (hashes.len(), hashes.first()) {
        (0, _) => String::new(),
        (1, Some(hash)) => format!("; {hash}"),
        _ => "; the made-up content depends on the seed, and --json has its hash for each run".to_owned(),
    };
    labelled("received bytes: ", &(equal + &hash), LABEL)
}

/// Returns a note on the places of captures and traces.
pub(crate) fn written(arguments: &RunArguments, runs: usize) -> String {
    let mut text = String::new();
    let inside = |folder: &Path| match &arguments.sweep {
        Some(sweep) => folder.join(format!("{}=VALUE", sweep.key)),
        None => folder.to_owned(),
    };
    if let Some(folder) = &arguments.pcap {
        let files = inside(folder).join("SCHEME-seedN.pcapng");
        text += &labelled("captures", &format!("{} ({runs} written)", files.display()), LABEL);
    }
    if let Some(folder) = &arguments.trace {
        let files = inside(folder).join("SCHEME-seedN").join("*.csv");
        let explain = format!("anabranch explain {}", inside(folder).display());
        text += &labelled("traces", &format!("{} (of {runs} runs); {explain}", files.display()), LABEL);
    }
    text
}

/// Returns the failed runs, one per line.
pub(crate) fn failures(results: &[RunResult]) -> String {
    let failed: Vec<String> = results
        .iter()
        .filter_map(|run| {
            Some(format!("failed: {}, seed {}: {}\n", run.scheme, run.seed, run.failure.as_ref()?))
        })
        .collect();
    let mut text: String = failed.iter().take(FAILURES_SHOWN).map(String::as_str).collect();
    if let Some(more) = failed.len().checked_sub(FAILURES_SHOWN).filter(|more| *more > 0) {
        text += &format!("and {more} more runs failed\n");
    }
    text
}
