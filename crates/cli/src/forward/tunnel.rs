//! Tunnels of `anabranch gateway --tun`.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use anabranch_forward::{Policy, Reporter};
use anabranch_net::{Association, Message};
use anabranch_tun::message::{Addresses, Message as TunMessage};
use anabranch_tun::{
    Changes, Device, Gateway, GatewayOptions, Networks, RecordError, Served, has_ipv6, translate,
};
use clap::Args;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde_json::json;

use super::show::ShowOptions;
use crate::exit::CommandError;
use crate::state_dir::state_dir;

/// MTU of the gateway's device. Longer packets of the networks behind it are answered by ICMP.
const MTU: usize = 1400;
/// Shortest and longest prefix of the IPv4 network.
const PREFIXES: RangeInclusive<u8> = 8..=29;
/// Shortest and longest prefix of the IPv6 network, which has an address for each one of the largest IPv4 network.
const IPV6_PREFIXES: RangeInclusive<u8> = 8..=104;

/// Options for tunnels.
#[derive(Clone, Debug, Args)]
pub(super) struct TunnelOptions {
    /// Also carry IP packets of users of `anabranch tun`, whose addresses are those of NETWORK. It needs root
    #[arg(long, value_name = "NETWORK", num_args = 0..=1, require_equals = true, default_missing_value = "10.177.0.0/24", value_parser = read_network)]
    tun: Option<Ipv4Net>,

    /// Also assign addresses of this network, unique local ones (RFC 4193), or none
    #[arg(long, value_name = "NETWORK|none", requires = "tun", default_value = "fd61:6e61:b1a0::/64", value_parser = read_ipv6_network)]
    tun_ipv6: Ipv6Assignment,

    /// Forward packets of the tunnels, and translate their addresses to that of this interface. Without it, the system's own rules
    /// decide
    #[arg(long, value_name = "INTERFACE", requires = "tun", value_parser = read_interface)]
    nat: Option<String>,

    /// Carry TCP connections of tunnels as packets only. Without it, users of `tun --lane` have them opened from here, within --allow and
    /// the limits of connections
    #[arg(long, requires = "tun")]
    no_lane: bool,

    /// Name of the device for the tunnels
    #[arg(long, value_name = "NAME", requires = "tun", default_value = "anabranch0", value_parser = read_interface)]
    device: String,
}

/// IPv6 addresses of the tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ipv6Assignment {
    None,
    Of(Ipv6Net),
}

fn read_ipv6_network(text: &str) -> Result<Ipv6Assignment, String> {
    if text == "none" {
        return Ok(Ipv6Assignment::None);
    }
    let network: Ipv6Net =
        text.parse().map_err(|_| "expected an IPv6 network such as fd00:1:2:3::/64, or none".to_owned())?;
    if !network.addr().is_unique_local() || !IPV6_PREFIXES.contains(&network.prefix_len()) {
        return Err("expected a unique local network (RFC 4193) with a prefix of 8 to 104 bits".to_owned());
    }
    Ok(Ipv6Assignment::Of(network.trunc()))
}

fn read_network(text: &str) -> Result<Ipv4Net, String> {
    let network: Ipv4Net =
        text.parse().map_err(|_| "expected an IPv4 network such as 10.177.0.0/24".to_owned())?;
    if !network.addr().is_private() || !PREFIXES.contains(&network.prefix_len()) {
        return Err("expected a private network (RFC 1918) with a prefix of 8 to 29 bits".to_owned());
    }
    Ok(network.trunc())
}

/// Reads a name that the kernel accepts for an interface, without characters that have a meaning for `ip` or `nft`.
pub(super) fn read_interface(text: &str) -> Result<String, String> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    match (1..=15).contains(&text.len()) && text.bytes().all(is_valid) && !text.starts_with(['-', '.']) {
        true => Ok(text.to_owned()),
        false => Err("expected a name of 1 to 15 letters, digits, dots, dashes and underscores".to_owned()),
    }
}

/// Opens the record of changes of this role, and reverts those that a crashed process has left.
pub(super) fn open_record(role: &str) -> Result<(Changes, usize), CommandError> {
    let folder = state_dir().ok_or_else(|| {
        CommandError::failure("neither XDG_STATE_HOME nor a home folder is known: set one of them")
    })?;
    let path = folder.join("anabranch").join(format!("{role}.changes"));
    Changes::open(&path).map_err(|error| match error {
        RecordError::InUse => CommandError::failure(format!(
            "another `anabranch {role}` runs here ({} is in use); end it first",
            path.display()
        )),
        error => CommandError::failure(format!("{}: {error}", path.display())),
    })
}

/// Returns the message for a device that cannot be created.
pub(super) fn no_device(name: &str, error: &std::io::Error) -> CommandError {
    CommandError::failure(format!(
        "cannot create the device {name}: {error}; run as root or with CAP_NET_ADMIN, and choose another name by --device if it exists"
    ))
}

/// Tunnels of users.
pub(super) struct Tunnel {
    gateway: Gateway,
    show: ShowOptions,
    reader: tokio::task::JoinHandle<()>,
    /// Changes of the system, which are reverted at the end.
    _changes: Changes,
}

impl TunnelOptions {
    /// Returns the networks of the tunnels. A system without IPv6 assigns no IPv6 addresses.
    fn networks(&self) -> Option<Networks> {
        let v6 = match self.tun_ipv6 {
            Ipv6Assignment::Of(network) if has_ipv6() => Some(network),
            Ipv6Assignment::Of(_) | Ipv6Assignment::None => None,
        };
        self.tun.map(|v4| Networks { v4, v6 })
    }

    /// Starts the device. Returns `None` without `--tun`. `connections` opens the connections of the lane.
    pub(super) fn start(
        &self,
        policy: Policy,
        connections: &anabranch_forward::Gateway,
        show: &ShowOptions,
    ) -> Result<Option<Tunnel>, CommandError> {
        let Some(networks) = self.networks() else { return Ok(None) };
        let (mut changes, _) = open_record("gateway")?;
        let failed = |error: anabranch_tun::Error| CommandError::failure(format!("--tun: {error}"));
        let lane = (!self.no_lane).then(|| connections.clone());
        let device = Device::create(&self.device).map_err(|error| no_device(&self.device, &error))?;
        let gateway = Gateway::new(GatewayOptions { networks, policy, lane }, device.output());
        device.start(own_addresses(&networks), MTU).map_err(failed)?;
        if let Some(interface) = &self.nat {
            translate(&mut changes, &networks, interface).map_err(failed)?;
            if !has_interface(interface) {
                let text = format!(
                    "there is no interface {interface} now: --nat has no effect until it exists; see `ip link`"
                );
                show.line(&text, &json!({ "event": "note", "text": text }));
            }
        }
        show_networks(&device, &networks, show);
        let reader = tokio::spawn({
            let (gateway, show) = (gateway.clone(), show.clone());
            async move {
                let error = device.read(|packet| gateway.route(packet)).await;
                let text = format!("the device {} has ended: {error}", device.name());
                show.line(&text, &json!({ "event": "device_ended", "why": error.to_string() }));
            }
        });
        Ok(Some(Tunnel { gateway, show: show.clone(), reader, _changes: changes }))
    }
}

fn has_interface(name: &str) -> bool {
    Path::new("/proc/sys/net/ipv4/conf").join(name).exists()
}

fn show_networks(device: &Device, networks: &Networks, show: &ShowOptions) {
    let Addresses { v4, v6 } = networks.gateway();
    let network = networks.v4.to_string();
    let ipv6_network = networks.v6.map(|network| network.to_string());
    let both = ipv6_network.iter().fold(network.clone(), |all, one| format!("{all} and {one}"));
    let object = json!({
        "event": "tun", "device": device.name(), "address": v4, "network": network,
        "ipv6_address": v6, "ipv6_network": ipv6_network,
    });
    show.line(&format!("tunnels on {}: {both}", device.name()), &object);
}

/// Returns the addresses of the gateway with the prefixes of their networks.
fn own_addresses(networks: &Networks) -> Vec<IpNet> {
    let bits = |address: IpAddr| match (address, networks.v6) {
        (IpAddr::V6(_), Some(network)) => network.prefix_len(),
        _ => networks.v4.prefix_len(),
    };
    let addresses = networks.gateway().iter();
    addresses.filter_map(|address| IpNet::new(address, bits(address)).ok()).collect()
}

/// Returns addresses in one line.
pub(super) fn listed(addresses: Addresses) -> String {
    let addresses: Vec<String> = addresses.iter().map(|address| address.to_string()).collect();
    format!("{} {}", if addresses.len() == 1 { "address" } else { "addresses" }, addresses.join(" and "))
}

impl Tunnel {
    /// Returns `true` if the first message of an association requests a tunnel.
    pub(super) fn is_requested(first: &Message) -> bool {
        TunMessage::is_hello(&first.payload)
    }

    /// Serves an association of this user until it ends.
    pub(super) async fn serve(
        &self,
        association: Association,
        first: &Message,
        (user, name): (&str, &str),
        connections: Reporter,
    ) {
        let report = |addresses: Addresses| {
            let text = format!("{name}: tunnel with {}", listed(addresses));
            let Addresses { v4, v6 } = addresses;
            let object = json!({ "event": "tunnel", "user": name, "address": v4, "ipv6_address": v6 });
            self.show.line(&text, &object);
        };
        match self.gateway.serve(association, &first.payload, user, report, connections).await {
            Served::Ended | Served::Violation => {}
            Served::Refused(reason) => {
                let object = json!({ "event": "tunnel_refused", "user": name, "why": reason.to_string() });
                self.show.line(&format!("{name}: no tunnel: {reason}"), &object);
            }
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.reader.abort();
        self.show.counters(self.gateway.tally());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_is_private_and_has_room_for_users() {
        assert_eq!(
            read_network("10.1.2.3/24").map(|network| network.to_string()),
            Ok("10.1.2.0/24".to_owned())
        );
        for text in ["8.8.8.0/24", "10.0.0.0/30", "10.0.0.0/7", "fd00::/64", "10.0.0.1", ""] {
            assert!(read_network(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ipv6_network_is_unique_local_and_has_room_for_users() {
        assert_eq!(read_ipv6_network("none"), Ok(Ipv6Assignment::None));
        let network = "fd00:1:2:3::/64".parse().expect("a network");
        assert_eq!(read_ipv6_network("fd00:1:2:3::5/64"), Ok(Ipv6Assignment::Of(network)));
        for text in ["2001:db8::/64", "fe80::/64", "fd00::/105", "f000::/7", "10.0.0.0/8", "fd00::1", ""] {
            assert!(read_ipv6_network(text).is_err(), "{text}");
        }
    }

    #[test]
    fn interface_has_no_characters_of_commands() {
        assert!(read_interface("wlan0.5").is_ok());
        for text in ["", "a b", "a\"; drop", "-x", "..", "0123456789abcdef"] {
            assert!(read_interface(text).is_err(), "{text}");
        }
    }
}
