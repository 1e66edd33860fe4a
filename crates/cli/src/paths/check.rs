//! `anabranch paths --check`: a test of each path alone.

use std::cell::RefCell;
use std::time::Duration;

use anabranch_net::{Config, Endpoint, PathAddress, udp_address};
use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::endpoint::{ConnectOptions, Connecting, FailedAttempt, through};
use crate::exit::{CommandError, Status};
use crate::output;
use crate::table::TextTable;

/// Maximum time for the end of an association that was only a test.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Result of a path.
struct Outcome {
    path: PathAddress,
    /// Property that determines the interface for outgoing packets.
    through: String,
    /// Round-trip time, or the reason for the failure.
    tried: Result<Duration, String>,
}

/// Opens an association over each path, one after the other.
pub(super) fn check(target: &str, connect: &ConnectOptions, json: bool) -> Result<Status, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for sockets").map_err(CommandError::from)?;
    let outcomes = connect.block_on(&runtime, try_all(target, connect)).0?;
    let text = if json { as_json(target, &outcomes) } else { table(&outcomes) };
    output::print(&text);
    let works = outcomes.iter().any(|outcome| outcome.tried.is_ok());
    Ok(if works { Status::Success } else { Status::Failure })
}

async fn try_all(target: &str, connect: &ConnectOptions) -> Result<Vec<Outcome>, CommandError> {
    let config = connect.association.config()?;
    let paths = connect.path_addresses(target).await?;
    let secured = connect.secured(target)?;
    connect.association.protection.notice(false);
    let mut outcomes = Vec::new();
    for path in paths {
        outcomes.push(check_one(target, (connect, &secured), path, &config).await);
    }
    Ok(outcomes)
}

/// Tries a path alone.
async fn check_one(
    target: &str,
    (connect, secured): (&ConnectOptions, &Connecting),
    path: PathAddress,
    config: &Config,
) -> Outcome {
    let (binding, paths) = (RefCell::default(), [path]);
    let tried = connect.try_over(&paths, (config, secured), async |endpoint| {
        binding.replace(through(&endpoint));
        try_one(target, (connect, secured), &endpoint, path, config.clone()).await
    });
    let tried = tried.await.map_err(|failed| failed.error.to_string());
    Outcome { path, through: binding.into_inner(), tried }
}

async fn try_one(
    target: &str,
    (connect, secured): (&ConnectOptions, &Connecting),
    endpoint: &Endpoint,
    path: PathAddress,
    config: Config,
) -> Result<Duration, FailedAttempt> {
    let begun = Instant::now();
    let association = connect.connect(endpoint, target, &[path], config).await?;
    secured.confirm(&association, false)?;
    // The handshake takes two round trips (RFC 9260 section 5.1), or more time with a key exchange or a lost packet.
    let opening = begun.elapsed() / 2;
    let asked = Instant::now();
    let ended = tokio::time::timeout(END_WITHIN, association.shutdown()).await;
    // SHUTDOWN and its acknowledgement take one round trip (section 9.2). Their outcome gives no further information about the path.
    Ok(if ended.is_ok_and(|ended| ended.is_ok()) { asked.elapsed().min(opening) } else { opening })
}

fn table(outcomes: &[Outcome]) -> String {
    let mut table = TextTable::new().text("from").text("to").text("through").text("works").figure("RTT ms");
    for Outcome { path, through, tried } in outcomes {
        let rtt = match tried {
            Ok(rtt) => format!("{:.2}", rtt.as_secs_f64() * 1e3),
            Err(_) => String::new(),
        };
        let works = if tried.is_ok() { "yes" } else { "no" }.to_owned();
        table.row(vec![path.local.to_string(), udp_address(*path).to_string(), through.clone(), works, rtt]);
    }
    let mut text = table.print();
    for outcome in outcomes {
        if let Err(why) = &outcome.tried {
            text += &format!("\n{why}\n");
        }
    }
    text
}

fn as_json(target: &str, outcomes: &[Outcome]) -> String {
    let one = |Outcome { path, through, tried }: &Outcome| -> Value {
        json!({
            "local": path.local.to_string(),
            "remote": udp_address(*path).to_string(),
            "through": through,
            "works": tried.is_ok(),
            "rtt_ms": tried.as_ref().ok().map(|rtt| rtt.as_secs_f64() * 1e3),
            "reason": tried.as_ref().err(),
        })
    };
    let paths: Vec<Value> = outcomes.iter().map(one).collect();
    json!({ "target": target, "paths": paths }).to_string() + "\n"
}
