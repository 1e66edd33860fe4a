//! `anabranch tun`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_forward::{Bind, Forwarder, Listen, Listeners, Priority, Reporter, Service};
use anabranch_net::{Association, ConnectRetries, Endpoint, Snapshot};
use anabranch_tun::message::{Addresses, Lane};
use anabranch_tun::{
    Changes, Device, Greeting, Header, MAX_PENDING, Outgoing, Routing, Tally, carry, greet, has_ipv6,
    mtu_for, overlapping,
};
use clap::Args;
use ipnet::IpNet;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::show::ShowOptions;
use super::tunnel::{listed, no_device, open_record, read_interface};
use super::{SETTLED_WITHIN, require_protection, runtime};
use crate::endpoint::{ConnectOptions, Expected};
use crate::exit::{CommandError, Status};
use crate::signal::interrupted;

/// Time of one attempt to connect to a lost gateway.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Pause after a failed attempt, and shortest one after an association that ended early.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest pause after an association that ended early.
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// Time before which the end of an association is early. The associations of two machines with one key replace each other.
const EARLY: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  All traffic of this machine over all paths to HOST, and from there on:
    anabranch tun HOST
  One network only, and its name server:
    anabranch tun HOST --route 10.1.0.0/16 --dns 10.1.0.53
  Each TCP connection over all paths at once, and keystrokes of ssh first:
    anabranch tun HOST --lane --priority 22
  Revert routes and DNS after a crash:
    anabranch tun --clean

It needs root or CAP_NET_ADMIN. HOST runs `anabranch gateway --tun`, which has
to know this user's key. Networks of this machine's links are reached without
the tunnel. A lost gateway is tried again until Ctrl-C; connections survive
this, because the address stays, except those of --lane, which are reset. The
end reverts all routes and DNS.
Exit status: 130 after Ctrl-C, 1 if the device cannot be created or HOST is
not reachable at the start, 2 if the command line is wrong, 4 if the identity
of HOST is wrong.";

/// Carry IP packets of this machine over all paths to a gateway.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TunArguments {
    /// Gateway, a host that runs `anabranch gateway --tun` [port: 9899]
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "clean")]
    host: Option<String>,

    /// Lead this network through the tunnel; can be repeated [default: all of IPv4 and IPv6]
    #[arg(long, value_name = "NETWORK")]
    route: Vec<IpNet>,

    /// Use this name server while the tunnel exists; can be repeated
    #[arg(long, value_name = "ADDR")]
    dns: Vec<IpAddr>,

    /// End TCP connections at both sides, and carry each as a stream, so that one connection fills all paths. It needs nftables. The
    /// targets see the address of the gateway
    #[arg(long)]
    lane: bool,

    /// Give connections to these ports 16 times the weight of others in the lane, such as 22,5900-5910
    #[arg(long, value_name = "PORTS", requires = "lane")]
    priority: Option<Priority>,

    /// Name of the device
    #[arg(long, value_name = "NAME", default_value = "anabranch0", value_parser = read_interface)]
    device: String,

    /// Revert what a process that crashed has left, and exit
    #[arg(long, conflicts_with_all = ["host", "route", "dns", "lane"])]
    clean: bool,

    #[command(flatten)]
    connect: ConnectOptions,

    #[command(flatten)]
    show: ShowOptions,
}

/// Runs the command.
pub(crate) fn tun(arguments: &TunArguments) -> Result<Status, CommandError> {
    require_protection(&arguments.connect.association.protection)?;
    let (changes, left) = open_record("tun")?;
    if left > 0 {
        let text = format!("reverted {left} changes of a process that crashed");
        arguments.show.line(&text, &json!({ "event": "reverted", "changes": left }));
    }
    let Some(host) = &arguments.host else { return Ok(Status::Success) };
    let runtime = runtime()?;
    let tally = Tally::default();
    let lane = arguments.lane.then(|| arguments.forwarder());
    let client = Client { arguments, host, tally: &tally, lane: lane.as_ref() };
    let (ended, links) = arguments.connect.block_on(&runtime, client.run(changes));
    runtime.shutdown_timeout(SETTLED_WITHIN);
    arguments.show.links(&links);
    arguments.show.counters(&tally);
    if let Some(lane) = lane {
        arguments.show.end(&lane.tally().totals());
    }
    ended
}

impl TunArguments {
    /// Returns the forwarder of the lane's connections.
    fn forwarder(&self) -> Forwarder {
        let show = self.show.clone();
        let report: Reporter = Arc::new(move |event| show.event(None, &event));
        Forwarder::new(Vec::new(), self.priority.clone().unwrap_or_default(), report)
    }
}

struct Client<'a> {
    arguments: &'a TunArguments,
    host: &'a str,
    tally: &'a Tally,
    /// Forwarder of TCP connections, if they use the lane.
    lane: Option<&'a Forwarder>,
}

/// Device and routes of this machine.
struct System {
    device: Device,
    routing: Routing,
    mtu: usize,
}

/// Association with a gateway, and the addresses that it has assigned.
struct Opened {
    /// Endpoint of the association. Its paths follow changes of this machine's addresses while it is kept.
    _endpoint: Endpoint,
    association: Association,
    addresses: Addresses,
}

impl Client<'_> {
    async fn run(&self, changes: Changes) -> Result<Status, CommandError> {
        let stop = interrupted()?;
        tokio::pin!(stop);
        let connect = &self.arguments.connect;
        connect.open_control("tun", self.lane.map(Forwarder::tally));
        let first = tokio::select! {
            opened = self.open(connect, self.arguments.show.is_silent(), connect.retries()) => opened?,
            () = &mut stop => return Ok(Status::Interrupted),
        };
        let mut system = self.set_up(&first, changes).await?;
        let (sender, mut packets) = mpsc::channel(MAX_PENDING);
        let device = system.device.clone();
        let ended = tokio::select! {
            failed = self.keep(first, &mut system, &mut packets) => Err(failed),
            error = device.read(|packet| pass(packet, &sender)) => {
                Err(CommandError::failure(format!("the device {} has ended: {error}", device.name())))
            }
            () = stop => Ok(Status::Interrupted),
        };
        drop(system);
        if let Some(lane) = self.lane {
            lane.close().await;
        }
        ended
    }

    async fn open(
        &self,
        connect: &ConnectOptions,
        quiet: bool,
        retries: ConnectRetries,
    ) -> Result<Opened, CommandError> {
        let opened =
            connect.open_with(self.host, quiet, (Expected::Known, retries), anabranch_forward::configure);
        let (endpoint, association) = opened.await?;
        let failed = |why: String| CommandError::failure(format!("{}: {why}", self.host));
        let Greeting { mut addresses, lane } =
            greet(&association).await.map_err(|error| failed(error.to_string()))?;
        if self.lane.is_some() && lane == Lane::Forbidden {
            association.abort();
            return Err(failed(
                "the gateway does not permit --lane; start it without --no-lane, or omit --lane here"
                    .to_owned(),
            ));
        }
        for address in addresses.iter() {
            let Some((network, interface)) = overlapping(address, &self.arguments.device) else { continue };
            let option = if address.is_ipv4() { "--tun=NETWORK" } else { "--tun-ipv6 NETWORK" };
            return Err(failed(format!(
                "the gateway assigned {address}, which is in the network {network} of {interface}; start the gateway with another {option}"
            )));
        }
        let why = match addresses.v6 {
            Some(_) if has_ipv6() => None,
            Some(_) => Some("IPv6 is disabled here; set net.ipv6.conf.default.disable_ipv6 to 0"),
            None => Some("the gateway assigns no IPv6 addresses; start it without `--tun-ipv6 none`"),
        };
        if let Some(why) = why {
            if let Some(route) = self.arguments.route.iter().find(|route| route.addr().is_ipv6()) {
                return Err(failed(format!("--route {route}: {why}")));
            }
            addresses.v6 = None;
        }
        Ok(Opened { _endpoint: endpoint, association, addresses })
    }

    /// Creates the device and its routes.
    async fn set_up(&self, opened: &Opened, changes: Changes) -> Result<System, CommandError> {
        let failed = |error: anabranch_tun::Error| CommandError::failure(error.to_string());
        let name = &self.arguments.device;
        let device = Device::create(name).map_err(|error| no_device(name, &error))?;
        let snapshot = opened.association.snapshot().await;
        let mtu = mtu_for(&snapshot);
        device.start(networks_of(opened.addresses), mtu).map_err(failed)?;
        let mut routing = Routing::new(changes);
        routing.keep_outside(remotes(&snapshot)).map_err(failed)?;
        routing.lead(&device, opened.addresses, &self.arguments.route).map_err(failed)?;
        if !self.arguments.dns.is_empty() {
            routing.set_dns(&device, &self.arguments.dns).map_err(failed)?;
        }
        if let Some(lane) = self.lane {
            open_lane(lane, &mut routing, &device)?;
        }
        let Addresses { v4, v6 } = opened.addresses;
        let text = format!("{name}: {}, through {}", listed(opened.addresses), self.host);
        let object = json!({ "event": "tun", "device": name, "address": v4, "ipv6_address": v6 });
        self.arguments.show.line(&text, &object);
        Ok(System { device, routing, mtu })
    }

    /// Keeps the tunnel connected. Returns the error that makes further attempts useless.
    async fn keep(
        &self,
        first: Opened,
        system: &mut System,
        packets: &mut mpsc::Receiver<Outgoing>,
    ) -> CommandError {
        let show = &self.arguments.show;
        let output = system.device.output();
        let (mut current, mut pause) = (first, Duration::ZERO);
        loop {
            let opened = Instant::now();
            let Opened { association, addresses, .. } = &current;
            let paths = association.paths().await;
            if let Some(lane) = self.lane {
                lane.enter(association);
            }
            let why = carry(association, *addresses, packets, (&output, self.tally), |snapshot| {
                self.adapt(system, snapshot);
            })
            .await;
            if let Some(lane) = self.lane {
                lane.leave();
            }
            pause = pause_after(opened.elapsed(), pause);
            show.line(&lost(&why, pause), &json!({ "event": "lost", "why": why }));
            sleep(pause).await;
            let remote = paths.first().map(|path| path.remote);
            let next = match self.reconnect(remote).await {
                Ok(next) => next,
                Err(failed) => return failed,
            };
            if next.addresses != current.addresses
                && let Err(error) = system.change_addresses(current.addresses, next.addresses)
            {
                return CommandError::failure(error.to_string());
            }
            current = next;
            let Addresses { v4, v6 } = current.addresses;
            let object = json!({ "event": "restored", "address": v4, "ipv6_address": v6 });
            show.line("connected to the gateway again", &object);
        }
    }

    /// Connects until it succeeds. Names are not resolved again, because their server may be behind the tunnel.
    async fn reconnect(&self, remote: Option<std::net::SocketAddr>) -> Result<Opened, CommandError> {
        let mut connect = self.arguments.connect.clone();
        connect.connect_timeout = Some(ATTEMPT);
        if connect.to.is_empty() && self.host.parse::<IpAddr>().is_err() {
            connect.to.extend(remote);
        }
        loop {
            match self.open(&connect, true, ConnectRetries::none()).await {
                Err(error) if !error.is_final() => sleep(PAUSE).await,
                outcome => return outcome,
            }
        }
    }

    /// Adapts MTU and routes to the paths.
    fn adapt(&self, system: &mut System, snapshot: &Snapshot) {
        let mtu = mtu_for(snapshot);
        let mut changed = system.routing.keep_outside(remotes(snapshot));
        if mtu != system.mtu {
            system.mtu = mtu;
            changed = changed.and(system.device.set_mtu(mtu));
        }
        if let Err(error) = changed {
            let object = json!({ "event": "note", "text": error.to_string() });
            self.arguments.show.line(&error.to_string(), &object);
        }
    }
}

/// Returns the pause before the next association, after one with this duration and the pause before that one.
fn pause_after(lasted: Duration, pause: Duration) -> Duration {
    if lasted < EARLY { (2 * pause).clamp(PAUSE, MAX_PAUSE) } else { Duration::ZERO }
}

/// Returns the message for a lost association.
fn lost(why: &str, pause: Duration) -> String {
    let lost = format!("the connection to the gateway was lost: {why}; trying again");
    match pause.as_secs() {
        0 => lost,
        seconds => format!("{lost} in {seconds} s; if another machine uses the same key, give each its own"),
    }
}

impl System {
    /// Replaces addresses. The routes stay in use, because packets would leave beside the tunnel without them.
    fn change_addresses(&self, from: Addresses, to: Addresses) -> Result<(), anabranch_tun::Error> {
        self.device.start(networks_of(to), self.mtu)?;
        for network in networks_of(from).filter(|network| !to.contains(network.addr())) {
            self.device.remove_address(network)?;
        }
        self.routing.set_routes(&self.device)
    }
}

/// Returns addresses with the prefixes of single hosts.
fn networks_of(addresses: Addresses) -> impl Iterator<Item = IpNet> {
    addresses.iter().map(IpNet::from)
}

/// Redirects TCP connections that would use the device to the forwarder of the lane.
fn open_lane(lane: &Forwarder, routing: &mut Routing, device: &Device) -> Result<(), CommandError> {
    let failed = |error: String| CommandError::failure(format!("--lane: {error}"));
    let listeners = Listeners::bind(Listen { bind: Bind::Loopback, port: 0 })
        .map_err(|error| failed(format!("cannot listen on loopback: {error}")))?;
    routing.redirect_tcp(device, listeners.port()).map_err(|error| {
        failed(format!("{error}; without --lane, TCP connections are carried as packets"))
    })?;
    let lane = lane.clone();
    tokio::spawn(async move { lane.listen(listeners, Service::Redirected).await });
    Ok(())
}

fn remotes(snapshot: &Snapshot) -> impl Iterator<Item = IpAddr> {
    snapshot.paths.iter().map(|path| path.remote.ip())
}

/// Passes a packet of the device to the queue of the association.
fn pass(packet: bytes::Bytes, sender: &mpsc::Sender<Outgoing>) {
    let Some(header) = Header::read(&packet).filter(|header| !header.stays_on_link()) else { return };
    // A full channel drops packets, as the queue of a network card does.
    let _ = sender.try_send((header.flow(), packet));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn associations_that_end_early_are_replaced_ever_later() {
        let mut pause = Duration::ZERO;
        let pauses: Vec<u128> = std::iter::repeat_with(|| {
            pause = pause_after(Duration::from_secs(9), pause);
            pause.as_millis()
        })
        .take(7)
        .collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(pause_after(EARLY, pause), Duration::ZERO);
        assert!(lost("x", pause).contains("in 8 s") && !lost("x", PAUSE).contains("key"));
    }
}
