//! Two interfaces of the client with the same address in network namespaces, as two identical LTE modems have it.

use super::network::{End, LONGEST_PAUSE, Network, assert_same, longest_pause, pairs};

const ADDRESS: &str = "192.168.8.100";

/// Gives both interfaces of the client the same address. The server answers each of its addresses through the link of that address.
fn with_one_address() -> Option<Network> {
    let network = Network::new()?;
    for link in 1..=2 {
        network.client.run(&format!("ip addr flush dev c{link}; ip addr add {ADDRESS}/24 dev c{link}"));
        network.server.run(&format!(
            "ip rule add from 10.91.{link}.2 table {link}; ip route add {ADDRESS} dev s{link} table {link}; \
             ip route add {ADDRESS} dev s{link} metric {link}"
        ));
    }
    Some(network)
}

/// Returns the same network, with a route of the client to each link of the server.
fn routed() -> Option<Network> {
    let network = with_one_address()?;
    network.client.run("ip route add 10.91.1.0/24 dev c1; ip route add 10.91.2.0/24 dev c2");
    Some(network)
}

/// Returns the number of bytes that an interface of the client has sent.
fn sent_bytes(network: &Network, device: &str) -> u64 {
    let show = ["ip", "-s", "-j", "link", "show", "dev", device];
    let output = network.client.enter(&show).output().expect("ip").stdout;
    let links: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
    links[0]["stats64"]["tx"]["bytes"].as_u64().expect("a number")
}

#[test]
fn each_of_two_interfaces_with_one_address_carries_alone() {
    let Some(network) = routed() else { return };
    network.files("data", 16);
    let _server = network.serve(&[]);
    let mut sending = network.start(End::Client, &["send", "data", "10.91.1.2", "--json"]);
    let pause = longest_pause(
        &mut sending,
        &network.path("served"),
        &[
            &|| network.pull(End::Client, 1),
            &|| network.plug(End::Client, 1),
            &|| network.pull(End::Client, 2),
            &|| network.plug(End::Client, 2),
        ],
    );
    // The second interface also reaches the address of the first link: the server answers for both on either link.
    let end = sending.end();
    let mut interfaces: Vec<_> = end["paths"]
        .as_array()
        .expect("paths")
        .iter()
        .filter_map(|path| path["interface"].as_str())
        .collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    assert_eq!(interfaces, ["c1", "c2"]);
    let mut pairs = pairs(&end);
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs, [1, 2].map(|link| format!("{ADDRESS}>10.91.{link}.2")));
    let sent = ["c1", "c2"].map(|device| sent_bytes(&network, device));
    assert!(sent.iter().all(|bytes| *bytes > 5_000_000), "{sent:?}");
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
    assert_same(&network.path("data"), &network.path("served/data"), 16);
}

#[test]
fn address_lost_by_one_interface_stays_in_use_at_the_other() {
    let Some(network) = routed() else { return };
    network.files("data", 12);
    let _server = network.serve(&[]);
    let mut sending = network.start(End::Client, &["send", "data", "10.91.1.2", "--json"]);
    let before = sent_bytes(&network, "c2");
    let pause = longest_pause(
        &mut sending,
        &network.path("served"),
        &[&|| network.client.run("ip addr flush dev c1"), &|| {
            network.client.run(&format!("ip addr add {ADDRESS}/24 dev c1"));
            network.client.run("ip route add 10.91.1.0/24 dev c1");
        }],
    );
    sending.end();
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
    assert!(sent_bytes(&network, "c2") - before > 5_000_000);
    assert_same(&network.path("data"), &network.path("served/data"), 12);
}

#[test]
fn path_sends_through_its_named_interface() {
    let Some(network) = with_one_address() else { return };
    for link in 1..=2 {
        network.client.run(&format!("ip route add 10.91.0.0/16 dev c{link} metric {link}"));
    }
    network.files("data", 2);
    let _server = network.serve(&[]);
    for (device, other, to) in [("c2", "c1", "10.91.2.2"), ("c1", "c2", "10.91.1.2")] {
        let before = [device, other].map(|name| sent_bytes(&network, name));
        let folder = format!("data-{device}");
        std::fs::rename(network.path("data"), network.path(&folder)).expect("renamed");
        network.start(End::Client, &["send", &folder, to, "--path", device, "--json"]).end();
        std::fs::rename(network.path(&folder), network.path("data")).expect("renamed");
        let after = [device, other].map(|name| sent_bytes(&network, name));
        assert!(after[0] - before[0] > 4_000_000, "{device}: {before:?} {after:?}");
        assert!(after[1] - before[1] < 20_000, "{other}: {before:?} {after:?}");
    }
}

#[test]
fn address_of_two_interfaces_is_refused_as_a_path() {
    let Some(network) = with_one_address() else { return };
    network.files("data", 1);
    let arguments = ["send", "data", "10.91.1.2", "--path", ADDRESS];
    let mut command = network.anabranch(End::Client, &arguments);
    let output = command.stderr(std::process::Stdio::piped()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("c1 and c2 have this address"), "{text}");
}
