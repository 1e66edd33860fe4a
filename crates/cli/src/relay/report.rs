//! Output of a relay.

use anabranch_core::time::{Span, Time};
use anabranch_relay::{Amount, Direction, Relay, Totals};
use serde_json::{Value, json};

use crate::output::{self, Reader, count};

const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Forward, "forward"), (Direction::Reverse, "reverse")];

/// Prints the outcome of traffic, in lines for people or programs.
pub(super) struct Reporter<'a> {
    relays: &'a [Relay],
    names: &'a [String],
    json: bool,
    /// Time of each relay's last report, and the data delivered by then.
    before: Vec<(Time, [Amount; 2])>,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(relays: &'a [Relay], names: &'a [String], json: bool) -> Self {
        let before = relays.iter().map(|relay| (relay.now(), Default::default())).collect();
        Reporter { relays, names, json, before }
    }

    /// Prints the addresses of the relays, which the system may have chosen.
    pub(super) fn begin(&self) -> Reader {
        let line = |(index, relay): (usize, &Relay)| {
            let (name, listen, to) = (&self.names[index], relay.local_addr(), relay.target());
            if self.json {
                let (listen, to) = (listen.to_string(), to.to_string());
                return format!(
                    "{}\n",
                    json!({"event": "listening", "relay": name, "listen": listen, "to": to})
                );
            }
            format!("{name}: listening on {listen}, sending to {to}\n")
        };
        output::print(&self.relays.iter().enumerate().map(line).collect::<String>())
    }

    /// Prints the report of each second.
    pub(super) fn second(&mut self) -> Reader {
        let mut text = String::new();
        for (index, relay) in self.relays.iter().enumerate() {
            let now = relay.now();
            if self.json {
                text += &json_line("counters", &self.names[index], relay, now);
                continue;
            }
            let (then, before) = self.before[index];
            let totals = DIRECTIONS.map(|(direction, _)| relay.totals(direction));
            text += &stats_line(&self.names[index], now, now.since(then), &totals, &before);
            self.before[index] = (now, totals.map(|totals| totals.delivered));
        }
        output::print(&text)
    }

    /// Prints the totals.
    pub(super) fn end(&self) -> Reader {
        let text = |(index, relay): (usize, &Relay)| {
            let name = &self.names[index];
            if self.json { json_line("totals", name, relay, relay.now()) } else { total_lines(name, relay) }
        };
        output::print(&self.relays.iter().enumerate().map(text).collect::<String>())
    }
}

fn json_line(event: &str, name: &str, relay: &Relay, now: Time) -> String {
    let mut line = json!({
        "event": event,
        "relay": name,
        "elapsed_s": now.as_secs_f64(),
        "clients": relay.clients(),
    });
    for (direction, name) in DIRECTIONS {
        line[name] = json_totals(&relay.totals(direction));
    }
    line.to_string() + "\n"
}

fn json_totals(totals: &Totals) -> Value {
    let amount = |amount: Amount| json!({"packets": amount.packets, "bytes": amount.bytes, "wire_bytes": amount.wire.get()});
    json!({
        "offered": amount(totals.offered),
        "delivered": amount(totals.delivered),
        "lost": amount(totals.lost),
        "dropped_policer": amount(totals.policed),
        "dropped_queue": amount(totals.overflowed),
        "dropped_outage": amount(totals.outage),
        "on_the_way": totals.on_the_way,
        "unsent": amount(totals.unsent),
        "refused": amount(totals.refused),
        "too_large": amount(totals.too_large),
        "late_mean_us": totals.lateness.mean().as_secs_f64() * 1e6,
        "late_max_us": totals.lateness.most.as_secs_f64() * 1e6,
    })
}

/// Returns a line with the rates of data delivered since the previous line, and the drops since the start.
fn stats_line(name: &str, now: Time, span: Span, totals: &[Totals; 2], before: &[Amount; 2]) -> String {
    let mut line = format!("{name} {:>6.1} s", now.as_secs_f64());
    for (at, (_, name)) in DIRECTIONS.iter().enumerate() {
        let Totals { delivered, lost, overflowed, outage, on_the_way, .. } = totals[at];
        let bits = 8.0 * delivered.wire.get().saturating_sub(before[at].wire.get()) as f64;
        let rate = if span.is_zero() { 0.0 } else { bits / span.as_secs_f64() / 1e6 };
        line += &format!(
            " | {name} {rate:.3} Mbit/s, lost {}, queue {}, cut {}, on the way {on_the_way}",
            lost.packets, overflowed.packets, outage.packets
        );
    }
    line + "\n"
}

fn total_lines(name: &str, relay: &Relay) -> String {
    let mut text = format!("{name} after {:.1} s:\n", relay.now().as_secs_f64());
    for (direction, name) in DIRECTIONS {
        let totals = relay.totals(direction);
        text += &format!(
            "  {name}: {} ({} B) came, {} ({} B) delivered, {} lost, {} dropped by the queue, {} by cuts, {} on the way\n",
            count(totals.offered.packets, "packet", "packets"),
            totals.offered.bytes,
            totals.delivered.packets,
            totals.delivered.bytes,
            totals.lost.packets,
            totals.overflowed.packets,
            totals.outage.packets,
            totals.on_the_way,
        );
        if totals.delivered.packets > 0 {
            text += &format!(
                "  {name}: late by {:.3} ms in the mean, {:.3} ms at most\n",
                totals.lateness.mean().as_millis_f64(),
                totals.lateness.most.as_millis_f64()
            );
        }
        if totals.unsent.packets > 0 {
            let unsent = count(totals.unsent.packets, "delivered packet", "delivered packets");
            text += &format!("  {name}: {unsent} could not be sent\n");
        }
        if totals.refused.packets > 0 {
            let refused = count(totals.refused.packets, "packet", "packets");
            text += &format!("  {name}: {refused} of clients that there was no room for; see --clients\n");
        }
        if totals.too_large.packets > 0 {
            let too_large = count(totals.too_large.packets, "packet was", "packets were");
            text += &format!("  {name}: {too_large} larger than the relay lets through; see --mtu\n");
        }
    }
    text
}
