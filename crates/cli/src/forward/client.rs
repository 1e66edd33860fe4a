//! `anabranch forward`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_forward::{
    ConnectFailed, Connected, Forwarder, Forwarding, Listen, Listeners, Priority, Reporter, Service,
    configure, greet,
};
use anabranch_net::{Association, ConnectRetries, Endpoint};
use clap::Args;
use serde_json::json;

use super::check::check;
use super::show::{ShowOptions, listed};
use super::{SETTLED_WITHIN, require_protection, runtime};
use crate::endpoint::{ConnectOptions, Expected};
use crate::exit::{CommandError, Status};
use crate::quantity::read_size;
use crate::signal::interrupted;

/// Time of one attempt to connect to a lost gateway. Packets that begin an association are then repeated often enough for a gateway
/// that returns.
const ATTEMPT: Duration = Duration::from_secs(3);

const EXAMPLES: &str = "\
Examples:
  A proxy for browsers and other programs, whose connections leave from HOST:
    anabranch forward -D 1080 HOST
    curl --proxy socks5h://localhost:1080 https://example.org/
    chromium --proxy-server=socks5://localhost:1080
  One port of another machine, as with ssh:
    anabranch forward -L 2222:server.example.org:22 HOST
    ssh -p 2222 localhost
  A local web server on port 8080 of HOST:
    anabranch forward -R 8080:localhost:80 HOST
  Keystrokes of ssh before the bytes of other connections:
    anabranch forward -D 1080 --priority 22 HOST
  Cellular only while Wi-Fi does not work, and at most 2 GB a month:
    anabranch forward -D 1080 --path wlan0 \\
        --path wwan0,only=backup,limit=2GB/month HOST
  Measure each link and all together, before anything is forwarded:
    anabranch forward --check HOST

HOST runs `anabranch gateway`, which has to know this user's key. Connections
use all paths at the same time. A lost gateway is tried again until Ctrl-C;
its connections are reset, and new ones wait for up to 10 seconds.
Exit status: 130 after Ctrl-C, 1 if it cannot listen or HOST is not reachable
at the start, 2 if the command line is wrong, 4 if the identity of HOST is
wrong. With --check, 0 if a link works.";

/// Forward connections of other programs over all paths to a gateway.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForwardArguments {
    /// Gateway, a host that runs `anabranch gateway` [port: 9899]
    #[arg(value_name = "HOST[:PORT]")]
    host: String,

    /// Listen here, and connect to TARGET from the gateway; can be repeated. BIND is an address, or * for all [default: localhost]
    #[arg(short = 'L', long, value_name = "[BIND:]PORT:TARGET:PORT")]
    local: Vec<Forwarding>,

    /// Listen at the gateway, and connect to TARGET from here; can be repeated. It needs --allow-remote-listen there
    #[arg(short = 'R', long, value_name = "[BIND:]PORT:TARGET:PORT")]
    remote: Vec<Forwarding>,

    /// Listen here as a SOCKS5 and HTTP CONNECT proxy, whose connections leave from the gateway; can be repeated
    #[arg(short = 'D', long, value_name = "[BIND:]PORT")]
    dynamic: Vec<Listen>,

    /// Give connections to these ports 16 times the weight of others, such as 22,5900-5910
    #[arg(long, value_name = "PORTS", conflicts_with = "check")]
    priority: Option<Priority>,

    /// Measure round trip, rates and loss of each link and of all together, print them, and end
    #[arg(long, conflicts_with_all = ["local", "remote", "dynamic", "quiet", "verbose"])]
    check: bool,

    /// Maximum number of bytes of each measurement in each direction; 3 s pass at most [default: 16MB, and 1MB for a link with a cost]
    #[arg(long, value_name = "SIZE", value_parser = read_check_size, requires = "check")]
    check_size: Option<u32>,

    #[command(flatten)]
    connect: ConnectOptions,

    #[command(flatten)]
    show: ShowOptions,
}

/// Reads the amount of a measurement, which has to exceed what a link has in flight.
fn read_check_size(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(read_size(text)?).ok().filter(|bytes| (100_000..=64 << 20).contains(bytes));
    bytes.ok_or_else(|| format!("`{text}` is not between 100 kB and 64 MiB"))
}

/// Runs the command.
pub(crate) fn forward(arguments: &ForwardArguments) -> Result<Status, CommandError> {
    require_protection(&arguments.connect.association.protection)?;
    if arguments.check {
        let ForwardArguments { host, connect, check_size, show, .. } = arguments;
        return connect.block_on(&runtime()?, check(host, connect, *check_size, show.is_json())).0;
    }
    if arguments.local.is_empty() && arguments.remote.is_empty() && arguments.dynamic.is_empty() {
        return Err(CommandError::usage(
            "nothing to forward: give -D PORT, -L PORT:TARGET:PORT or -R PORT:TARGET:PORT",
        ));
    }
    let runtime = runtime()?;
    let show = arguments.show.clone();
    let report: Reporter = Arc::new(move |event| show.event(None, &event));
    let forwarder =
        Forwarder::new(arguments.remote.clone(), arguments.priority.clone().unwrap_or_default(), report);
    let (ended, links) = arguments.connect.block_on(&runtime, run(arguments, &forwarder));
    runtime.shutdown_timeout(SETTLED_WITHIN);
    if matches!(ended, Ok(Status::Interrupted)) {
        arguments.show.links(&links);
        arguments.show.end(&forwarder.tally().totals());
    }
    ended
}

async fn run(arguments: &ForwardArguments, forwarder: &Forwarder) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    let listeners = bind(arguments)?;
    arguments.connect.open_control("forward", Some(forwarder.tally()));
    let opening = async {
        let quiet = arguments.show.is_silent();
        let retries = arguments.connect.retries();
        let opened = arguments
            .connect
            .open_with(&arguments.host, quiet, (Expected::Known, retries), configure)
            .await?;
        greet(opened)
            .await
            .map_err(|failed| CommandError::failure(format!("{}: {}", arguments.host, failed.message)))
    };
    tokio::pin!(stop);
    let first = tokio::select! {
        opened = opening => opened?,
        () = &mut stop => return Ok(Status::Interrupted),
    };
    let kept = keep_connected(arguments, forwarder, first);
    show_listeners(arguments, &listeners);
    for (listeners, service) in listeners {
        let forwarder = forwarder.clone();
        tokio::spawn(async move { forwarder.listen(listeners, service).await });
    }
    tokio::select! {
        failed = kept => Err(failed),
        () = stop => {
            forwarder.close().await;
            Ok(Status::Interrupted)
        }
    }
}

/// Binds all local listeners.
fn bind(arguments: &ForwardArguments) -> Result<Vec<(Listeners, Service)>, CommandError> {
    let local = arguments
        .local
        .iter()
        .map(|forwarding| ("-L", forwarding.listen, Service::Target(forwarding.target.clone())));
    let dynamic = arguments.dynamic.iter().map(|listen| ("-D", *listen, Service::Proxy));
    let bound = local.chain(dynamic).map(|(option, listen, service)| {
        let listeners = Listeners::bind(listen).map_err(|error| {
            CommandError::failure(format!(
                "{option} {listen}: cannot listen: {error}; take another port, or end the program that has it"
            ))
        })?;
        Ok((listeners, service))
    });
    bound.collect()
}

fn show_listeners(arguments: &ForwardArguments, listeners: &[(Listeners, Service)]) {
    for (listeners, service) in listeners {
        let target = match service {
            Service::Target(target) => Some(target.to_string()),
            _ => None,
        };
        let leads = target.as_deref().map_or_else(
            || "SOCKS5 and HTTP CONNECT proxy".to_owned(),
            |target| format!("leads to {target}"),
        );
        let addresses = listeners.addresses();
        let text = format!("{}: {leads} through {}", listed(addresses), arguments.host);
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        arguments
            .show
            .line(&text, &json!({ "event": "listening", "addresses": addresses, "target": target }));
    }
}

/// Keeps the forwarder connected, from this call on. Returns the error that makes further attempts useless.
fn keep_connected(
    arguments: &ForwardArguments,
    forwarder: &Forwarder,
    first: Connected,
) -> impl Future<Output = CommandError> {
    let connect = ConnectOptions { connect_timeout: Some(ATTEMPT), ..arguments.connect.clone() };
    let (host, last) = (arguments.host.clone(), Arc::new(Mutex::new(None)));
    let reopening = Arc::new(Reopening { connect, host, last: Arc::clone(&last) });
    let attempt = move || {
        let reopening = Arc::clone(&reopening);
        async move { reopening.open().await }
    };
    let kept = forwarder.keep_connected(first, attempt);
    async move {
        let failed = kept.await;
        let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        last.unwrap_or_else(|| CommandError::failure(failed.message))
    }
}

/// Attempts to open another association.
struct Reopening {
    connect: ConnectOptions,
    host: String,
    /// Error of the last attempt.
    last: Arc<Mutex<Option<CommandError>>>,
}

impl Reopening {
    async fn open(&self) -> Result<(Endpoint, Association), ConnectFailed> {
        let expected = (Expected::Known, ConnectRetries::none());
        let opened = self.connect.open_with(&self.host, true, expected, configure).await;
        opened.map_err(|error| {
            let failed = ConnectFailed { message: error.to_string(), is_final: error.is_final() };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            failed
        })
    }
}
