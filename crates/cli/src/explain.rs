//! `anabranch explain`.

use std::path::PathBuf;

use anabranch_lab::explain::{
    self, Choice, ExplainError, Explanation, FlowExplanation, PathExplanation, Placement,
};
use anabranch_lab::statistics::total;
use anyhow::Context;
use clap::Args;

use crate::exit::{CommandError, Status};
use crate::output::{self, NO_BREAK, Reader, labelled};
use crate::table::{TextTable, mean, shares};

const EXAMPLES: &str = "\
Examples:
  Trace two schemes with one seed, and explain how they spent their time:
    anabranch run scenarios/two-path.toml --schemes sctp,cmt --seeds 7, \\
        --trace out/trace
    anabranch explain out/trace
  Explain one of the runs:
    anabranch explain out/trace/cmt-seed7
  Explain one flow of several:
    anabranch explain out/trace/cmt+sctp-seed1 --flow multipath
  Write the figures as JSON:
    anabranch explain out/trace --json > explained.jsonl

Exit status: 0 if all traces were explained (a note reports traces that end
early); 1 if a trace is broken, incomplete or of another version; 2 if a
folder contains no trace, or no flow has the given name.";

/// Columns for the labels of notes.
const LABEL: usize = 10;

/// Summarise the traces of runs: use of time and capacity.
///
/// A run's traces are what `anabranch run --trace DIR` writes into a folder below DIR. Given DIR, all runs in it are
/// explained one after the other, and compared at the end.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// Trace folder of a run, or a folder of several trace folders
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Explain this flow only; data in the reverse direction of a flow is called NAME-reverse
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,

    /// Print one JSON object per run and line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<Status, CommandError> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for run in &arguments.runs {
        for folder in explain::find_runs(run).map_err(stopped)? {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    let mut explained = Vec::new();
    for folder in &folders {
        let mut explanation = explain::explain(folder).map_err(stopped)?;
        if let Some(flow) = &arguments.flow {
            keep(&mut explanation, flow)?;
        }
        let text = match arguments.json {
            true => {
                serde_json::to_string(&explanation).context("an explanation cannot be written as JSON")?
                    + "\n"
            }
            false => block(&explanation),
        };
        if output::print(&text) == Reader::Gone {
            return Ok(Status::Success);
        }
        explained.push(explanation);
    }
    if !arguments.json && explained.len() > 1 {
        output::print(&comparison(&explained));
    }
    Ok(Status::Success)
}

fn stopped(error: ExplainError) -> CommandError {
    match error {
        ExplainError::NotATrace { .. } => CommandError::usage(error),
        error => CommandError::from(anyhow::Error::new(error)),
    }
}

/// Removes all other flows.
fn keep(explanation: &mut Explanation, name: &str) -> Result<(), CommandError> {
    let names: Vec<String> = explanation.flows.iter().map(|flow| flow.name.clone()).collect();
    explanation.flows.retain(|flow| flow.name == name);
    match explanation.flows.is_empty() {
        false => Ok(()),
        true => {
            let folder = &explanation.folder;
            let known = names.join(", ");
            Err(CommandError::usage(format!("--flow: {folder} has no flow `{name}`; there are: {known}")))
        }
    }
}

/// Returns the text about one run.
fn block(explanation: &Explanation) -> String {
    let Explanation { scheme, seed, profile, folder, .. } = explanation;
    let goodput = match explanation.goodput_kbps {
        Some(goodput) => format!(", goodput {} kbit/s", mean([goodput])),
        None => String::new(),
    };
    let seed = seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
    let mut text = format!("{scheme}{seed}, profile {profile}{goodput}: {folder}\n");
    for note in &explanation.notes {
        text += &labelled("note", note, LABEL);
    }
    for flow in &explanation.flows {
        text.push('\n');
        text += &flow_block(flow);
    }
    text + "\n"
}

fn flow_block(flow: &FlowExplanation) -> String {
    let FlowExplanation { name, scheme, from_s, until_s, .. } = flow;
    let mut text = format!("{name} ({scheme}), {from_s} s to {until_s} s\n");
    text += &sentences("Where the time went", &flow.time_findings);
    text += &sentences("Where the capacity went", &flow.capacity_findings);
    text += &titled("Time of each path in %", &path_times(flow));
    text += &titled("Means of each path while in service, and time-outs", &path_means(flow));
    text += &titled("Window cuts", &cuts(flow));
    text += &titled("Chunks declared lost", &losses(flow));
    text += &titled("Retransmitted chunks", &resent(flow));
    text += &placement("Where new data went", &flow.scheduling);
    text += &placement("Where chunks were retransmitted", &flow.rerouting);
    text + &titled("States", &states(flow))
}

fn sentences(title: &str, sentences: &[String]) -> String {
    let mut text = format!("\n{title}\n");
    for sentence in sentences {
        text += &labelled("  -", &unbroken(sentence), 4);
    }
    text
}

/// Keeps a number on one line with its unit.
fn unbroken(sentence: &str) -> String {
    let mut words = sentence.split(' ');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        text += if text.ends_with(|c: char| c.is_ascii_digit()) { NO_BREAK } else { " " };
        text += word;
    }
    text
}

/// Returns a table under its title, or nothing if it is empty.
fn titled(title: &str, table: &TextTable) -> String {
    if table.is_empty() {
        return String::new();
    }
    format!("\n{title}\n{}", table.print())
}

fn path_times(flow: &FlowExplanation) -> TextTable {
    let mut table = TextTable::new().text("path");
    // Few schemes pace.
    let paced = flow.paths.iter().any(|path| path.time.paced_s > 0.0);
    let paced_header: &[&str] = if paced { &["paced"] } else { &[] };
    let headers = ["window\nfull", "peer's\nwindow", "no\ndata", "lost\nwait"].iter().chain(paced_header);
    for header in headers.chain(&["passed\nover", "out of\nservice"]) {
        table = table.figure(header);
    }
    for path in &flow.paths {
        let time = &path.time;
        let room = [time.full_s, time.peer_window_s, time.no_data_s, time.lost_wait_s].into_iter();
        let parts =
            room.chain(paced.then_some(time.paced_s)).chain([time.passed_over_s, time.out_of_service_s]);
        let mut row = vec![path.name.clone()];
        row.extend(parts.map(|seconds| per_cent(seconds / flow.duration_s())));
        table.row(row);
    }
    table
}

fn path_means(flow: &FlowExplanation) -> TextTable {
    let mut table = TextTable::new().text("path");
    for header in ["cwnd\nKiB", "unused\nKiB", "srtt\nms", "used\n%", "T3", "silent\ns"] {
        table = table.figure(header);
    }
    for path in &flow.paths {
        table.row(vec![
            path.name.clone(),
            kib(path.mean_cwnd_bytes),
            kib(path.mean_unused_bytes),
            path.mean_srtt_ms.map_or_else(dash, |ms| format!("{ms:.1}")),
            path.used_share.map_or_else(dash, per_cent),
            path.timeouts.to_string(),
            format!("{:.2}", path.timeout_wait_s),
        ]);
    }
    table
}

fn cuts(flow: &FlowExplanation) -> TextTable {
    let mut table = TextTable::new().text("path").text("rule").figure("times").figure("by KiB");
    for path in &flow.paths {
        for cut in &path.cuts {
            let row = [&path.name, &cut.rule, &cut.times.to_string(), &kib(cut.bytes as f64)];
            table.row(row.map(String::clone).to_vec());
        }
    }
    table
}

fn losses(flow: &FlowExplanation) -> TextTable {
    let mut table = TextTable::new().text("path").text("cause").text("rule").figure("chunks");
    for loss in &flow.losses {
        let row = [&loss.path, &loss.cause, &loss.rule, &loss.chunks.to_string()];
        table.row(row.map(String::clone).to_vec());
    }
    table
}

fn resent(flow: &FlowExplanation) -> TextTable {
    let mut table =
        TextTable::new().text("cause").text("from").text("to").figure("chunks").figure("spurious");
    for resent in &flow.retransmissions.by_cause {
        let (chunks, spurious) = (resent.chunks.to_string(), spurious(flow, resent.spurious));
        let row = [&resent.cause, &resent.from, &resent.to, &chunks, &spurious];
        table.row(row.map(String::clone).to_vec());
    }
    table
}

fn placement(title: &str, placement: &Placement) -> String {
    let mut table = TextTable::new()
        .text("decision")
        .text("path")
        .text("rule")
        .figure("times")
        .text("figure")
        .figure("mean");
    for choice in placement.chosen.iter().chain(&placement.waits) {
        table.row(choice_row(choice));
    }
    let mut text = titled(title, &table);
    if !placement.refused.is_empty() {
        let refused = placement.refused.iter();
        let refused: Vec<String> = refused.map(|r| format!("{} {} {}", r.path, r.reason, r.times)).collect();
        text += &labelled("refused", &refused.join(", "), LABEL);
    }
    text
}

fn choice_row(choice: &Choice) -> Vec<String> {
    vec![
        choice.decision.clone(),
        choice.path.clone().unwrap_or_else(|| "wait".to_owned()),
        choice.rule.clone(),
        choice.times.to_string(),
        choice.figure.clone(),
        choice.mean.map_or_else(String::new, |figure| mean([figure])),
    ]
}

fn states(flow: &FlowExplanation) -> TextTable {
    let mut table = TextTable::new().figure("at s").text("path").text("state").text("rule");
    let mut all: Vec<_> =
        flow.paths.iter().flat_map(|path| path.states.iter().map(move |state| (path, state))).collect();
    all.sort_by(|a, b| a.1.at_s.total_cmp(&b.1.at_s));
    for (path, state) in all {
        let at = format!("{:.3}", state.at_s);
        table.row([&at, &path.name, &state.state, &state.rule].map(String::clone).to_vec());
    }
    table
}

/// Returns a comparison of runs with a row for each flow. Two tables fit a terminal of 80 columns.
fn comparison(explained: &[Explanation]) -> String {
    let several_flows = explained.iter().any(|run| run.flows.len() > 1);
    let flows = || explained.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow)));
    let beside = |headers: &[&str], cells: &dyn Fn(&Explanation, &FlowExplanation) -> Vec<String>| {
        let mut table = TextTable::new().text("scheme").figure("seed");
        if several_flows {
            table = table.text("flow");
        }
        for header in headers {
            table = table.figure(header);
        }
        for (run, flow) in flows() {
            let mut row = vec![run.scheme.clone(), run.seed.map_or_else(dash, |seed| seed.to_string())];
            row.extend(several_flows.then(|| flow.name.clone()));
            row.extend(cells(run, flow));
            table.row(row);
        }
        table.print()
    };
    let time = beside(&["goodput\nkbit/s", "closed\n%", "full\n%", "room\n%", "out\n%"], &time_cells);
    let count = beside(&["used\n%", "cuts", "sent\nagain", "spurious", "T3", "silent\ns"], &|_, flow| {
        count_cells(flow)
    });
    let mut text = format!("Side by side\n{time}\n{count}");
    text += &labelled("closed", "time in which only the peer's window kept data back", LABEL);
    let each = "of each path: window full, window with room, not in service, share of its rate that was used";
    text += &labelled("full ...", each, LABEL);
    if several_flows {
        text += &labelled("goodput", "that of all flows of the run together", LABEL);
    }
    text
}

fn time_cells(run: &Explanation, flow: &FlowExplanation) -> Vec<String> {
    let each = |figure: &dyn Fn(&PathExplanation) -> f64| {
        shares(&flow.paths.iter().map(|path| figure(path) / flow.duration_s()).collect::<Vec<_>>())
    };
    vec![
        run.goodput_kbps.map_or_else(dash, |goodput| mean([goodput])),
        per_cent(flow.peer_window.closed_share),
        each(&|path| path.time.full_s),
        each(&|path| path.room_s()),
        each(&|path| path.time.out_of_service_s),
    ]
}

fn count_cells(flow: &FlowExplanation) -> Vec<String> {
    let used: Option<Vec<f64>> = flow.paths.iter().map(|path| path.used_share).collect();
    let cuts: u64 = flow.paths.iter().flat_map(|path| &path.cuts).map(|cut| cut.times).sum();
    vec![
        used.map_or_else(dash, |used| shares(&used)),
        cuts.to_string(),
        flow.retransmissions.chunks.to_string(),
        spurious(flow, flow.retransmissions.spurious),
        flow.timeouts.to_string(),
        format!("{:.2}", total(flow.paths.iter().map(|path| path.timeout_wait_s))),
    ]
}

/// Returns the number of spurious retransmissions, or a dash if arrivals are unknown.
fn spurious(flow: &FlowExplanation, repeats: u64) -> String {
    if flow.arrivals_known { repeats.to_string() } else { dash() }
}

fn dash() -> String {
    "-".to_owned()
}

fn per_cent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn kib(bytes: f64) -> String {
    format!("{:.1}", bytes / 1024.0)
}
