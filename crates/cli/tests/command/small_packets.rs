//! Two links in network namespaces, with packets of 1000 and of 1500 bytes.

use super::network::{End, LONGEST_PAUSE, Network, assert_same, longest_pause, pairs};

/// Sends files while the second link carries only packets of 1000 bytes. Larger ones are lost there without a report to either end.
#[track_caller]
fn sends_over_both(network: &Network) {
    network.files("data", 16);
    let _server = network.serve(&[]);
    let mut sending = network.start(End::Client, &["send", "data", "10.91.1.2", "--json"]);
    let pause = longest_pause(&mut sending, &network.path("served"), &[]);
    let carried = pairs(&sending.end());
    assert!(carried.iter().any(|pair| pair.starts_with("10.91.1.1>")), "{carried:?}");
    assert!(carried.iter().any(|pair| pair.starts_with("10.91.2.1>")), "{carried:?}");
    assert!(pause < 2 * LONGEST_PAUSE, "{pause:?} without progress");
    assert_same(&network.path("data"), &network.path("served/data"), 16);
}

#[test]
fn small_packet_size_in_the_network_does_not_stall_the_other_link() {
    let Some(network) = Network::new() else { return };
    network.middle.run("for port in mc2 ms2 sw2; do ip link set $port mtu 1000; done");
    sends_over_both(&network);
}

#[test]
fn small_packet_size_of_the_client_does_not_stall_the_other_link() {
    let Some(network) = Network::new() else { return };
    network.client.run("ip link set c2 mtu 1000");
    sends_over_both(&network);
}

#[test]
fn small_packet_size_of_the_server_does_not_stall_the_other_link() {
    let Some(network) = Network::new() else { return };
    network.server.run("ip link set s2 mtu 1000");
    sends_over_both(&network);
}
