//! Output of a test: lines for people, or JSON.

use std::net::SocketAddr;

use anabranch_net::PathSnapshot;
use serde_json::{Value, json};

use super::amount;
use super::exchange::{DirectionOutcome, Outcome, SenderInterval};
use super::meter::{Interval, PathRow};
use super::plan::{Direction, Limit, Plan};
use super::protocol::{Figure, Sent};
use crate::columns::fitting;
use crate::endpoint::{Admitted, networks};
use crate::output::{self, Reader, count};

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines for people.
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object a line, as things happen.
    JsonStream,
}

/// Prints the progress and results of a test.
pub(super) struct Reporter {
    form: Form,
    start: Value,
    intervals: Vec<Value>,
}

impl Reporter {
    pub(super) fn new(form: Form) -> Self {
        Reporter { form, start: Value::Null, intervals: Vec::new() }
    }

    /// Prints the addresses of a server that is ready.
    pub(super) fn listening(&self, addresses: &[SocketAddr], admitted: &Admitted) -> Reader {
        let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        match self.form {
            Form::Text => output::print(&format!("listening on {}\n", addresses.join(", "))),
            _ => {
                let insecure = !admitted.listening.is_protected();
                let data =
                    json!({ "addresses": addresses, "from": networks(&admitted.from), "insecure": insecure });
                event("listening", &data)
            }
        }
    }

    /// Prints the results of a server's client.
    pub(super) fn served(&self, name: &str, plan: &Plan, outcome: &Outcome) -> Reader {
        match self.form {
            Form::Text => output::print(&format!("{name}:\n{}", end_lines(outcome, ["sent", "received"]))),
            _ => event(
                "test",
                &json!({ "client": name, "plan": plan, "end": end(outcome, ["sent", "received"]) }),
            ),
        }
    }

    /// Prints the failure of a server's client.
    pub(super) fn broken(&self, name: &str, error: &anyhow::Error) -> Reader {
        match self.form {
            Form::Text => {
                output::notice(format_args!("{name}: {error:#}"));
                Reader::Listening
            }
            _ => event("broken", &json!({ "client": name, "error": format!("{error:#}") })),
        }
    }

    /// Prints the parameters and paths of a client's test.
    pub(super) fn started(&mut self, target: &str, plan: &Plan, paths: &[PathSnapshot]) -> Reader {
        let listed: Vec<Value> = paths
            .iter()
            .map(|path| json!({"path": path.id.index() + 1, "local": path.local, "remote": path.remote}))
            .collect();
        let start = json!({ "target": target, "plan": plan, "paths": listed });
        match self.form {
            Form::Text => output::print(&start_lines(target, plan, paths)),
            Form::JsonStream => event("start", &start),
            Form::Json => {
                self.start = start;
                Reader::Listening
            }
        }
    }

    /// Prints an interval.
    pub(super) fn interval(&mut self, heard: &SenderInterval) -> Reader {
        match self.form {
            Form::Text => output::print(&interval_lines(heard, output::terminal_width())),
            Form::JsonStream => event("interval", &interval(heard)),
            Form::Json => {
                self.intervals.push(interval(heard));
                Reader::Listening
            }
        }
    }

    /// Prints the results of a client's test, which may have been stopped after these seconds.
    pub(super) fn ended(&self, outcome: &Outcome, stopped_after_s: Option<f64>) -> Reader {
        let mut end = end(outcome, ["forward", "reverse"]);
        end["interrupted"] = stopped_after_s.is_some().into();
        match self.form {
            Form::Text => {
                let stopped = stopped_after_s.map(|seconds| format!("stopped after {seconds:.2} s\n"));
                let lines = end_lines(outcome, ["forward", "reverse"]);
                output::print(&(stopped.unwrap_or_default() + &lines))
            }
            Form::JsonStream => event("end", &end),
            Form::Json => {
                let whole = json!({ "start": self.start, "intervals": self.intervals, "end": end });
                output::print(&format!("{whole:#}\n"))
            }
        }
    }
}

fn event(name: &str, data: &Value) -> Reader {
    output::print(&(json!({ "event": name, "data": data }).to_string() + "\n"))
}

fn start_lines(target: &str, plan: &Plan, paths: &[PathSnapshot]) -> String {
    let direction = match plan.direction {
        Direction::Forward => "to",
        Direction::Reverse => "from",
        Direction::Both => "to and from",
    };
    let limit = match plan.limit {
        Limit::TimeMs(time) => format!("{} s", time as f64 / 1e3),
        Limit::Bytes(bytes) => amount::bytes(bytes),
    };
    let streams = count(plan.streams.into(), "stream", "streams");
    let mut text =
        format!("{limit} {direction} {target} in messages of {} on {streams}\n", amount::bytes(plan.length));
    for path in paths {
        text += &format!("path {}: {} to {}\n", path.id.index() + 1, path.local, path.remote);
    }
    text
}

/// Returns a line for each path, and their sum if there are several. On a terminal the least important columns of a line that does
/// not fit are left out.
fn interval_lines(SenderInterval { interval, ours }: &SenderInterval, terminal: Option<usize>) -> String {
    let way = if *ours { "forward" } else { "reverse" };
    let time = format!("{:>6.2}-{:<6.2} s", interval.from_s, interval.to_s);
    let carried = |bytes: u64| {
        format!("{:>9} {:>12}", amount::bytes(bytes), amount::rate(rate(bytes, interval.seconds())))
    };
    let line = |columns: Vec<(u8, String)>| {
        let omitted = interval.omitted.then(|| (1, "omitted".to_owned()));
        let columns = columns.into_iter().chain(omitted).collect();
        fitting(columns, "  ", terminal.unwrap_or(usize::MAX)).join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = String::new();
    for row in &interval.paths {
        let rtt = row.srtt_ms.map_or_else(|| "?".to_owned(), |rtt| format!("{rtt:.2}"));
        text += &line(vec![
            (0, time.clone()),
            (2, way.to_owned()),
            (0, format!("path {}", row.path)),
            (0, carried(row.delivered_bytes)),
            (3, format!("RTT {rtt:>6} ms")),
            (5, format!("cwnd {:>9}", amount::bytes(row.cwnd_bytes))),
            (4, format!("lost {:>9}", amount::bytes(row.lost_bytes))),
            (0, row.state.name().to_owned()),
        ]);
    }
    if interval.paths.len() > 1 {
        text += &line(vec![
            (0, time),
            (2, way.to_owned()),
            (0, "sum   ".to_owned()),
            (0, carried(interval.delivered_bytes())),
            (3, count(interval.retransmissions, "retransmission", "retransmissions")),
        ]);
    }
    text
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

fn end_lines(outcome: &Outcome, names: [&str; 2]) -> String {
    let mut text = String::new();
    for (way, name) in directions_with_data(outcome, names) {
        let mut line = |end: &str, figures: &str| {
            let label = format!("{name} {end}:");
            text += &output::labelled(&label, figures, name.len() + " receiver: ".len());
        };
        if let Some(Sent { figure, lost_bytes, retransmissions }) = way.sent {
            let lost = amount::bytes(lost_bytes);
            let again = count(retransmissions, "retransmission", "retransmissions");
            line("sender", &format!("{}, {lost} lost, {again}", carried(&figure)));
        }
        if let Some(figure) = way.received {
            line("receiver", &carried(&figure));
        }
    }
    text
}

fn carried(figure: &Figure) -> String {
    format!(
        "{} in {:.2} s, {}, {}",
        amount::bytes(figure.bytes),
        figure.seconds,
        amount::rate(figure.rate_bps()),
        count(figure.messages, "message", "messages")
    )
}

/// Returns the directions with data, and their names.
fn directions_with_data<'a>(
    outcome: &Outcome,
    names: [&'a str; 2],
) -> impl Iterator<Item = (DirectionOutcome, &'a str)> {
    let ways = [outcome.out, outcome.back].into_iter().zip(names);
    ways.filter(|(way, _)| way.sent.is_some() || way.received.is_some())
}

fn interval(SenderInterval { interval, ours }: &SenderInterval) -> Value {
    let row = |row: &PathRow| {
        let mut value = json!(row);
        value["bits_per_second"] = rate(row.delivered_bytes, interval.seconds()).into();
        value
    };
    let Interval { from_s, to_s, omitted, paths, retransmissions } = interval;
    json!({
        "direction": if *ours { "forward" } else { "reverse" },
        "from_s": from_s,
        "to_s": to_s,
        "omitted": omitted,
        "paths": paths.iter().map(row).collect::<Vec<Value>>(),
        "sum": {
            "delivered_bytes": interval.delivered_bytes(),
            "bits_per_second": rate(interval.delivered_bytes(), interval.seconds()),
            "lost_bytes": interval.lost_bytes(),
            "retransmissions": retransmissions,
        },
    })
}

fn end(outcome: &Outcome, names: [&str; 2]) -> Value {
    let mut value = json!({});
    for (way, name) in directions_with_data(outcome, names) {
        let figure = |figure: Figure| {
            let Figure { bytes, messages, seconds } = figure;
            json!({"bytes": bytes, "messages": messages, "seconds": seconds, "bits_per_second": figure.rate_bps()})
        };
        let sender = way.sent.map(|Sent { figure: sent, lost_bytes, retransmissions }| {
            let mut value = figure(sent);
            value["lost_bytes"] = lost_bytes.into();
            value["retransmissions"] = retransmissions.into();
            value
        });
        value[name] = json!({ "sender": sender, "receiver": way.received.map(figure) });
    }
    value
}
