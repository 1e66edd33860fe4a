//! Added and removed interfaces. Each test starts this program again in its own network namespace, with an isolated veth pair.

#![cfg(target_os = "linux")]

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anabranch_net::interface::{Change, LinkKind, Obstacle, Watcher, local_addresses};
use anabranch_net::{
    Association, BindError, Binding, ConnectError, Device, Endpoint, EndpointBuilder, PathAddress, PathState,
    Peer, Protection, SendOptions,
};

use crate::namespace::in_namespace;

const TIMEOUT: Duration = Duration::from_secs(30);

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip");
    assert!(status.success(), "ip {arguments}");
}

/// Creates `near` with this address, and its other end.
fn pair(address: &str) {
    ip("link add near type veth peer name far");
    ip("link set near up");
    ip("link set far up");
    ip(&format!("addr add {address}/24 dev near"));
}

async fn next(watcher: &mut Watcher) -> Change {
    tokio::time::timeout(TIMEOUT, watcher.next()).await.expect("a change")
}

#[test]
fn added_and_removed_addresses_are_reported() {
    in_namespace("interfaces::told", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn told() {
    pair("10.77.0.1");
    let mut watcher = Watcher::new(|local| local.interface == "near" && local.up && local.address.is_ipv4());
    assert_eq!(watcher.known().len(), 1);
    ip("addr add 10.77.0.2/24 dev near");
    assert!(
        matches!(next(&mut watcher).await, Change::Added(local) if local.address == IpAddr::from([10, 77, 0, 2]))
    );
    ip("addr del 10.77.0.2/24 dev near");
    assert!(
        matches!(next(&mut watcher).await, Change::Removed(local) if local.address == IpAddr::from([10, 77, 0, 2]))
    );
    ip("link set near down");
    assert!(
        matches!(next(&mut watcher).await, Change::Removed(local) if local.address == IpAddr::from([10, 77, 0, 1]))
    );
    ip("link set near up");
    assert!(matches!(next(&mut watcher).await, Change::Added(local) if local.interface == "near"));
}

#[test]
fn local_pair_of_ends_is_virtual_and_a_container_exit_is_not() {
    in_namespace("interfaces::kinds", &[]);
}

#[test]
#[ignore = "runs in a namespace only"]
fn kinds() {
    pair("10.77.0.1");
    let of = || local_addresses().into_iter().find(|local| local.address == IpAddr::from([10, 77, 0, 1]));
    let here = of().expect("the address");
    assert_eq!(here.kind, LinkKind::Virtual("veth".to_owned()));
    assert_eq!(here.obstacle, Some(Obstacle::Virtual("veth".to_owned())));
    // The other end in another namespace, like that of a container.
    let mut other = Command::new("unshare").args(["-n", "sleep", "60"]).spawn().expect("another namespace");
    let pid = other.id();
    let moved = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
        std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|theirs| theirs != own)
            && Command::new("ip")
                .args(["link", "set", "far", "netns", &pid.to_string()])
                .status()
                .is_ok_and(|s| s.success())
    });
    let there = of();
    other.kill().expect("killed");
    other.wait().expect("it ends");
    assert!(moved);
    assert_eq!(there.expect("the address").kind, LinkKind::Outside("veth".to_owned()));
}

#[test]
fn association_uses_added_and_drops_removed_addresses() {
    in_namespace("interfaces::followed", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn followed() {
    pair("10.77.0.1");
    let config = anabranch_net::Config::new("cmt").expect("a scheme");
    let server = Endpoint::builder(Protection::Insecure)
        .local(SocketAddr::from(([10, 77, 0, 1], 0)))
        .accept(config.clone());
    let server = server.bind().expect("bound");
    ip("addr add 10.77.0.2/24 dev near");
    let first = IpAddr::from([10, 77, 0, 2]);
    let client =
        Endpoint::builder(Protection::Insecure).local(SocketAddr::new(first, 0)).bind().expect("bound");
    client.follow(
        Watcher::new(|local| local.interface == "near" && local.address.is_ipv4()),
        Binding { port: 0, to_interface: false },
    );
    let route = PathAddress::over_udp(first, server.local_addresses()[0]);
    let opened = tokio::time::timeout(TIMEOUT, client.connect(Peer::new([route]), config)).await;
    let association = opened.expect("in time").expect("open");
    ip("addr add 10.77.0.3/24 dev near");
    let second = IpAddr::from([10, 77, 0, 3]);
    let has = async |wanted: IpAddr| loop {
        let paths = association.paths().await;
        if paths.iter().any(|path| path.local == wanted && path.state == PathState::Active) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    tokio::time::timeout(TIMEOUT, has(second)).await.expect("a second path");
    ip("addr del 10.77.0.2/24 dev near");
    let gone = async {
        while association.paths().await.iter().any(|path| path.local == first) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.expect("the first path is retired");
    let accepted = server.accept().await.expect("accepted");
    association.send("over the new one", SendOptions::default()).await.expect("taken");
    let message = tokio::time::timeout(TIMEOUT, accepted.recv()).await.expect("in time").expect("open");
    assert_eq!(&message.expect("a message").payload[..], b"over the new one");
}

#[test]
fn a_socket_that_is_bound_to_an_interface_sends_nowhere_else() {
    in_namespace("interfaces::devices", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn devices() {
    pair("10.77.0.1");
    let config = anabranch_net::Config::new("cmt").expect("a scheme");
    let server = Endpoint::builder(Protection::Insecure)
        .local(SocketAddr::from(([127, 0, 0, 1], 0)))
        .accept(config.clone());
    let server = server.bind().expect("bound");
    let remote = server.local_addresses()[0];
    let local = SocketAddr::from(([127, 0, 0, 2], 0));
    let connect = async |client: Endpoint| {
        let route = PathAddress::over_udp(local.ip(), remote);
        client.connect(Peer::new([route]), anabranch_net::Config::new("cmt").expect("a scheme")).await
    };
    // Loopback is not behind `near`, so the attempt is refused; `lo` is the correct interface.
    let wrong = Endpoint::builder(Protection::Insecure).local_on(local, "near").bind().expect("bound");
    assert!(matches!(wrong.devices(), [(_, Device::Bound(name))] if name == "near"));
    let refused = tokio::time::timeout(TIMEOUT, connect(wrong)).await.expect("in time");
    assert!(matches!(refused, Err(ConnectError::Unreachable(_))), "{refused:?}");
    let right = Endpoint::builder(Protection::Insecure).local_on(local, "lo").bind().expect("bound");
    assert!(tokio::time::timeout(TIMEOUT, connect(right)).await.expect("in time").is_ok());
    let none = Endpoint::builder(Protection::Insecure)
        .local_on(SocketAddr::from(([127, 0, 0, 3], 0)), "nosuch0")
        .bind()
        .expect("bound all the same");
    assert!(matches!(none.devices(), [(_, Device::Refused { interface, .. })] if interface == "nosuch0"));
    // The address belongs to `near`: an unbound socket would use an interface that was not requested.
    let ambiguous = Endpoint::builder(Protection::Insecure)
        .local_on(SocketAddr::from(([10, 77, 0, 1], 0)), "nosuch0")
        .bind();
    assert!(matches!(
        &ambiguous,
        Err(BindError::Ambiguous { interface, other, .. }) if interface == "nosuch0" && other == "near"
    ));
}

/// Waits until the first path has this packet size.
async fn has_packets_of(association: &Association, mtu_bytes: usize) {
    let found = async {
        while association.paths().await[0].mtu_bytes != mtu_bytes {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(TIMEOUT, found).await;
    let paths = association.paths().await;
    assert!(found.is_ok(), "{} bytes instead of {mtu_bytes}", paths[0].mtu_bytes);
}

/// Creates an association between hosts at these addresses. Returns both ends.
async fn associated(client: &Endpoint, server: &Endpoint) -> (Association, Association) {
    let config = anabranch_net::Config::new("cmt").expect("a scheme");
    let local = client.local_addresses()[0].ip();
    let route = PathAddress::over_udp(local, server.local_addresses()[0]);
    let opened = tokio::time::timeout(TIMEOUT, client.connect(Peer::new([route]), config)).await;
    (opened.expect("in time").expect("open"), server.accept().await.expect("accepted"))
}

fn host(address: [u8; 4]) -> EndpointBuilder {
    Endpoint::builder(Protection::Insecure).local(SocketAddr::from((address, 0)))
}

fn accepting(address: [u8; 4]) -> Endpoint {
    host(address).accept(anabranch_net::Config::new("cmt").expect("a scheme")).bind().expect("bound")
}

#[test]
fn packets_are_as_large_as_the_interface_takes_and_follow_its_changes() {
    in_namespace("interfaces::resized", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn resized() {
    pair("10.77.0.1");
    ip("addr add 10.77.0.2/24 dev near");
    let (server, client) = (accepting([10, 77, 0, 1]), host([10, 77, 0, 2]).bind().expect("bound"));
    client.follow(
        Watcher::new(|local| local.interface == "near" && local.address.is_ipv4()),
        Binding { port: 0, to_interface: false },
    );
    let (association, _accepted) = associated(&client, &server).await;
    has_packets_of(&association, 1500).await;
    for mtu in [9000, 1400, 4000] {
        ip(&format!("link set near mtu {mtu}"));
        has_packets_of(&association, mtu).await;
    }
}

#[test]
fn unwatched_mtu_decrease_is_noticed_at_the_first_refused_packet() {
    in_namespace("interfaces::refused", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn refused() {
    let (server, client) = (accepting([127, 0, 0, 1]), host([127, 0, 0, 2]).bind().expect("bound"));
    let (association, accepted) = associated(&client, &server).await;
    ip("link set lo mtu 8000");
    // The host is not notified, so the previous result is kept.
    let before = association.paths().await[0].mtu_bytes;
    association.send(vec![1; 200_000], SendOptions::default()).await.expect("taken");
    let message = tokio::time::timeout(TIMEOUT, accepted.recv()).await.expect("in time").expect("open");
    assert_eq!(message.expect("a message").payload.len(), 200_000);
    has_packets_of(&association, 8000).await;
    assert!(before <= 65_535);
    assert_eq!(association.snapshot().await.statistics.black_holes, 0);
}
