//! Tunnels of `anabranch gateway --tun`.

use anabranch_forward::{Policy, Reporter};
use anabranch_net::{Association, Message};
use anabranch_tun::message::Message as TunMessage;
use anabranch_tun::{Changes, Device, Gateway, GatewayOptions, RecordError, Served, translate};
use clap::Args;
use ipnet::Ipv4Net;
use serde_json::json;

use super::show::ShowOptions;
use crate::exit::CommandError;
use crate::state_dir::state_dir;

/// MTU of the gateway's device. Longer packets of the networks behind it are answered by ICMP.
const MTU: usize = 1400;
/// Shortest and longest prefix of the network.
const PREFIXES: std::ops::RangeInclusive<u8> = 8..=29;

/// Options for tunnels.
#[derive(Clone, Debug, Args)]
pub(super) struct TunnelOptions {
    /// Also carry IP packets of users of `anabranch tun`, whose addresses are those of NETWORK. It needs root
    #[arg(long, value_name = "NETWORK", num_args = 0..=1, require_equals = true, default_missing_value = "10.177.0.0/24", value_parser = read_network)]
    tun: Option<Ipv4Net>,

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
    /// Starts the device. Returns `None` without `--tun`. `connections` opens the connections of the lane.
    pub(super) fn start(
        &self,
        policy: Policy,
        connections: &anabranch_forward::Gateway,
        show: &ShowOptions,
    ) -> Result<Option<Tunnel>, CommandError> {
        let Some(network) = self.tun else { return Ok(None) };
        let (mut changes, _) = open_record("gateway")?;
        let failed = |error: anabranch_tun::Error| CommandError::failure(format!("--tun: {error}"));
        let lane = (!self.no_lane).then(|| connections.clone());
        let device = Device::create(&self.device).map_err(|error| no_device(&self.device, &error))?;
        let gateway = Gateway::new(GatewayOptions { network, policy, lane }, device.output());
        device.start(gateway.address(), network.prefix_len(), MTU).map_err(failed)?;
        if let Some(interface) = &self.nat {
            translate(&mut changes, network, interface).map_err(failed)?;
        }
        let object = json!({
            "event": "tun", "device": device.name(), "address": gateway.address(), "network": network.to_string(),
        });
        show.line(&format!("tunnels on {}: {network}", device.name()), &object);
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
        let report = |address| {
            let text = format!("{name}: tunnel with address {address}");
            self.show.line(&text, &json!({ "event": "tunnel", "user": name, "address": address }));
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
    fn interface_has_no_characters_of_commands() {
        assert!(read_interface("wlan0.5").is_ok());
        for text in ["", "a b", "a\"; drop", "-x", "..", "0123456789abcdef"] {
            assert!(read_interface(text).is_err(), "{text}");
        }
    }
}
