//! Tables of a comparison.

use anabranch_lab::statistics::Summary;
use anyhow::Context;
use serde::Serialize;

use super::measured::{Measured, Pair, PathMeasured};
use super::plan::Comparison;
use crate::output::labelled;
use crate::table::{TextTable, interval, interval_of, mean};

/// Columns for the labels of notes.
const LABEL: usize = 12;

/// Returns a pair as a line of JSON.
pub(super) fn json_line(pair: &Pair) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        pair: &'a Pair,
        ratio: f64,
    }
    let line = serde_json::to_string(&Line { pair, ratio: pair.ratio() });
    Ok(line.context("a result cannot be written as JSON")? + "\n")
}

/// Returns the tables and their notes.
pub(super) fn report(comparison: &Comparison, pairs: &[Pair]) -> String {
    let groups: Vec<&[Pair]> = pairs.chunk_by(|one, other| one.scheme == other.scheme).collect();
    if groups.is_empty() {
        return String::new();
    }
    let mut text = goodput_table(&groups);
    text.push('\n');
    text += &path_table(&groups);
    text.push('\n');
    text + &notes(comparison, pairs)
}

fn summary(pairs: &[Pair], figure: impl Fn(&Measured) -> f64, on_sockets: bool) -> Option<Summary> {
    let side = |pair| side(pair, on_sockets);
    Summary::of(pairs.iter().map(|pair| figure(side(pair))))
}

fn side(pair: &Pair, on_sockets: bool) -> &Measured {
    if on_sockets { &pair.sockets } else { &pair.simulated }
}

fn goodput_table(groups: &[&[Pair]]) -> String {
    let flows = groups[0][0].simulated.flows.len();
    let mut table =
        TextTable::new().text("scheme").text("flow").figure("n").figure("goodput kbit/s\nsimulated");
    for header in
        ["\non sockets", "\nratio", "resent\nsimul.", "chunks\nsockets", "time-outs\nsimul.", "\nsockets"]
    {
        table = table.figure(header);
    }
    for pairs in groups {
        let whole = |on_sockets| summary(pairs, |run| run.goodput_kbps, on_sockets);
        let ratio = Summary::of(pairs.iter().map(Pair::ratio));
        let counts = |figure: fn(&Measured) -> u64, on_sockets| {
            mean(pairs.iter().map(|pair| figure(side(pair, on_sockets)) as f64))
        };
        let (resent, timeouts) = (|run: &Measured| run.retransmissions, |run: &Measured| run.timeouts);
        let name = if flows == 1 { pairs[0].simulated.flows[0].name.clone() } else { "all".to_owned() };
        let (scheme, n) = (pairs[0].scheme.clone(), pairs.len().to_string());
        let figures = [interval(whole(false)), interval(whole(true)), interval_of(ratio, 3)];
        let counted =
            [counts(resent, false), counts(resent, true), counts(timeouts, false), counts(timeouts, true)];
        table.row([scheme, name, n].into_iter().chain(figures).chain(counted).collect());
        for flow in (0..flows).filter(|_| flows > 1) {
            table.row(flow_row(pairs, flow));
        }
    }
    table.print()
}

fn flow_row(pairs: &[Pair], flow: usize) -> Vec<String> {
    let goodput = |run: &Measured| run.flows[flow].goodput_kbps;
    let ratio = |pair: &Pair| goodput(&pair.sockets) / goodput(&pair.simulated).max(f64::MIN_POSITIVE);
    let name = pairs[0].simulated.flows[flow].name.clone();
    let figures = [false, true].map(|on_sockets| interval(summary(pairs, goodput, on_sockets)));
    let mut row = vec![String::new(), name, String::new()];
    row.extend(figures);
    row.push(interval_of(Summary::of(pairs.iter().map(ratio)), 3));
    row.resize(10, String::new());
    row
}

fn path_table(groups: &[&[Pair]]) -> String {
    let mut table = TextTable::new().text("scheme").text("path");
    for header in ["share %\nsimul.", "\nsockets", "srtt ms\nsimul.", "\nsockets"] {
        table = table.figure(header);
    }
    for header in ["lost\nsimul.", "packets\nsockets", "queue\nsimul.", "drops\nsockets"] {
        table = table.figure(header);
    }
    for pairs in groups {
        for (index, path) in pairs[0].simulated.paths.iter().enumerate() {
            let scheme = if index == 0 { pairs[0].scheme.clone() } else { String::new() };
            let mut row = vec![scheme, path.name.clone()];
            let figures: [fn(&PathMeasured) -> Option<f64>; 4] = [
                |path| Some(path.share * 100.0),
                |path| path.srtt_ms,
                |path| Some((path.packets.lost + path.packets.dropped_outage) as f64),
                |path| Some(path.packets.dropped_queue as f64),
            ];
            for figure in figures {
                row.extend([false, true].map(|on_sockets| {
                    let values =
                        pairs.iter().filter_map(|pair| figure(side(pair, on_sockets).paths.get(index)?));
                    mean(values)
                }));
            }
            table.row(row);
        }
    }
    table.print()
}

fn notes(comparison: &Comparison, pairs: &[Pair]) -> String {
    let goodput = "user bytes delivered to the application, over the time after start and warm-up";
    let mut text = labelled("goodput", goodput, LABEL);
    let ratio = "goodput on sockets by simulated goodput of the same seed; ± is half a 95 % interval";
    text += &labelled("ratio", ratio, LABEL);
    let share = "of the chunk bytes of a flow that were acknowledged; srtt is a mean over the run; packets of both directions";
    text += &labelled("share", share, LABEL);
    if !comparison.changed.is_empty() {
        let both = format!("{}, as sockets need it", comparison.changed.join(", "));
        text += &labelled("both with", &both, LABEL);
    }
    if let Some(late) = Summary::of(pairs.iter().filter_map(|pair| pair.sockets.late_mean_ms)) {
        let late =
            format!("relays sent packets {:.2} ms late in the mean; a busy machine delays them", late.mean);
        text += &labelled("late", &late, LABEL);
    }
    text
}
