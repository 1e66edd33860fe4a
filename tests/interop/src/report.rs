//! Reports to the program that started this one.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use anabranch_core::Discard;
use anabranch_net::{CloseReason, Endpoint, Snapshot};
use serde_json::{Value, json};

/// Writes one line of JSON to standard error.
pub(crate) fn write_line(value: &Value) {
    eprintln!("{value}");
}

/// Writes the last line: the reason of the end, and the counters.
pub(crate) async fn end(
    endpoint: &Endpoint,
    outcome: Result<(), CloseReason>,
    mut tally: Value,
    snapshot: &Snapshot,
) {
    let statistics = endpoint.statistics().await;
    let paths: Vec<Value> = snapshot
        .paths
        .iter()
        .map(|path| {
            json!({
                "local": path.local.to_string(),
                "remote": path.remote.to_string(),
                "state": format!("{:?}", path.state),
                "sent_bytes": path.sent_bytes,
                "lost_bytes": path.lost_bytes,
                "delivered_bytes": path.delivered_bytes,
            })
        })
        .collect();
    tally["event"] = "end".into();
    tally["outcome"] = match outcome {
        Ok(()) => "closed".to_owned(),
        Err(ended) => format!("{ended:?}"),
    }
    .into();
    tally["paths"] = paths.into();
    tally["statistics"] = format!("{:?}", snapshot.statistics).into();
    tally["abandoned"] = snapshot.statistics.abandoned.messages().into();
    tally["forward_tsns_sent"] = snapshot.statistics.forward_tsns_sent.into();
    tally["bad_sacks"] = statistics.discards.of(Discard::BadSack).into();
    tally["bad_checksums"] = statistics.discards.of(Discard::Checksum).into();
    tally["malformed"] = statistics.discards.of(Discard::Malformed).into();
    write_line(&tally);
}
