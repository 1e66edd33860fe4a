//! `anabranch relay`.

mod cut;
pub(crate) mod plan;
mod report;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use anabranch_net::route_selection::refuse_link_local;
use anabranch_relay::{Relay, RelayConfig, RelayError};
use anabranch_scenario::{Field, Link};
use anyhow::Context;
use clap::Args;
use tokio::time::{Instant, MissedTickBehavior};

pub(crate) use self::cut::Cut;
use self::report::Reporter;
use crate::exit::{CommandError, Status};
use crate::man::TEXT_COLUMNS;
use crate::quantity;
use crate::signal::interrupted;

/// Indentation of the meaning of a key.
const INDENT: &str = "      ";

const EXAMPLES: &str = "\
Examples:
  Put a link of 10 Mbit/s, 45 ms and 1 % loss each way before a server on the
  same machine:
    anabranch relay --listen 127.0.0.11:9899 --to 127.0.0.1:9899 \\
                    --link 'rate=10Mbit,delay=45ms,loss=1%,queue=50p'
  Make a second path to it that is slower on the way there:
    anabranch relay --to 127.0.0.1:9899 \\
        --listen 127.0.0.11:9899 --link rate=10Mbit,delay=45ms \\
        --listen 127.0.0.12:9899 \\
        --link 'rate=2Mbit,delay=90ms,reverse=(rate=10Mbit,delay=45ms)'
  Interrupt the path from second 5 to 10, and print the events as JSON:
    anabranch relay --listen 127.0.0.11:9899 --to 127.0.0.1:9899 \\
        --link rate=10Mbit,delay=45ms --cut 5s..10s --json

Links have the keys of [[link]] in scenario files, except that cross traffic
and several loss models at once exist only in the simulator. Without
`reverse`, both directions are alike. A table is (KEY=VALUE,...), or
MODEL(KEY=VALUE,...), and a list is [VALUE,...]. 10Mbit is 10 Mbit/s, and 50p
is 50 packets:
";

/// Returns the keys of a link that a relay accepts. Cross traffic exists only in the simulator.
pub(crate) fn link_keys() -> impl Iterator<Item = Field> {
    Link::fields().into_iter().filter(|field| field.key != "background")
}

/// Returns the text after the options: examples, and the keys of a link.
fn after_help() -> String {
    let sections = anabranch_scenario::sections();
    let keys_of = |class: &str| -> String {
        let of = sections.iter().filter(|section| section.class == class);
        let keys: Vec<&str> = of.flat_map(|section| &section.fields).map(|field| field.key).collect();
        format!(" with {}", keys.join(", "))
    };
    let key = |field: Field| {
        let inner = field.about.class.map(keys_of).unwrap_or_default();
        let form = field.about.text.replace(", see below", &inner);
        let text = format!("{} [{form}]", field.help).replace('`', "");
        let options = textwrap::Options::new(TEXT_COLUMNS).initial_indent(INDENT).subsequent_indent(INDENT);
        format!("  {}\n{}", field.key, textwrap::fill(&text, options))
    };
    EXAMPLES.to_owned() + &link_keys().map(key).collect::<Vec<_>>().join("\n")
}

/// Impair real UDP traffic with the links of the simulator.
///
/// Datagrams to --listen are forwarded to --to, and answers return, over a link each way. The relay runs until Ctrl-C,
/// and then prints its counts.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct RelayArguments {
    /// Address that clients send to; can be repeated, for a relay each
    #[arg(long, value_name = "ADDR:PORT", required = true, value_parser = read_address)]
    listen: Vec<SocketAddr>,

    /// Address of the target; one for all, or one for each --listen in their order, as for --link and --from
    #[arg(long, value_name = "ADDR:PORT", required = true, value_parser = read_address)]
    to: Vec<SocketAddr>,

    /// The link, as described below
    #[arg(long, value_name = "LINK", required = true)]
    link: Vec<String>,

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

    /// Maximum number of clients at a time
    #[arg(long, value_name = "N", default_value = "64")]
    clients: NonZeroU16,

    /// Time after which a client without traffic is removed
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
    refuse_link_local(text).map_err(|error| error.to_string())?;
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
    let (names, configs) = plan::configs(arguments).map_err(CommandError::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for sockets").map_err(CommandError::from)?;
    runtime.block_on(run(arguments, &names, configs))
}

async fn run(
    arguments: &RelayArguments,
    names: &[String],
    configs: Vec<RelayConfig>,
) -> Result<Status, CommandError> {
    // The handler precedes the first output, so that a reader of that may send a signal.
    let stop = interrupted()?;
    let relays = configs.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut reporter = Reporter::new(&relays, names, arguments.json);
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
