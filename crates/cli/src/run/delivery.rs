//! Tables of `anabranch run` about videos, forwarded programs and abandoned messages.

use anabranch_lab::run::{AbandonedResult, ConnectionResult, FlowResult, RunResult};
use anabranch_lab::video::{FateCounts, FrameType, VideoResult};

use crate::output::labelled;
use crate::table::{TextTable, mean};

pub(super) type SchemeRuns<'a> = (&'a str, &'a [&'a RunResult]);

/// Returns the tables with their notes. The tables are empty if no flow has videos, programs or abandoned messages. Labels of notes take
/// `label` columns.
pub(super) fn tables(groups: &[SchemeRuns<'_>], label: usize) -> String {
    videos(groups, label) + &connections(groups, label) + &abandonments(groups)
}

/// Returns the figures of all runs for each scheme and flow for which `of` returns one.
fn each_flow<'a, T>(
    groups: &[SchemeRuns<'a>],
    of: impl Fn(&'a FlowResult) -> Option<T>,
) -> Vec<(&'a str, &'a str, Vec<T>)> {
    let mut found = Vec::new();
    for (scheme, runs) in groups {
        let flows = runs.first().map_or(0, |run| run.flows.len());
        for index in 0..flows {
            let results: Vec<T> = runs.iter().filter_map(|run| of(run.flows.get(index)?)).collect();
            if let Some(first) = runs.first().filter(|_| !results.is_empty()) {
                found.push((*scheme, first.flows[index].name.as_str(), results));
            }
        }
    }
    found
}

fn videos(groups: &[SchemeRuns<'_>], label: usize) -> String {
    let flows = each_flow(groups, |flow| flow.video.as_ref());
    let Some((.., first)) = flows.first() else { return String::new() };
    let frames = first.first().map_or(0, |video| video.frames);
    let mut table = TextTable::new().text("scheme").text("flow");
    for header in ["I", "P", "B", "lost", "late", "undec.", "decodable\n%", "stalls", "stalls\ns"] {
        table = table.figure(header);
    }
    table = table.figure("delay\nms").figure("95th\nms");
    for (scheme, name, videos) in &flows {
        let figure = |of: &dyn Fn(&VideoResult) -> f64| mean(videos.iter().map(|video| of(video)));
        let count = |of: fn(&FateCounts) -> u64| figure(&|video| of(&video.fates.total()) as f64);
        let dropped = |kind| figure(&|video| video.fates.of(kind).dropped() as f64);
        let mut row = vec![(*scheme).to_owned(), (*name).to_owned()];
        row.extend(FrameType::ALL.map(dropped));
        row.extend([count(|all| all.lost), count(|all| all.late), count(|all| all.undecodable)]);
        row.push(figure(&|video| video.decodable_frame_ratio * 100.0));
        row.extend([figure(&|video| video.stalls as f64), figure(&|video| video.stall_s)]);
        let delays = videos.iter().filter_map(|video| video.delay);
        row.extend([mean(delays.clone().map(|delay| delay.mean_ms)), mean(delays.map(|delay| delay.p95_ms))]);
        table.row(row);
    }
    let mut text = format!("\n{}", table.print());
    let about = format!("frames not shown, by type and then by fate; {frames} frames in a run");
    text += &labelled("I, P, B ...", &about, label);
    let not_due = videos_cut(&flows);
    if not_due > 0 {
        let note = format!("{not_due} frames at most were not due when a run ended, and are not counted");
        text += &labelled("", &note, label);
    }
    text
}

fn videos_cut(flows: &[(&str, &str, Vec<&VideoResult>)]) -> u64 {
    flows.iter().flat_map(|(.., videos)| videos.iter().map(|video| video.not_due)).max().unwrap_or(0)
}

fn connections(groups: &[SchemeRuns<'_>], label: usize) -> String {
    let flows = each_flow(groups, |flow| (!flow.connections.is_empty()).then_some(&flow.connections));
    if flows.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new().text("scheme").text("flow").text("program");
    for header in ["kbit/s", "requests", "answered", "median ms", "99 % ms"] {
        table = table.figure(header);
    }
    for (scheme, name, runs) in &flows {
        for (index, first) in runs[0].iter().enumerate() {
            let figure = |of: fn(&ConnectionResult) -> f64| mean(runs.iter().map(|all| of(&all[index])));
            let time = |of: fn(&ConnectionResult) -> Option<f64>| match of(first) {
                Some(_) => mean(runs.iter().filter_map(|all| of(&all[index]))),
                None => "-".to_owned(),
            };
            table.row(vec![
                (*scheme).to_owned(),
                (*name).to_owned(),
                first.name.clone(),
                figure(|each| each.goodput_kbps),
                figure(|each| each.sent as f64),
                figure(|each| each.completed as f64),
                time(|each| each.median_ms),
                time(|each| each.p99_ms),
            ]);
        }
    }
    let legend = [
        (
            "kbit/s",
            "bytes of a download, of answered requests with their responses, or of datagrams that arrived",
        ),
        ("requests", "keystrokes, requests or datagrams that were due after the warm-up"),
        ("answered", "those whose response was complete at the end of the run; datagrams that arrived"),
        (
            "median, 99%",
            "time from when a request was due to the end of its response, or of a datagram to its arrival",
        ),
    ];
    let legend: String = legend.iter().map(|(name, text)| labelled(name, text, label)).collect();
    format!("\n{}{legend}", table.print())
}

fn abandonments(groups: &[SchemeRuns<'_>]) -> String {
    let flows = each_flow(groups, |flow| flow.abandoned);
    if flows.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new().text("scheme").text("flow").figure("messages\nabandoned");
    for header in ["unsent", "by retr.", "by lifetime", "by priority", "by streams", "KiB", "FORWARD-\nTSN"] {
        table = table.figure(header);
    }
    for (scheme, name, all) in &flows {
        let figure = |of: fn(&AbandonedResult) -> u64| mean(all.iter().map(|each| of(each) as f64));
        table.row(vec![
            (*scheme).to_owned(),
            (*name).to_owned(),
            figure(|each| each.messages),
            figure(|each| each.unsent),
            figure(|each| each.by_retransmissions),
            figure(|each| each.by_lifetime),
            figure(|each| each.by_priority),
            figure(|each| each.by_streams),
            mean(all.iter().map(|each| each.bytes as f64 / 1024.0)),
            figure(|each| each.forward_tsns),
        ]);
    }
    format!("\n{}", table.print())
}
