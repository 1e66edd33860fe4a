//! `anabranch relay`.

mod impairment;
mod plan;
mod rate;
mod report;
mod spec;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use anabranch_net::route_selection::refuse_link_local;
use anabranch_relay::{Relay, RelayConfig, RelayError};
use anyhow::Context;
use clap::Args;
use tokio::time::{Instant, MissedTickBehavior};

use self::report::Reporter;
use self::spec::Cut;
use crate::exit::{CommandError, Status};
use crate::quantity;
use crate::signal::interrupted;

const EXAMPLES: &str = "\
Examples:
  Put a link of 10 Mbit/s, 45 ms and 1 % loss each way before a server on the
  same machine:
    anabranch relay --listen 127.0.0.11:9899 --to 127.0.0.1:9899 \\
                    --link 'rate=10Mbit,delay=45ms,loss=1%,queue=50p'
  Make a second path to it that is slower on the way there:
    anabranch relay --link rate=10Mbit,delay=45ms \\
        --listen 127.0.0.11:9899 --to 127.0.0.1:9899 \\
        --link-forward rate=10Mbit,delay=45ms \\
        --listen 127.0.0.12:9899 --to 127.0.0.1:9899 \\
        --link-forward rate=2Mbit,delay=90ms
  Interrupt the path from second 5 to 10, and print the events as JSON:
    anabranch relay --listen 127.0.0.11:9899 --to 127.0.0.1:9899 \\
        --link rate=10Mbit,delay=45ms --cut 5s..10s --json

Links:
  rate=10Mbit         as in scenario files (10 Mbit/s), or without the /s; in
                      bytes on the wire, of which 28 are headers of IPv4 and
                      UDP, or 48 with IPv6
  delay=45ms          propagation, one way
  loss=1%             of the packets, each for itself; none if not given; or
                      in bursts, as
                      gilbert-elliott(p=0.01,r=0.25,loss_good=0,loss_bad=1),
                      or exactly trace(3,17)
  queue=50p           packets that wait besides the one being sent; or 64KiB,
                      100ms, unlimited; 50p if not given
  where=before-queue  where packets are lost; or after-queue, when they have
                      used the link
  policer=1Mbit/30kB  drop what is above a rate, but for a burst after a pause
  jitter=5ms          up to this additional delay per packet; 5ms/free lets
                      packets overtake each other;
                      normal(mean=5ms,deviation=2ms)
  aggregation=5ms/32  packets are collected for this time, and are sent in
                      batches of at most this many";

/// Impair real UDP traffic with the links of the simulator.
///
/// Packets that arrive at --listen are sent to --to, and answers back, over one link in each direction. It runs until Ctrl-C,
/// and then prints the outcome of all packets.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelayArguments {
    /// Address that clients send to; repeat it for several relays
    #[arg(long, value_name = "ADDR:PORT", required = true, value_parser = read_address)]
    listen: Vec<SocketAddr>,

    /// Destination of the packets; one for all, or one for each --listen in their order, as for the links and --from
    #[arg(long, value_name = "ADDR:PORT", required = true, value_parser = read_address)]
    to: Vec<SocketAddr>,

    /// The link of both directions
    #[arg(long, value_name = "LINK", required_unless_present_all = ["link_forward", "link_reverse"])]
    link: Vec<String>,

    /// The link from clients to the target, if it differs
    #[arg(long, value_name = "LINK")]
    link_forward: Vec<String>,

    /// The link from the target to clients, if it differs
    #[arg(long, visible_alias = "back", value_name = "LINK")]
    link_reverse: Vec<String>,

    /// The local address that the target sees [default: on loopback that of --listen, else the system's choice]
    #[arg(long, value_name = "ADDR")]
    from: Vec<IpAddr>,

    /// The largest IP packet that goes through, in bytes; larger ones are dropped
    #[arg(long, value_name = "SIZE", default_value_t = RelayConfig::MTU_BYTES, value_parser = read_mtu)]
    mtu: u64,

    /// Drop all packets in this time after the start, such as 5s..10s; applies to all relays, can be repeated
    #[arg(long, value_name = "FROM..TO")]
    cut: Vec<Cut>,

    /// Seed of random losses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Maximum number of clients of a relay at a time
    #[arg(long, value_name = "N", default_value = "64")]
    clients: NonZeroU16,

    /// Time without packets in either direction after which a client is forgotten
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = read_duration)]
    idle: Duration,

    /// End after this time instead of at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = read_duration)]
    lasting: Option<Duration>,

    /// Print one JSON object per relay, second and line
    #[arg(long)]
    json: bool,

    /// Print a line per relay and second
    #[arg(long, conflicts_with = "json")]
    stats: bool,
}

fn read_address(text: &str) -> Result<SocketAddr, String> {
    refuse_link_local(text)?;
    text.parse()
        .map_err(|_| "expected an address and a port, such as 127.0.0.1:9899 or [::1]:9899".to_owned())
}

fn read_duration(text: &str) -> Result<Duration, String> {
    match quantity::read_time(text)? {
        Duration::ZERO => Err("expected more than no time at all".to_owned()),
        time => Ok(time),
    }
}

fn read_mtu(text: &str) -> Result<u64, String> {
    let (least, most) = (68, RelayConfig::ANY_SIZE);
    match quantity::read_size(text)? {
        bytes if (least..=most).contains(&bytes) => Ok(bytes),
        _ => Err(format!("`{text}` is not in {least}..={most}")),
    }
}

/// Runs the command.
pub(crate) fn relay(arguments: &RelayArguments) -> Result<Status, CommandError> {
    let configs = plan::configs(arguments).map_err(CommandError::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for sockets").map_err(CommandError::from)?;
    runtime.block_on(run(arguments, configs))
}

async fn run(arguments: &RelayArguments, configs: Vec<RelayConfig>) -> Result<Status, CommandError> {
    // The handler precedes the first output, so that a reader of that may send a signal.
    let stop = interrupted()?;
    let relays = configs.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut reporter = Reporter::new(&relays, arguments.json);
    // Packets are relayed even if the statistics cannot be printed.
    reporter.begin();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Skip);
    second.tick().await;
    let end = arguments.lasting.and_then(|lasting| Instant::now().checked_add(lasting));
    tokio::pin!(stop);
    let status = loop {
        tokio::select! {
            () = &mut stop => break Status::Interrupted,
            () = until(end) => break Status::Success,
            _ = second.tick(), if arguments.json || arguments.stats => {
                reporter.second();
            }
        }
    };
    reporter.end();
    Ok(status)
}

fn start(config: RelayConfig) -> Result<Relay, CommandError> {
    Relay::start(config).map_err(|error| match error {
        RelayError::Listen { .. } | RelayError::Upstream { .. } | RelayError::Alarm(_) => {
            CommandError::from(anyhow::Error::new(error))
        }
        _ => CommandError::usage(error),
    })
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}
