//! Output of both commands.

use std::net::SocketAddr;

use anabranch_forward::{Event, Failure, Target, Totals};
use anabranch_observe::LinkCost;
use anabranch_transfer::escape;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::costs::{link_object, link_text};
use crate::live_output;
use crate::output::count;

/// Options for the output.
#[derive(Clone, Debug, Args)]
pub(super) struct ShowOptions {
    /// Print one JSON object per line: events, and a summary at the end
    #[arg(long)]
    json: bool,

    /// Print errors only
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    /// Print a line for each connection, too
    #[arg(long, short, conflicts_with_all = ["json", "quiet"])]
    verbose: bool,
}

impl ShowOptions {
    /// Returns `true` if lines for people are suppressed.
    pub(super) fn is_silent(&self) -> bool {
        self.quiet || self.json
    }

    /// Returns `true` if objects are printed for programs.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a line for people, or an object for programs.
    pub(super) fn line(&self, text: &str, object: &Value) {
        if self.json {
            live_output::event(object);
        } else if !self.quiet {
            live_output::notice(escape(text));
        }
    }

    /// Prints an event of a connection. `user` is the peer's name at a gateway.
    pub(super) fn event(&self, user: Option<&str>, event: &Event) {
        if matches!(event, Event::Opened { .. }) && !self.verbose && !self.json {
            return;
        }
        let (text, mut object) = described(event);
        if let (Some(user), Value::Object(fields)) = (user, &mut object) {
            fields.insert("user".to_owned(), json!(user));
        }
        let text = user.map_or_else(|| text.clone(), |user| format!("{user}: {text}"));
        self.line(&text, &object);
    }

    /// Prints the counters of packets at the end.
    #[cfg(target_os = "linux")]
    pub(super) fn counters(&self, tally: &anabranch_tun::Tally) {
        use anabranch_tun::Count;
        let mut object = Map::from_iter([("event".to_owned(), json!("packets"))]);
        object.extend(Count::ALL.map(|count| (count.name().to_owned(), json!(tally.get(count)))));
        let [sent, received] = [Count::Sent, Count::Received].map(|count| tally.get(count));
        let dropped: u64 = Count::DROPPED.map(|count| tally.get(count)).iter().sum();
        let text = format!("{sent} packets sent, {received} received, {dropped} dropped");
        self.line(&text, &Value::Object(object));
    }

    /// Prints the states of links with a cost or limit at the end.
    pub(super) fn links(&self, links: &[LinkCost]) {
        for link in links {
            self.line(&link_text(link), &link_object(link));
        }
    }

    /// Prints the totals at the end.
    pub(super) fn end(&self, totals: &Totals) {
        let failed: Map<String, Value> =
            totals.failures().map(|(failure, number)| (failure.name().to_owned(), json!(number))).collect();
        let object = json!({
            "event": "end", "complete": totals.complete, "reset": totals.reset + totals.open as u64, "failed": failed,
            "to_peer_bytes": totals.to_peer_bytes, "from_peer_bytes": totals.from_peer_bytes,
            "copies": totals.copies,
        });
        self.line(&summary(totals), &object);
    }
}

fn summary(totals: &Totals) -> String {
    let all = totals.complete + totals.reset + totals.open as u64;
    let mut text = format!(
        "{}, {} reset, {} B sent, {} B received",
        count(all, "connection", "connections"),
        totals.reset + totals.open as u64,
        totals.to_peer_bytes,
        totals.from_peer_bytes
    );
    if totals.copies > 0 {
        text += &format!(", {} sent on a second path", count(totals.copies, "copy", "copies"));
    }
    let failures: Vec<String> =
        totals.failures().map(|(failure, number)| format!("{number} {}", failure.name())).collect();
    if !failures.is_empty() {
        text += &format!("; not opened: {}", failures.join(", "));
    }
    text
}

fn described(event: &Event) -> (String, Value) {
    match event {
        Event::Opened { target } => {
            (format!("connected to {target}"), json!({ "event": "opened", "target": target.to_string() }))
        }
        Event::NotOpened { target, failure } => {
            let shown = target.as_ref().map(Target::to_string);
            let text = format!("{}: {}", shown.as_deref().unwrap_or("a connection"), failure);
            (text, json!({ "event": "not_opened", "target": shown, "failure": failure.name() }))
        }
        Event::RemoteListening { port, target } => (
            format!("port {port} of the gateway leads to {target}"),
            json!({ "event": "remote_listening", "port": port, "target": target.to_string() }),
        ),
        Event::RemoteNotListening { port, failure } => (
            format!("the gateway does not listen on port {port}: {}", remote_advice(*failure)),
            json!({ "event": "remote_not_listening", "port": port, "failure": failure.name() }),
        ),
        Event::Listening { addresses } => (
            format!("listening on {}", listed(addresses)),
            json!({ "event": "listening_for_user", "addresses": addresses.iter().map(ToString::to_string).collect::<Vec<_>>() }),
        ),
        Event::Lost { why } => (
            format!("the connection to the gateway was lost: {why}; trying again"),
            json!({ "event": "lost", "why": why }),
        ),
        Event::Restored => ("connected to the gateway again".to_owned(), json!({ "event": "restored" })),
    }
}

fn remote_advice(failure: Failure) -> String {
    match failure {
        Failure::Forbidden => {
            "it needs --allow-remote-listen, or `any` there for other addresses than loopback".to_owned()
        }
        Failure::Exhausted => "the port is in use there".to_owned(),
        failure => failure.to_string(),
    }
}

/// Returns addresses in one line.
pub(super) fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_failures_by_kind() {
        let mut totals = Totals { complete: 1, reset: 2, open: 1, to_peer_bytes: 5, ..Totals::default() };
        assert_eq!(summary(&totals), "4 connections, 3 reset, 5 B sent, 0 B received");
        totals.failed[Failure::Refused as usize] = 2;
        totals.failed[Failure::Forbidden as usize] = 1;
        assert!(summary(&totals).ends_with("; not opened: 2 refused, 1 forbidden"), "{}", summary(&totals));
    }
}
