//! IPv6 in tunnels over two direct links in network namespaces.

use std::fs::{self, File};
use std::process::Stdio;

use super::network::{End, Network};
use super::tun::{self, CONNECT, REFLECTOR, has_nft, output, rules};

/// Rules that permit the server in both families.
const ALLOW: [&str; 4] = ["--allow", "10.99.0.1:*", "--allow", "[fd99::1]:*"];

/// Returns a network with 10.99.0.1 and fd99::1 behind the gateway.
fn network() -> Option<Network> {
    let network = tun::network()?;
    network.server.run("ip addr add fd99::1/128 dev lo");
    Some(network)
}

/// Returns the address that a server sees, or the error.
fn connect(network: &Network, address: &str) -> String {
    output(network, End::Client, &["python3", "-c", CONNECT, address, "30"])
}

fn route(network: &Network, address: &str) -> String {
    output(network, End::Client, &["ip", "route", "get", address])
}

#[test]
fn connections_use_the_assigned_address_and_the_end_reverts_the_rules() {
    let Some(network) = network() else { return };
    let _reflector = network.python(End::Server, REFLECTOR);
    let before = rules(&network);
    let (mut gateway, mut client) = tun::start(&network, &ALLOW, &[]);
    let tunnel = gateway.event("tunnel");
    let assigned = |key: &str| tunnel[key].as_str().expect("an address").to_owned();
    assert!(assigned("ipv6_address").starts_with("fd61:6e61:b1a0::"), "{tunnel}");
    assert_eq!(connect(&network, "fd99::1"), assigned("ipv6_address"));
    assert_eq!(connect(&network, "10.99.0.1"), assigned("address"));
    let addresses = output(&network, End::Client, &["ip", "-6", "addr", "show", "dev", "anabranch0"]);
    assert!(!addresses.contains("fe80"), "the system adds no address: {addresses}");
    client.interrupt();
    let packets = client.event("packets");
    assert_eq!((&packets["dropped_spoofed"], &packets["dropped_malformed"]), (&0.into(), &0.into()));
    assert_eq!(rules(&network), before);
    gateway.interrupt();
    let packets = gateway.event("packets");
    assert_eq!((&packets["dropped_spoofed"], &packets["dropped_forbidden"]), (&0.into(), &0.into()));
}

#[test]
fn ipv6_is_unreachable_only_if_the_gateway_assigns_none() {
    let Some(network) = network() else { return };
    // Without the tunnel, the server would be reached beside it.
    network.client.run("ip addr add fd91::1/64 dev c1 nodad");
    network.server.run("ip addr add fd91::2/64 dev s1 nodad");
    network.client.run("ip -6 route add default via fd91::2 dev c1");
    let _reflector = network.python(End::Server, REFLECTOR);
    let none = [&ALLOW[..], &["--tun-ipv6", "none"]].concat();
    let (gateway, client) = tun::start(&network, &none, &[]);
    let failed = connect(&network, "fd99::1");
    assert!(failed.starts_with("failed"), "{failed}");
    drop(client);
    let mut refused = network.anabranch(End::Client, &["tun", "10.91.1.2", "--route", "fd99::/64"]);
    let output = refused.stderr(Stdio::piped()).output().expect("it starts");
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(message.contains("start it without `--tun-ipv6 none`"), "{message}");
    drop(gateway);
    let (_gateway, _client) = tun::start(&network, &ALLOW, &[]);
    assert!(connect(&network, "fd99::1").starts_with("fd61:6e61:b1a0::"));
}

#[test]
fn route_of_an_ipv6_network_leads_no_other_network() {
    let Some(network) = network() else { return };
    let _reflector = network.python(End::Server, REFLECTOR);
    let (_gateway, _client) = tun::start(&network, &ALLOW, &["--route", "fd99::/64"]);
    assert!(connect(&network, "fd99::1").starts_with("fd61:6e61:b1a0::"));
    for other in ["10.99.0.1", "fd98::1"] {
        assert!(!route(&network, other).contains("anabranch0"), "{other}");
    }
}

#[test]
fn other_addresses_after_a_restart_of_the_gateway_keep_the_routes() {
    let Some(network) = network() else { return };
    let _reflector = network.python(End::Server, REFLECTOR);
    let (gateway, mut client) = tun::start(&network, &ALLOW, &[]);
    let samples = network.path("samples");
    let sample = "while :; do ip route get 10.99.0.1 2>&1 | head -n 1; done";
    let mut sampler = network.client.enter(&["sh", "-c", sample]);
    let mut sampler = sampler.stdout(File::create(&samples).expect("a file")).spawn().expect("it starts");
    drop(gateway);
    client.event("lost");
    let other = ["gateway", "--json", "--tun=10.178.0.0/24", "--tun-ipv6", "fd00:2::/64"];
    let _gateway = network.start(End::Server, &[&other[..], &ALLOW].concat());
    let restored = client.event("restored");
    for (target, key, prefix) in
        [("10.99.0.1", "address", "10.178.0."), ("fd99::1", "ipv6_address", "fd00:2::")]
    {
        let seen = connect(&network, target);
        assert!(restored[key] == seen.as_str() && seen.starts_with(prefix), "{seen}: {restored}");
    }
    sampler.kill().and_then(|()| sampler.wait()).expect("it ends");
    let samples = fs::read_to_string(samples).expect("text");
    let beside = samples.lines().find(|line| !line.contains("anabranch0"));
    assert!(!samples.is_empty() && beside.is_none(), "a packet would leave beside the tunnel: {beside:?}");
}

#[test]
fn gateway_translates_ipv6_addresses_and_reverts_its_settings() {
    let Some(network) = network().filter(|_| has_nft()) else { return };
    let middle = network.middle.id();
    network.server.run(&format!(
        "ip link add net0 type veth peer name net1 netns {middle}; \
         ip addr add fd77::1/64 dev net0 nodad; ip link set net0 up"
    ));
    network.middle.run("ip addr add fd77::2/64 dev net1 nodad; ip link set net1 up");
    // Both interfaces may have a default route from advertisements. One that ignores them does not accept them later.
    network.server.run("echo 0 > /proc/sys/net/ipv6/conf/s2/accept_ra");
    let settings = || {
        let paths = ["all/forwarding", "net0/accept_ra", "s1/accept_ra", "s2/accept_ra"]
            .map(|name| format!("/proc/sys/net/ipv6/conf/{name}"));
        let words: Vec<&str> = ["cat"].into_iter().chain(paths.iter().map(String::as_str)).collect();
        output(&network, End::Server, &words).replace('\n', " ")
    };
    assert_eq!(settings(), "0 1 1 0");
    let _outside = network.python_in(&network.middle, REFLECTOR);
    let rules = ["--allow", "[fd77::]/64:*", "--nat", "net0"];
    let (mut gateway, client) = tun::start(&network, &rules, &[]);
    assert_eq!(settings(), "1 2 2 0");
    assert_eq!(connect(&network, "fd77::2"), "fd77::1");
    drop(client);
    gateway.interrupt();
    gateway.event("end");
    assert_eq!(settings(), "0 1 1 0");
}
