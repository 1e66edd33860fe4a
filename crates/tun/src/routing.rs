//! Routes and DNS of a client, and address translation of a gateway.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::changes::{Change, Changes};
use crate::device::Device;
use crate::message::Addresses;
use crate::pool::Networks;
use crate::system::{Error, has_ipv6, ip, knows_ipv6, run};

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
const FORWARD_V4: &str = "/proc/sys/net/ipv4/ip_forward";
const SETTINGS_V6: &str = "/proc/sys/net/ipv6/conf";
const FORWARD_V6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// Routes through the tunnel. A crash removes the device and its routes, so that the rules then lead to an empty table.
#[derive(Debug)]
pub struct Routing {
    changes: Changes,
    gateways: BTreeSet<IpAddr>,
    /// Networks that lead into the tunnel.
    networks: Vec<IpNet>,
}

impl Routing {
    /// Returns routing without routes.
    pub fn new(changes: Changes) -> Self {
        Routing { changes, gateways: BTreeSet::new(), networks: Vec::new() }
    }

    /// Keeps packets to these addresses of the gateway outside the tunnel.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn keep_outside(&mut self, gateways: impl IntoIterator<Item = IpAddr>) -> Result<(), Error> {
        for gateway in gateways {
            if self.gateways.insert(gateway) {
                self.rule(family_of(gateway), format!("priority {TO_GATEWAY} to {gateway} lookup main"))?;
            }
        }
        Ok(())
    }

    /// Leads these networks through the device, or without one all networks of the families of these addresses. Routes of the main
    /// table stay in use, except default routes. If the tunnel has no IPv6 address and all of IPv4 uses it, IPv6 is unreachable, because
    /// its packets would leave beside the tunnel.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn lead(&mut self, device: &Device, addresses: Addresses, networks: &[IpNet]) -> Result<(), Error> {
        let (all, all_v6) = (IpNet::from(Ipv4Net::default()), IpNet::from(Ipv6Net::default()));
        let leads_v6 = has_ipv6() && addresses.v6.is_some();
        self.networks = match networks {
            [] if leads_v6 => vec![all, all_v6],
            [] => vec![all],
            networks => networks.to_vec(),
        };
        self.set_routes(device)?;
        let local = format!("priority {LOCAL} lookup main suppress_prefixlength 0");
        for family in ['4', '6'] {
            if self.networks.iter().any(|network| family_of(network.addr()) == family) {
                self.rule(family, local.clone())?;
                self.rule(family, format!("priority {TUNNEL} lookup {TABLE}"))?;
            }
        }
        if networks.is_empty() && !leads_v6 && knows_ipv6() {
            self.rule('6', local)?;
            self.rule('6', format!("priority {TUNNEL} unreachable"))?;
        }
        Ok(())
    }

    /// Sets the routes of the device. The system may remove those of a family with its last address.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn set_routes(&self, device: &Device) -> Result<(), Error> {
        for network in &self.networks {
            let family = family_of(network.addr());
            ip(&format!("-{family} route replace {network} dev {} table {TABLE}", device.name()))?;
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

/// Returns the option of `ip` for the family of an address.
fn family_of(address: IpAddr) -> char {
    if address.is_ipv4() { '4' } else { '6' }
}

/// Translates the addresses of a tunnel's users to that of an interface, and forwards their packets.
///
/// # Errors
/// Returns the error of `nft`, or of `/proc/sys`.
pub fn translate(changes: &mut Changes, networks: &Networks, interface: &str) -> Result<(), Error> {
    let table = "anabranch_tun".to_owned();
    let masquerade = |family: &str, network: IpNet| {
        format!("{family} saddr {network} oifname \"{interface}\" masquerade;")
    };
    let v6 = networks.v6.map_or_else(String::new, |network| masquerade("ip6", network.into()));
    // TCP connections that begin at a user get a segment size that fits the route on both sides.
    let script = format!(
        "table inet {table} {{\n\
         chain postrouting {{ type nat hook postrouting priority 100; {} {v6} }}\n\
         chain forward {{ type filter hook forward priority -150; tcp flags syn tcp option maxseg size set rt mtu; }}\n\
         }}\n",
        masquerade("ip", networks.v4.into())
    );
    changes.apply(&Change::Nft { table, script })?;
    set(changes, FORWARD_V4.into(), "1")?;
    if networks.v6.is_none() {
        return Ok(());
    }
    for accept_ra in advertised() {
        set(changes, accept_ra, "2")?;
    }
    set(changes, FORWARD_V6.into(), "1")
}

/// Returns the settings of interfaces that accept router advertisements because they do not forward. They may have default routes from
/// these, which a router loses unless the setting is 2.
fn advertised() -> Vec<PathBuf> {
    let has = |path: &Path, value: &str| fs::read_to_string(path).is_ok_and(|read| read.trim() == value);
    let folders = fs::read_dir(SETTINGS_V6).into_iter().flatten().flatten().map(|entry| entry.path());
    let accepting =
        folders.filter(|folder| has(&folder.join("accept_ra"), "1") && has(&folder.join("forwarding"), "0"));
    // The setting for all interfaces has no effect.
    accepting.filter(|folder| !folder.ends_with("all")).map(|folder| folder.join("accept_ra")).collect()
}

fn set(changes: &mut Changes, path: PathBuf, value: &str) -> Result<(), Error> {
    changes.apply(&Change::Sysctl { path, value: value.to_owned() })
}

/// Returns the network of this machine that contains an address, with the name of its interface.
pub fn overlapping(address: IpAddr, device: &str) -> Option<(IpNet, String)> {
    let locals = anabranch_net::interface::local_addresses();
    let mut networks = locals.into_iter().filter(|local| local.interface != device).filter_map(|local| {
        Some((IpNet::new(local.address, local.prefix_bits).ok()?.trunc(), local.interface))
    });
    networks.find(|(network, _)| network.contains(&address))
}
