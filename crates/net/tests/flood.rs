//! Floods of handshakes from one source before a host that protects packets: an IPv4 address, and an IPv6 network (/64). They take
//! places from their own source alone.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anabranch_core::protection::{KeyManagementMethod, KeyManagementRoles, ProtectionMode};
use anabranch_net::{
    Association, AssociationConfig, Credentials, Host, PathAddress, Peer, Protection, config,
};
use anabranch_tests::credentials::{credentials, identity};

/// Places for associations without keys.
const PLACES: usize = 8;

/// Handshakes of a flood.
const FLOOD: u16 = 60;

/// Nothing here takes as long, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it hangs")
}

fn host(address: IpAddr, protection: Protection, accepts: bool) -> Host {
    let builder = Host::builder(protection).local(SocketAddr::new(address, 0)).max_handshakes(PLACES);
    let builder = if accepts { builder.accept(config("cmt").expect("a scheme")) } else { builder };
    builder.bind().expect("a host")
}

fn protected(address: IpAddr, credentials: Credentials, accepts: bool) -> Host {
    host(address, Protection::dtls(credentials), accepts)
}

async fn connect(client: &Host, server: &Host, config: AssociationConfig) -> Association {
    let path = PathAddress::over_udp(client.local_addresses()[0].ip(), server.local_addresses()[0]);
    let peer = Peer::new([path]).sctp_port(server.sctp_port());
    within(client.connect(peer, config)).await.expect("connected at the first attempt")
}

/// A peer that completes the exchange of cookies and then says nothing.
async fn silent(address: IpAddr, server: &Host) -> (Host, Association) {
    let mut config = config("cmt").expect("a scheme");
    config.protection = Some(anabranch_core::protection::Protection {
        mode: ProtectionMode::Strict,
        roles: KeyManagementRoles::Client,
        methods: vec![KeyManagementMethod::TLS],
        restart: false,
    });
    let host = host(address, Protection::Insecure, false);
    let association = connect(&host, server, config).await;
    (host, association)
}

/// A silent peer at `bystander`, and a client at `client`, beside a flood from the addresses of one source.
async fn flood_leaves_others_alone(
    server: IpAddr,
    bystander: IpAddr,
    client: IpAddr,
    flood: impl Fn(u16) -> IpAddr,
) {
    let server = protected(server, credentials(2, &[1]), true);
    let (_keep, waiting) = silent(bystander, &server).await;
    let mut strangers = Vec::new();
    for number in 0..FLOOD {
        strangers.push(silent(flood(number), &server).await);
    }
    let keying = within(server.statistics()).await.keying;
    let gone = u64::from(FLOOD) + 1 - PLACES as u64;
    assert_eq!((keying.pending, keying.failed), (PLACES as u64, gone));
    assert!(!waiting.is_closed(), "the oldest handshake is of another source");
    let client = protected(client, credentials(1, &[2]), false);
    let (ours, theirs) =
        tokio::join!(connect(&client, &server, config("cmt").expect("a scheme")), within(server.accept()));
    assert_eq!(theirs.expect("accepted").peer_identity(), Some(identity(1)));
    assert!(ours.is_open());
}

#[tokio::test]
async fn flood_from_one_address_ends_no_handshake_of_another() {
    let node = |last: u8| IpAddr::from([127, 0, 40, last]);
    flood_leaves_others_alone(node(1), node(2), node(3), |_| node(9)).await;
}

/// Runs a test that is ignored otherwise in a network namespace of its own, whose loopback interface takes any address.
#[cfg(target_os = "linux")]
#[test]
fn flood_from_one_ipv6_network_counts_as_one_source() {
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a path");
    let networks =
        ["1", "2", "3"].map(|network| format!("ip addr add fd00:0:0:{network}::1/64 dev lo nodad"));
    let hosts = (0..FLOOD).map(|host| format!("ip addr add fd00:0:0:9::{:x}/64 dev lo nodad", host + 1));
    let prepare = networks.into_iter().chain(hosts).collect::<Vec<_>>().join(" && ");
    let run = format!(
        "ip link set lo up && {prepare} && exec '{program}' --ignored --exact ipv6_flood --nocapture"
    );
    let ended = std::process::Command::new("unshare")
        .args(["-U", "-r", "-n", "sh", "-c", &run])
        .output()
        .expect("unshare");
    let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn ipv6_flood() {
    let at = |network: u16, host: u16| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, network, 0, 0, 0, host));
    flood_leaves_others_alone(at(1, 1), at(2, 1), at(3, 1), |number| at(9, number + 1)).await;
}
