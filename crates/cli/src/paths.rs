//! `anabranch paths`.

mod check;

use anabranch_net::interface::LocalAddress;
use anabranch_net::route_selection::{LocalAddresses, is_usable};
use clap::Args;
use serde_json::{Value, json};

use crate::endpoint::ConnectOptions;
use crate::exit::{CommandError, Status};
use crate::output;
use crate::table::TextTable;

const EXAMPLES: &str = "\
Examples:
  List the addresses of this machine, and the reasons why some are not used:
    anabranch paths
  Find out whether each path to a listening server works, and its round-trip
  time:
    anabranch paths --check server.example
    anabranch paths --check 192.0.2.1 --path wlan0

With --check the exit status is 1 if no path works.";

/// Show the local addresses of paths, and test them.
///
/// Addresses of virtual interfaces, such as VPNs and bridges of containers, are used only where --path names them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PathsArguments {
    /// Open an association with this host over each path alone, and print the result
    #[arg(long, value_name = "HOST[:PORT]")]
    check: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connect: ConnectOptions,
}

/// Runs the command.
pub(crate) fn paths(arguments: &PathsArguments) -> Result<Status, CommandError> {
    match &arguments.check {
        Some(target) => check::check(target, &arguments.connect, arguments.json),
        None => list(arguments),
    }
}

fn list(arguments: &PathsArguments) -> Result<Status, CommandError> {
    if let Some(option) = arguments.connect.given() {
        return Err(CommandError::usage(format!(
            "{option} has no effect without --check HOST, because the command connects to no host"
        )));
    }
    let locals = LocalAddresses::read();
    let text = if arguments.json {
        let all: Vec<Value> = locals.all.iter().map(as_json).collect();
        json!({ "addresses": all }).to_string() + "\n"
    } else {
        table(&locals.all)
    };
    output::print(&text);
    Ok(Status::Success)
}

fn table(all: &[LocalAddress]) -> String {
    let mut table =
        TextTable::new().text("interface").text("address").text("kind").figure("MTU").text("up").text("used");
    for local in all {
        table.row(vec![
            local.interface.clone(),
            local.address.to_string(),
            local.kind.to_string(),
            local.mtu_bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string()),
            if local.up { "yes" } else { "no" }.to_owned(),
            verdict(local),
        ]);
    }
    table.print()
}

fn verdict(local: &LocalAddress) -> String {
    match &local.obstacle {
        None => "yes".to_owned(),
        Some(_) if is_usable(local, true) => "to this machine only".to_owned(),
        Some(obstacle) => format!("no: {obstacle}"),
    }
}

fn as_json(local: &LocalAddress) -> Value {
    json!({
        "interface": local.interface,
        "address": local.address.to_string(),
        "kind": local.kind.to_string(),
        "mtu_bytes": local.mtu_bytes,
        "up": local.up,
        "usable": is_usable(local, false),
        "usable_to_this_machine": is_usable(local, true),
        "reason": local.obstacle.as_ref().map(ToString::to_string),
    })
}
