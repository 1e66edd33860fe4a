//! Routes and DNS of a client, and address translation of a gateway.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net};

use crate::changes::{Change, Changes};
use crate::device::Device;
use crate::system::{Error, ip, run};

/// Table of the routes through the tunnel, and priority of the first rule that leads to it.
const TABLE: u32 = 17_700;
/// Priority of rules that keep the packets of the association outside the tunnel.
const TO_GATEWAY: u32 = TABLE;
/// Priority of rules that keep local networks outside the tunnel.
const LOCAL: u32 = TABLE + 1;
/// Priority of rules that lead into the tunnel.
const TUNNEL: u32 = TABLE + 2;

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Folder of the files of systemd-resolved.
const RESOLVED: &str = "/run/systemd/resolve";
/// File that exists if the system has IPv6.
const IPV6: &str = "/proc/net/if_inet6";

/// Routes through the tunnel. A crash removes the device and its routes, so that the rules then lead to an empty table.
#[derive(Debug)]
pub struct Routing {
    changes: Changes,
    gateways: BTreeSet<IpAddr>,
}

impl Routing {
    /// Returns routing without routes.
    pub fn new(changes: Changes) -> Self {
        Routing { changes, gateways: BTreeSet::new() }
    }

    /// Keeps packets to these addresses of the gateway outside the tunnel.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn keep_outside(&mut self, gateways: impl IntoIterator<Item = IpAddr>) -> Result<(), Error> {
        for gateway in gateways {
            if self.gateways.insert(gateway) {
                let family = if gateway.is_ipv4() { '4' } else { '6' };
                self.rule(family, format!("priority {TO_GATEWAY} to {gateway} lookup main"))?;
            }
        }
        Ok(())
    }

    /// Leads these networks, or without one all of IPv4, through the device. Routes of the main table stay in use, except default
    /// routes. IPv6 is unreachable while all of IPv4 uses the tunnel, because its packets would leave beside the tunnel.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn lead(&mut self, device: &Device, networks: &[Ipv4Net]) -> Result<(), Error> {
        let all = [Ipv4Net::default()];
        let networks = if networks.is_empty() { &all[..] } else { networks };
        for network in networks {
            ip(&format!("route replace {network} dev {} table {TABLE}", device.name()))?;
        }
        let local = format!("priority {LOCAL} lookup main suppress_prefixlength 0");
        self.rule('4', local.clone())?;
        self.rule('4', format!("priority {TUNNEL} lookup {TABLE}"))?;
        if networks == all && Path::new(IPV6).exists() {
            self.rule('6', local)?;
            self.rule('6', format!("priority {TUNNEL} unreachable"))?;
        }
        Ok(())
    }

    /// Redirects TCP connections of programs of this machine that would use the device to the listener on this port of loopback.
    ///
    /// # Errors
    /// Returns the error of `nft`.
    pub fn redirect_tcp(&mut self, device: &Device, port: u16) -> Result<(), Error> {
        let table = "anabranch_lane".to_owned();
        // Without the device, after a crash, the rule matches nothing.
        let script = format!(
            "table inet {table} {{\n\
             chain output {{ type nat hook output priority -100; oifname \"{}\" meta l4proto tcp redirect to :{port}; }}\n\
             }}\n",
            device.name()
        );
        self.changes.apply(&Change::Nft { table, script })
    }

    fn rule(&mut self, family: char, words: String) -> Result<(), Error> {
        self.changes.apply(&Change::Rule { family, words })
    }

    /// Sets the name servers of the system.
    ///
    /// # Errors
    /// Returns the error of `resolvectl`, or of the file.
    pub fn set_dns(&mut self, device: &Device, servers: &[IpAddr]) -> Result<(), Error> {
        let words: Vec<String> = servers.iter().map(ToString::to_string).collect();
        // systemd-resolved forgets the servers of a device that is removed.
        if fs::canonicalize(RESOLV_CONF).is_ok_and(|path| path.starts_with(RESOLVED)) {
            run("resolvectl", &format!("dns {} {}", device.name(), words.join(" ")), None)?;
            return run("resolvectl", &format!("domain {} ~.", device.name()), None);
        }
        let content: String = words.iter().map(|server| format!("nameserver {server}\n")).collect();
        self.changes.apply(&Change::File { path: PathBuf::from(RESOLV_CONF), content })
    }
}

/// Translates the addresses of a tunnel's users to that of an interface, and forwards their packets.
///
/// # Errors
/// Returns the error of `nft`, or of `/proc/sys`.
pub fn translate(changes: &mut Changes, network: Ipv4Net, interface: &str) -> Result<(), Error> {
    let table = "anabranch_tun".to_owned();
    // TCP connections that begin at a user get a segment size that fits the route on both sides.
    let script = format!(
        "table inet {table} {{\n\
         chain postrouting {{ type nat hook postrouting priority 100; ip saddr {network} oifname \"{interface}\" masquerade; }}\n\
         chain forward {{ type filter hook forward priority -150; tcp flags syn tcp option maxseg size set rt mtu; }}\n\
         }}\n"
    );
    changes.apply(&Change::Nft { table, script })?;
    changes.apply(&Change::Sysctl { path: "/proc/sys/net/ipv4/ip_forward".into(), value: "1".to_owned() })
}

/// Returns the network of this machine that contains an address, with the name of its interface.
pub fn overlapping(address: IpAddr, device: &str) -> Option<(IpNet, String)> {
    let locals = anabranch_net::interface::local_addresses();
    let mut networks = locals.into_iter().filter(|local| local.interface != device).filter_map(|local| {
        Some((IpNet::new(local.address, local.prefix_bits).ok()?.trunc(), local.interface))
    });
    networks.find(|(network, _)| network.contains(&address))
}
