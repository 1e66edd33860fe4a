//! Reads the traces of a run in parallel, in the order of their times, and builds the explanation from the sums.

use std::path::Path;

use crate::explain::account::{Account, ChoiceSum, PathRow, PathSums, PlacementRow, PlacementSum};
use crate::explain::folder::{Folder, PACKETS, RunCounters};
use crate::explain::table::{Columns, Table};
use crate::explain::tally::Tally;
use crate::explain::{
    Abandonments, Choice, Cut, ExplainError, Explanation, FlowExplanation, HoleTime, Losses, PathExplanation,
    PathTime, PeerWindow, Placement, ReasonTime, Refusals, RetransmissionGroup, Retransmissions, StateChange,
    capacity, findings,
};
use anabranch_trace::{Sender, Vantage};

const PATHS: &Columns = &[
    "time_s",
    "path",
    "state",
    "cwnd_bytes",
    "outstanding_bytes",
    "lost_unsent_bytes",
    "srtt_ms",
    "queued_bytes",
];
const DECISIONS: &Columns = &[
    "time_s",
    "decision",
    "path",
    "tsn",
    "detail",
    "reason",
    "figure",
    "value",
    "refused",
    "cwnd_before_bytes",
    "cwnd_bytes",
];
const PACKET_COLUMNS: &Columns = &["time_s", "flow", "direction", "path", "event", "tsn", "chunk_bytes"];
const A_PATH: &str = "a path of the flow, as run.toml names them";

pub(super) fn explain(path: &Path) -> Result<Explanation, ExplainError> {
    let mut folder = Folder::open(path)?;
    let version = folder.manifest.version.clone();
    let senders = folder.manifest.senders.clone();
    let mut readers =
        senders.iter().map(|sender| Reader::open(&folder, sender)).collect::<Result<Vec<_>, _>>()?;
    let mut packets =
        Table::open(&folder.path.join(PACKETS), PACKET_COLUMNS, folder.limit(PACKETS), &version)?;
    while let Some(at) = packets.time() {
        let (flow, direction) = (packets.text(1)?, packets.text(2)?);
        let reader = readers.iter_mut().find(|r| r.sender.flow == flow && r.sender.direction == direction);
        // An end that only answers has no trace, and sends no DATA.
        if let Some(reader) = reader.filter(|reader| at <= reader.until) {
            reader.advance(at)?;
            reader.packet(at, &packets)?;
        }
        packets.advance()?;
    }
    let mut flows = Vec::new();
    let mut still_closed = false;
    for mut reader in readers {
        reader.advance(reader.until)?;
        reader.account.pass(reader.until);
        still_closed |= reader.account.is_blocked();
        for (decision, times) in reader.account.unknown.ranked(|times| *times) {
            let note = format!(
                "{}: {times} decisions `{decision}`, which this version does not know, are skipped",
                reader.sender.name
            );
            folder.notes.push(note);
        }
        flows.push(flow(&reader, &folder));
    }
    let manifest = folder.manifest;
    let mut explanation = Explanation {
        folder: path.display().to_string(),
        scheme: manifest.scheme,
        seed: manifest.seed,
        profile: manifest.profile,
        version,
        goodput_kbps: folder.ended.as_ref().and_then(|ended| ended.result.goodput_kbps),
        notes: folder.notes,
        flows,
    };
    // The run's own counters cover more than truncated traces.
    if let Some(ended) = folder.ended.filter(|_| folder.whole) {
        let differ = disagreements(&explanation, &ended.result, still_closed);
        explanation.notes.extend(differ);
    }
    Ok(explanation)
}

/// Returns the figures in which the run's own counters differ from its traces. A difference is possible if the window is closed at
/// the end: the traces count it up to the end, the run up to the endpoint's latest call.
fn disagreements(explanation: &Explanation, counted: &RunCounters, still_closed: bool) -> Vec<String> {
    let totals = explanation.totals();
    let both = [
        ("retransmissions", totals.retransmissions, Some(counted.retransmissions)),
        ("spurious retransmissions", totals.spurious, counted.spurious_retransmissions),
        ("time-outs", totals.timeouts, Some(counted.timeouts)),
    ];
    let known = both.into_iter().filter_map(|(what, traced, counted)| Some((what, traced, counted?)));
    let differ = known.filter(|(_, traced, counted)| traced != counted);
    let mut notes: Vec<String> = differ
        .map(|(what, traced, counted)| format!("the traces have {traced} {what}, the run counted {counted}"))
        .collect();
    let (traced, closed_s) = (totals.peer_window_closed_s, counted.rwnd_blocked_s);
    if !still_closed && (traced - closed_s).abs() > 1e-6 {
        let both =
            format!("by the traces the peer's window was closed {traced:.6} s, by the run {closed_s:.6} s");
        notes.push(both);
    }
    if counted.records_dropped > 0 {
        let dropped = counted.records_dropped;
        notes.push(format!("{dropped} records are missing: the host was faster than the disk"));
    }
    notes
}

/// One sender with its two files.
struct Reader {
    sender: Sender,
    paths: Table,
    decisions: Table,
    account: Account,
    /// Time up to which all files extend, in nanoseconds.
    until: u64,
}

impl Reader {
    fn open(folder: &Folder, sender: &Sender) -> Result<Self, ExplainError> {
        let open = |name: &str, columns| {
            Table::open(&folder.path.join(name), columns, folder.limit(name), &folder.manifest.version)
        };
        let [paths, decisions] = sender.files();
        Ok(Reader {
            sender: sender.clone(),
            paths: open(&paths, PATHS)?,
            decisions: open(&decisions, DECISIONS)?,
            account: Account::new(sender),
            until: folder.until(sender),
        })
    }

    /// Processes all rows up to a time. Among rows of the same time, decisions come first, since they explain the changes of paths.
    fn advance(&mut self, until: u64) -> Result<(), ExplainError> {
        loop {
            let (decision, path) = (self.decisions.time(), self.paths.time());
            let next = decision.into_iter().chain(path).min();
            let Some(at) = next.filter(|at| *at <= until) else { return Ok(()) };
            self.account.pass(at);
            if decision == Some(at) {
                self.decision(at)?;
                self.decisions.advance()?;
            } else {
                self.path(at)?;
                self.paths.advance()?;
            }
        }
    }

    fn path(&mut self, at: u64) -> Result<(), ExplainError> {
        let table = &self.paths;
        let path = table.one_of(1, &self.sender.paths, A_PATH)?.ok_or_else(|| table.wrong(1, A_PATH))?;
        let row = PathRow {
            path,
            state: table.text(2)?,
            cwnd: table.number(3)?,
            outstanding: table.number(4)?,
            lost_unsent: table.number(5)?,
            srtt_ms: table.decimal(6)?,
            queued: table.number(7)?,
        };
        self.account.path_row(at, &row);
        Ok(())
    }

    fn decision(&mut self, at: u64) -> Result<(), ExplainError> {
        let (table, names) = (&self.decisions, &self.sender.paths);
        let decision = table.text(1)?;
        let account = &mut self.account;
        let path = || table.one_of(2, names, A_PATH)?.ok_or_else(|| table.wrong(2, A_PATH));
        match decision {
            "schedule" | "bind" => account.scheduled(placement(table, names)?, refused(table, names)?),
            "copies" => copies(table, names, account)?,
            "retransmit" | "head-of-line-move" => {
                account.rerouted(placement(table, names)?, refused(table, names)?);
            }
            "head-of-line-copy" | "tail-probe" => {
                account.rerouted(placement(table, names)?, refused(table, names)?);
                // If the row names no chunk, the trace contains no cause for the retransmission.
                if !table.text(3)?.is_empty() {
                    account.set_retransmission_cause(tsn(table, 3)?, decision);
                }
            }
            "blocked" => account.blocked(table.one_of(2, names, A_PATH)?),
            "unblocked" => account.unblocked(),
            "window" => account.window(path()?, table.text(5)?, table.number(9)?, table.number(10)?),
            "lost" => account.lost(path()?, tsn(table, 3)?, table.text(4)?, table.text(5)?),
            "timeout" => account.timed_out(at, table.one_of(2, names, A_PATH)?),
            "state" => account.state(at, path()?, table.text(4)?, table.text(5)?),
            "abandoned" => account.abandoned(table.text(4)?, table.text(5)?, !table.text(3)?.is_empty()),
            // Pacing is counted by the refusals that it causes.
            "pacing" => {}
            other => account.unknown(other),
        }
        Ok(())
    }

    fn packet(&mut self, at: u64, table: &Table) -> Result<(), ExplainError> {
        let path = table.one_of(3, &self.sender.paths, A_PATH)?.ok_or_else(|| table.wrong(3, A_PATH))?;
        let (tsn, bytes) = (tsn(table, 5)?, table.number(6)?);
        let drops = &mut self.account.sums[path].drops;
        match table.text(4)? {
            "sent" => self.account.sent(at, path, tsn, bytes),
            "received" => self.account.received(path, tsn, bytes),
            "lost" => drops.lost += 1,
            "policed" => drops.policed += 1,
            "queue-full" => drops.queue_full += 1,
            "outage" => drops.outage += 1,
            "unroutable" => drops.unroutable += 1,
            _ => return Err(table.wrong(4, "`sent`, `received` or what dropped it")),
        }
        Ok(())
    }
}

fn tsn(table: &Table, column: usize) -> Result<u32, ExplainError> {
    u32::try_from(table.number(column)?).map_err(|_| table.wrong(column, "a TSN of 32 bits"))
}

fn placement<'a>(table: &'a Table, names: &[String]) -> Result<PlacementRow<'a>, ExplainError> {
    let path = match table.text(2)? {
        "wait" => None,
        _ => Some(table.one_of(2, names, A_PATH)?.ok_or_else(|| table.wrong(2, A_PATH))?),
    };
    Ok(PlacementRow {
        decision: table.text(1)?,
        path,
        rule: table.text(5)?,
        figure: table.text(6)?,
        value: table.decimal(7)?,
    })
}

/// Records new data that is sent on several paths at once as a choice of each of them.
fn copies(table: &Table, names: &[String], account: &mut Account) -> Result<(), ExplainError> {
    for (place, name) in table.text(2)?.split(' ').enumerate() {
        let path = names.iter().position(|known| known == name).ok_or_else(|| table.wrong(2, A_PATH))?;
        let row = PlacementRow {
            decision: "copies",
            path: Some(path),
            rule: table.text(5)?,
            figure: table.text(6)?,
            value: table.decimal(7)?,
        };
        match place {
            0 => account.scheduled(row, refused(table, names)?),
            _ => account.chosen(row),
        }
    }
    Ok(())
}

/// Parses the column `refused`: `path:reason`, separated by blanks.
fn refused<'a>(
    table: &'a Table,
    names: &'a [String],
) -> Result<impl Iterator<Item = (usize, &'a str)>, ExplainError> {
    let split = |item: &'a str| {
        let (name, reason) = item.split_once(':')?;
        Some((names.iter().position(|known| known == name)?, reason))
    };
    let text = table.text(8)?;
    if text.split_ascii_whitespace().any(|item| split(item).is_none()) {
        return Err(table.wrong(8, "paths of the flow with reasons, such as path-1:WindowFull"));
    }
    Ok(text.split_ascii_whitespace().filter_map(split))
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn flow(reader: &Reader, folder: &Folder) -> FlowExplanation {
    let (sender, account) = (&reader.sender, &reader.account);
    let until = reader.until.max(account.from);
    let span = seconds(until - account.from);
    let name = |path: usize| sender.paths[path].clone();
    let capacity = |path: &str| {
        let scenario = folder.scenario.as_ref()?;
        let bits =
            capacity::bits(scenario, &folder.files, path, sender.direction == "reverse", account.from, until);
        // The folder's notes state the reason if a trace cannot be read.
        bits?.ok()
    };
    let paths = sender.paths.iter().zip(&account.sums);
    let mut flow = FlowExplanation {
        name: sender.name.clone(),
        scheme: sender.scheme.clone(),
        arrivals_known: folder.manifest.vantage == Vantage::Network,
        from_s: seconds(account.from),
        until_s: seconds(until),
        time_findings: Vec::new(),
        capacity_findings: Vec::new(),
        peer_window: peer_window(account, span, &sender.paths),
        paths: paths
            .map(|(name, sums)| PathExplanation {
                protected_sent_bytes: folder.protected_sent_bytes(&sender.name, name),
                ..path_of(name, sums, span, capacity(name))
            })
            .collect(),
        scheduling: placement_of(&account.scheduling, &sender.paths),
        rerouting: placement_of(&account.rerouting, &sender.paths),
        losses: Vec::new(),
        retransmissions: retransmissions(account, &sender.paths),
        timeouts: account.timeouts,
        abandoned: abandoned(account),
        forward_tsns: folder.ended.as_ref().and_then(|ended| ended.result.forward_tsns(&sender.flow)),
    };
    let losses = account.losses.ranked(|chunks| *chunks).into_iter();
    flow.losses = losses
        .map(|((path, cause, rule), &chunks)| Losses {
            path: name(*path),
            cause: cause.clone(),
            rule: rule.clone(),
            chunks,
        })
        .collect();
    flow.time_findings = findings::time(&flow);
    flow.capacity_findings = findings::capacity(&flow);
    flow
}

fn abandoned(account: &Account) -> Vec<Abandonments> {
    let ranked = account.abandoned.ranked(|(messages, _)| *messages).into_iter();
    let of = |((cause, rule), &(messages, unsent)): (&(String, String), &(u64, u64))| Abandonments {
        cause: cause.clone(),
        rule: rule.clone(),
        messages,
        unsent,
    };
    ranked.map(of).collect()
}

fn peer_window(account: &Account, span: f64, names: &[String]) -> PeerWindow {
    let by_hole: Vec<HoleTime> = account
        .holes
        .ranked(|time| *time)
        .into_iter()
        .map(|(hole, &time)| HoleTime { path: hole.map(|path| names[path].clone()), seconds: seconds(time) })
        .collect();
    let closed = seconds(account.holes.ranked(|time| *time).iter().map(|(_, time)| **time).sum());
    PeerWindow {
        closed_s: closed,
        closed_share: if span > 0.0 { closed / span } else { 0.0 },
        times: account.closures,
        by_hole,
    }
}

fn reason_times(times: &Tally<String, u64>) -> (f64, Vec<ReasonTime>) {
    let ranked = times.ranked(|time| *time);
    let all = ranked.iter().map(|(_, time)| **time).sum();
    let each = ranked
        .into_iter()
        .map(|(reason, &time)| ReasonTime { reason: reason.clone(), seconds: seconds(time) });
    (seconds(all), each.collect())
}

fn path_time(sums: &PathSums) -> PathTime {
    let (passed_over_s, passed_over) = reason_times(&sums.passed_over);
    let (out_of_service_s, out_of_service) = reason_times(&sums.out_of_service);
    PathTime {
        full_s: seconds(sums.full),
        peer_window_s: seconds(sums.peer_window),
        no_data_s: seconds(sums.no_data),
        lost_wait_s: seconds(sums.lost_wait),
        paced_s: seconds(sums.paced),
        passed_over_s,
        passed_over,
        out_of_service_s,
        out_of_service,
    }
}

fn path_of(name: &str, sums: &PathSums, span: f64, capacity_bits: Option<f64>) -> PathExplanation {
    let mean = |integral: f64, time: u64| if time > 0 { integral / time as f64 } else { 0.0 };
    let cuts = sums.cuts.ranked(|(_, bytes)| *bytes).into_iter();
    let kbps = |bits: f64| if span > 0.0 { bits / 1000.0 / span } else { 0.0 };
    let received_bits = sums.received.1 as f64 * 8.0;
    PathExplanation {
        name: name.to_owned(),
        time: path_time(sums),
        mean_cwnd_bytes: mean(sums.cwnd, sums.in_service),
        mean_outstanding_bytes: mean(sums.outstanding, sums.in_service),
        mean_unused_bytes: mean(sums.unused, sums.in_service),
        mean_srtt_ms: (sums.srtt_known > 0).then(|| mean(sums.srtt, sums.srtt_known)),
        timeouts: sums.timeouts,
        timeout_wait_s: seconds(sums.timeout_wait),
        cuts: cuts.map(|(rule, &(times, bytes))| Cut { rule: rule.clone(), times, bytes }).collect(),
        states: sums
            .states
            .iter()
            .map(|(at, state, rule)| StateChange {
                at_s: seconds(*at),
                state: state.clone(),
                rule: rule.clone(),
            })
            .collect(),
        sent_chunks: sums.sent.0,
        sent_bytes: sums.sent.1,
        protected_sent_bytes: None,
        received_chunks: sums.received.0,
        received_bytes: sums.received.1,
        duplicate_chunks: sums.duplicates,
        drops: sums.drops,
        received_kbps: kbps(received_bits),
        capacity_kbps: capacity_bits.map(kbps),
        used_share: capacity_bits.filter(|bits| *bits > 0.0).map(|bits| received_bits / bits),
    }
}

fn placement_of(sum: &PlacementSum, names: &[String]) -> Placement {
    let choice = |decision: &str, path: Option<usize>, rule: &str, sum: &ChoiceSum| Choice {
        decision: decision.to_owned(),
        path: path.map(|path| names[path].clone()),
        rule: rule.to_owned(),
        times: sum.times,
        figure: sum.figure.clone(),
        mean: (sum.values > 0).then(|| sum.sum / sum.values as f64),
        min: (sum.values > 0).then_some(sum.min),
        max: (sum.values > 0).then_some(sum.max),
    };
    let all = sum.choices.ranked(|choice| choice.times).into_iter();
    let (chosen, waits): (Vec<Choice>, Vec<Choice>) = all
        .map(|((decision, path, rule), sum)| choice(decision, *path, rule, sum))
        .partition(|c| c.path.is_some());
    let refused = sum.refused.ranked(|times| *times).into_iter();
    Placement {
        decisions: sum.decisions,
        chosen,
        waits,
        refused: refused
            .map(|((path, reason), &times)| Refusals {
                path: names[*path].clone(),
                reason: reason.clone(),
                times,
            })
            .collect(),
    }
}

fn retransmissions(account: &Account, names: &[String]) -> Retransmissions {
    let by_cause: Vec<RetransmissionGroup> = account
        .resent
        .ranked(|(all, _)| *all)
        .into_iter()
        .map(|((cause, from, to), &(chunks, spurious))| RetransmissionGroup {
            cause: cause.clone(),
            from: names[*from].clone(),
            to: names[*to].clone(),
            chunks,
            spurious,
        })
        .collect();
    Retransmissions {
        chunks: by_cause.iter().map(|resent| resent.chunks).sum(),
        spurious: by_cause.iter().map(|resent| resent.spurious).sum(),
        by_cause,
    }
}
