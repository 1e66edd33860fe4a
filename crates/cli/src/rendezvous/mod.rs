//! `anabranch rendezvous`.

mod sockets;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anabranch_core::time::Rate;
use anabranch_rendezvous::{DEFAULT_PORT, Limits, Totals};
use anyhow::Context;
use clap::Args;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use self::sockets::{Sockets, bind};
use crate::exit::{CommandError, Status};
use crate::live_output;
use crate::output::count;
use crate::quantity;
use crate::signal::interrupted;

/// Maximum number of relays that can be configured. Each has a socket.
const MOST_RELAYS: i64 = 10_000;

/// Time between two removals of expired entries.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  Run the server on a host with a public address and an open UDP port 9898:
    anabranch rendezvous
  Let a gateway without an open port be found there, and use it:
    anabranch gateway --rendezvous meet.example.org
    anabranch forward -D 1080 KEY --rendezvous meet.example.org
  Relay at most 100 pairs, through ports that the firewall permits:
    anabranch rendezvous --relays 100 --relay-ports 50000-50099
  Relay nothing:
    anabranch rendezvous --relays 0

Both sides prove their keys, and the listening side decides on callers. The
server sees keys and addresses of both sides. It can neither read nor change
what they send: packets are encrypted between the two sides.
It runs until Ctrl-C.
Exit status: 130 after Ctrl-C, 1 if it cannot listen, 2 if the command line is
wrong.";

/// Let two sides behind NATs find and reach each other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RendezvousArguments {
    /// Local address of the server; name one if the machine has several [default: all, port 9898]
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = read_bind)]
    bind: Option<SocketAddr>,

    /// Maximum number of registered listeners
    #[arg(long, value_name = "N", default_value_t = Limits::default().listeners as u32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    listeners: u32,

    /// Maximum number of relayed pairs of addresses, 0 for none
    #[arg(long, value_name = "N", default_value_t = Limits::default().relays as u32, value_parser = clap::value_parser!(u32).range(0..=MOST_RELAYS))]
    relays: u32,

    /// Maximum rate of a relayed pair, both directions together
    #[arg(long, value_name = "RATE", default_value = "10Mbit", value_parser = quantity::read_rate)]
    relay_rate: Rate,

    /// Maximum number of relayed bytes of a pair
    #[arg(long, value_name = "SIZE", default_value = "10GB", value_parser = quantity::read_size)]
    relay_limit: u64,

    /// UDP ports of relays [default: chosen by the system]
    #[arg(long, value_name = "FIRST-LAST", value_parser = read_ports)]
    relay_ports: Option<RangeInclusive<u16>>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

fn read_bind(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().map(|address| SocketAddr::new(address, DEFAULT_PORT));
    address.map_err(|_| {
        format!("`{text}` is not an address of this machine, such as 192.0.2.1 or [2001:db8::1]:9898")
    })
}

fn read_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let ends = text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ends {
        Some((first, last)) if first > 0 && first <= last => Ok(first..=last),
        _ => Err(format!("`{text}` is not a range of ports, such as 50000-50099")),
    }
}

impl RendezvousArguments {
    fn limits(&self) -> Limits {
        Limits {
            listeners: self.listeners as usize,
            relays: self.relays as usize,
            relay_rate: self.relay_rate,
            relay_bytes: self.relay_limit,
            ..Limits::default()
        }
    }

    /// Returns the addresses to try in turn.
    fn addresses(&self) -> Vec<SocketAddr> {
        match self.bind {
            Some(address) => vec![address],
            // A socket at the IPv6 address receives IPv4 too, if the machine has both.
            None => vec![
                SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), DEFAULT_PORT),
                SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), DEFAULT_PORT),
            ],
        }
    }
}

/// Runs the command.
pub(crate) fn rendezvous(arguments: &RendezvousArguments) -> Result<Status, CommandError> {
    anabranch_transfer::raise_open_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot wait for sockets").map_err(CommandError::from)?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: &RendezvousArguments) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| CommandError::failure(format!("no random bytes: {error}")))?;
    let socket = bind(&arguments.addresses()).map_err(|(address, error)| {
        CommandError::failure(format!(
            "cannot listen on {address}: {error}; take another address or port with --bind ADDR:PORT"
        ))
    })?;
    let sockets = Sockets::new(socket, seed, arguments.limits(), arguments.relay_ports.clone())?;
    let address = sockets.local();
    line(
        arguments.json,
        &format!("rendezvous on {address}"),
        &json!({ "event": "listening", "addresses": [address.to_string()] }),
    );
    let serving = serve(&sockets);
    tokio::select! {
        failed = serving => return Err(CommandError::failure(format!("{address}: {failed}"))),
        () = stop => {}
    }
    end(arguments.json, sockets.totals());
    Ok(Status::Interrupted)
}

/// Serves until the socket fails.
async fn serve(sockets: &Arc<Sockets>) -> std::io::Error {
    let mut sweep = interval(SWEEP_EVERY);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let sweeping = async {
        loop {
            sweep.tick().await;
            sockets.sweep();
        }
    };
    tokio::select! {
        failed = sockets.serve() => failed,
        never = sweeping => match never {},
    }
}

fn line(json: bool, text: &str, object: &serde_json::Value) {
    if json {
        live_output::event(object);
    } else {
        live_output::notice(text.to_owned());
    }
}

fn end(json: bool, totals: Totals) {
    let Totals { accepted_calls, relays, relayed, relayed_bytes, over_limit, dropped } = totals;
    let text = format!(
        "{}, {}, {relayed_bytes} B relayed, {dropped} requests dropped",
        count(accepted_calls, "call", "calls"),
        count(relays, "relay", "relays")
    );
    let object = json!({
        "event": "end", "calls": accepted_calls, "relays": relays, "relayed_datagrams": relayed,
        "relayed_bytes": relayed_bytes, "over_limit": over_limit, "dropped": dropped,
    });
    line(json, &text, &object);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_address_has_the_default_port_unless_it_names_one() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1:9898"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("2001:db8::1", "[2001:db8::1]:9898"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            assert_eq!(read_bind(text).map(|address| address.to_string()).as_deref(), Ok(expected), "{text}");
        }
        assert!(read_bind("example.org").expect_err("a name").contains("not an address"));
    }

    #[test]
    fn range_of_ports_is_in_order() {
        assert_eq!(read_ports("50000-50099"), Ok(50_000..=50_099));
        for wrong in ["", "50000", "2-1", "0-5", "1-65536", "a-b"] {
            assert!(read_ports(wrong).is_err(), "{wrong}");
        }
    }
}
