//! `anabranch bench`.

mod amount;
mod client;
mod exchange;
mod meter;
mod plan;
mod protocol;
mod report;
mod sender;
mod server;

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_net::DEFAULT_UDP_PORT;
use anabranch_net::route_selection::{TargetError, read_address};
use anyhow::Context;
use clap::{ArgGroup, Args};

use self::plan::{Direction, LONGEST_MESSAGE, Limit, MOST_STREAMS, Plan, VERSION};
use self::report::{Form, Reporter};
use crate::endpoint::{AccessOptions, ConnectOptions, Expected, ListenOptions, access_notice};
use crate::exit::{CommandError, Status};
use crate::{output, quantity};

const EXAMPLES: &str = "\
Examples:
  Wait for clients from this network:
    anabranch bench -s --from 192.0.2.0/24
  Send for 10 seconds over all paths; or receive for 30 seconds, of which the
  first 2 do not count:
    anabranch bench -c server.example
    anabranch bench -c server.example -R -t 30 -O 2
  Write the results of two interfaces to a file:
    anabranch bench -c 192.0.2.1 --path eth0 --path wlan0 --scheme cmt \\
        -n 100M -J > result.json
  Run both sides on one machine, on a separate port:
    anabranch bench -s --listen 127.0.0.1 -p 5000 --from 127.0.0.0/8 \\
        --insecure
    anabranch bench -c 127.0.0.1 -p 5000 --insecure

A server accepts clients whose keys are in authorized_keys (`anabranch keys
add`), or with --insecure on both sides all clients. With --from, packets from
other addresses get no answer.
Sizes and rates are in bytes and bits per second, or have a unit: 64K, 64KiB
(powers of 1024), 64kB; 8M, 8Mbit, 8Mbit/s (powers of 1000). Times are in
seconds, or have a unit: 500ms, 2min.
The figures of intervals count acknowledged DATA chunks, the final figures
count user bytes.";

/// Longest test.
const DAY: Duration = Duration::from_secs(86_400);
/// Default duration of a test.
const USUAL_TIME: Duration = Duration::from_secs(10);
/// Default length of a message, in bytes.
const USUAL_LENGTH: u64 = 64 << 10;

/// Measure the goodput of an association, per path and in total.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("role").required(true).args(["server", "client"]))]
pub(crate) struct BenchArguments {
    /// Run as the server and wait for clients
    #[arg(short, long)]
    server: bool,

    /// Run as a client of this server
    #[arg(short, long, value_name = "HOST[:PORT]")]
    client: Option<String>,

    /// Exit after one test
    #[arg(short = '1', long, conflicts_with = "client")]
    one_off: bool,

    /// UDP port of the server; also the port of --listen addresses without one [default: 9899]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Local address that the server listens on; can be repeated [default: all usable addresses]
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = read_listen, conflicts_with = "client")]
    listen: Vec<Listen>,

    #[command(flatten)]
    access: AccessOptions,

    /// Duration of the test [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = read_at_most_a_day, conflicts_with_all = ["bytes", "server"])]
    time: Option<Duration>,

    /// User bytes to send, instead of a duration
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = read_bytes, conflicts_with = "server")]
    bytes: Option<u64>,

    /// User bytes per message [default: 64K]
    #[arg(short, long, value_name = "SIZE", value_parser = read_bytes, conflicts_with = "server")]
    length: Option<u64>,

    /// Number of streams, to which messages are assigned in turn [default: 1]
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_STREAMS)), conflicts_with = "server")]
    parallel: Option<u16>,

    /// Let the server send, instead of the client
    #[arg(short = 'R', long, conflicts_with_all = ["bidir", "server"])]
    reverse: bool,

    /// Let server and client send at the same time
    #[arg(long, conflicts_with = "server")]
    bidir: bool,

    /// Time between two reports; 0 prints the final report only [default: 1s]
    #[arg(short, long, value_name = "TIME", value_parser = read_at_most_a_day, conflicts_with = "server")]
    interval: Option<Duration>,

    /// Time at the start that the figures exclude
    #[arg(short = 'O', long, value_name = "TIME", value_parser = read_at_most_a_day, conflicts_with_all = ["bytes", "server"])]
    omit: Option<Duration>,

    /// Maximum rate of each sender, in user bits per second; 0 for no limit
    #[arg(short, long, value_name = "RATE", value_parser = read_bound, conflicts_with = "server")]
    bitrate: Option<Bound>,

    /// Print JSON: a client one object at the end, a server one object per line and test
    #[arg(short = 'J', long, conflicts_with = "json_stream")]
    json: bool,

    /// Print events as they occur, one JSON object per line
    #[arg(long)]
    json_stream: bool,

    /// Do not report the key of a new server, or that the test is not protected
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    connect: ConnectOptions,
}

/// Address to listen on, at the port of `--port` if the address has none.
#[derive(Clone, Copy, Debug)]
struct Listen {
    address: SocketAddr,
    names_port: bool,
}

fn read_listen(text: &str) -> Result<Listen, TargetError> {
    let names_port = text.parse::<SocketAddr>().is_ok();
    read_address(text).map(|address| Listen { address, names_port })
}

fn read_at_most_a_day(text: &str) -> Result<Duration, String> {
    quantity::read_time_within(text, Duration::ZERO, DAY)
}

fn read_bytes(text: &str) -> Result<u64, String> {
    match quantity::read_size(text)? {
        0 => Err("expected bytes, and found none".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Rate limit in bit/s, or `None` for no limit.
#[derive(Clone, Copy, Debug)]
struct Bound(Option<u64>);

fn read_bound(text: &str) -> Result<Bound, String> {
    quantity::read_rate(text).map(|rate| Bound(Some(rate.as_bps()).filter(|rate| *rate > 0)))
}

/// Runs the command.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<Status, CommandError> {
    let form = match (arguments.json, arguments.json_stream) {
        (true, _) => Form::Json,
        (_, true) => Form::JsonStream,
        _ => Form::Text,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for sockets").map_err(CommandError::from)?;
    match &arguments.client {
        Some(target) => {
            let client = client(arguments, target, Reporter::new(form));
            arguments.connect.block_on(&runtime, client).0
        }
        None => runtime.block_on(server(arguments, &Reporter::new(form))),
    }
}

async fn server(arguments: &BenchArguments, reporter: &Reporter) -> Result<Status, CommandError> {
    if let Some(option) = arguments.connect.given_to_connect() {
        return Err(CommandError::usage(format!(
            "{option} has no effect with --server, which does not connect; omit it"
        )));
    }
    let association = arguments.connect.association.clone();
    let access = arguments.access.clone();
    let listen = ListenOptions::new(listen_addresses(arguments)?, access, association);
    // Addresses of `--listen` include their ports.
    let port = arguments.port.filter(|_| listen.listen.is_empty());
    let port = port.map_or_else(String::new, |port| format!(" -p {port}"));
    let admitted = listen.admitted(&format!("anabranch bench -s{port}"))?;
    let port = arguments.port.unwrap_or(DEFAULT_UDP_PORT);
    let host = listen.bind_at(&admitted, port, |config| config.streams(MOST_STREAMS + 1)).await?;
    let is_quiet = arguments.quiet || arguments.json || arguments.json_stream;
    listen.association.protection.notice(is_quiet);
    access_notice(&admitted.from, is_quiet);
    server::serve(host, &admitted, arguments.one_off, reporter).await
}

/// Returns the addresses of `--listen`, with the port of `--port` for those without one.
fn listen_addresses(arguments: &BenchArguments) -> Result<Vec<SocketAddr>, CommandError> {
    let listen = &arguments.listen;
    if arguments.port.is_some() && !listen.is_empty() && listen.iter().all(|one| one.names_port) {
        return Err(CommandError::usage(
            "--port has no effect: every --listen already names a port; remove one of the two",
        ));
    }
    let port = |Listen { address, names_port }: &Listen| match arguments.port {
        Some(port) if !names_port => SocketAddr::new(address.ip(), port),
        _ => *address,
    };
    Ok(listen.iter().map(port).collect())
}

async fn client(
    arguments: &BenchArguments,
    target: &str,
    mut reporter: Reporter,
) -> Result<Status, CommandError> {
    if let Some(option) = arguments.access.given() {
        return Err(CommandError::usage(format!(
            "{option} has no effect with --client, which does not accept; omit it"
        )));
    }
    let plan = plan(arguments)?;
    let target = with_port(arguments, target)?;
    let is_quiet = arguments.quiet || arguments.json || arguments.json_stream;
    let configure = |config: anabranch_net::Config| config.streams(plan.streams + 1);
    let expected = (Expected::Known, arguments.connect.retries());
    let (_host, association) = arguments.connect.open_with(&target, is_quiet, expected, configure).await?;
    client::test(&association, &target, plan, &mut reporter).await
}

fn plan(arguments: &BenchArguments) -> Result<Plan, CommandError> {
    let milliseconds = |time: Duration| time.as_millis() as u64;
    let plan = Plan {
        version: VERSION,
        direction: match (arguments.reverse, arguments.bidir) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Forward,
        },
        limit: match arguments.bytes {
            Some(bytes) => Limit::Bytes(bytes),
            None => Limit::TimeMs(milliseconds(arguments.time.unwrap_or(USUAL_TIME))),
        },
        omit_ms: arguments.omit.map_or(0, milliseconds),
        interval_ms: milliseconds(arguments.interval.unwrap_or(Duration::from_secs(1))),
        length: arguments.length.unwrap_or(USUAL_LENGTH),
        streams: arguments.parallel.unwrap_or(1),
        rate_bps: arguments.bitrate.and_then(|Bound(rate)| rate),
    };
    if plan.limit == Limit::TimeMs(0) {
        return Err(CommandError::usage("--time: it has to be a millisecond at least"));
    }
    if plan.length > LONGEST_MESSAGE {
        return Err(CommandError::usage(format!("--length: a message has at most {LONGEST_MESSAGE} bytes")));
    }
    plan.check().map_err(CommandError::usage)?;
    Ok(bounded_by_rate(plan, arguments))
}

/// Shortens messages that a low rate would send at once although they are due over a longer time.
fn bounded_by_rate(plan: Plan, arguments: &BenchArguments) -> Plan {
    let length = plan.message_bytes();
    let is_quiet = arguments.quiet || arguments.json || arguments.json_stream;
    if length < plan.length && arguments.length.is_some() && !is_quiet {
        output::notice(format_args!(
            "--length: messages of {} instead of {}, so that --bitrate is kept each second",
            amount::bytes(length),
            amount::bytes(plan.length)
        ));
    }
    Plan { length, ..plan }
}

/// Returns the target with the port of `--port`.
fn with_port(arguments: &BenchArguments, target: &str) -> Result<String, CommandError> {
    let Some(port) = arguments.port else { return Ok(target.to_owned()) };
    if !arguments.connect.to.is_empty() {
        return Err(CommandError::usage("--port has no effect with --to: write the port there"));
    }
    anabranch_net::route_selection::with_port(target, port).ok_or_else(|| {
        CommandError::usage(format!(
            "--port has no effect: {target} already has a port; remove one of the two"
        ))
    })
}
