//! Plain commands of the book over two direct links in network namespaces. Each cable is pulled in turn at both ends.

use std::fs;
use std::time::{Duration, Instant};

use super::network::{End, LONGEST_PAUSE, MB, Network, Running, assert_same, longest_pause, pairs};

/// Pulls each cable in turn at both ends. Returns the longest time in which the folder did not grow.
fn pause_while_cables_are_pulled(network: &Network, running: &mut Running, folder: &str) -> Duration {
    let (pull, plug) = (|end, link| network.pull(end, link), |end, link| network.plug(end, link));
    longest_pause(
        running,
        &network.path(folder),
        &[
            &|| pull(End::Server, 1),
            &|| plug(End::Server, 1),
            &|| pull(End::Client, 1),
            &|| plug(End::Client, 1),
            &|| pull(End::Server, 2),
            &|| plug(End::Server, 2),
            &|| pull(End::Client, 2),
            &|| plug(End::Client, 2),
        ],
    )
}

#[test]
fn each_cable_pulled_in_turn_at_both_ends_costs_less_than_a_second() {
    let Some(network) = Network::new() else { return };
    network.files("data", 30);
    let _server = network.serve(&[]);
    let mut sending = network.start(End::Client, &["send", "data", "10.91.1.2", "--json"]);
    let pause = pause_while_cables_are_pulled(&network, &mut sending, "served");
    sending.end();
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
    assert_same(&network.path("data"), &network.path("served/data"), 30);
}

const README: &str = include_str!("../../../../README.md");

/// Returns the words of the README's command that begins like this, without `anabranch`.
fn readme_command(beginning: &str) -> Vec<&'static str> {
    let shown = README.lines().filter_map(|line| line.strip_prefix("$ anabranch "));
    let command = shown.into_iter().find(|line| line.starts_with(beginning)).expect("a command of README");
    command.split(' ').collect()
}

#[test]
fn commands_of_the_readme_survive_loss_of_each_carrier() {
    let Some(network) = Network::new() else { return };
    let mut offer = readme_command("send --code ");
    assert_eq!(offer, ["send", "--code", "video.mkv", "photos"]);
    network.files("photos", 29);
    fs::rename(network.path("photos/28"), network.path("video.mkv")).expect("renamed");
    offer.push("--json");
    let mut offering = network.start(End::Server, &offer);
    let code = offering.event("code")["code"].as_str().expect("a code").to_owned();
    let (typed, host) = (readme_command("recv "), format!("{code}@10.91.1.2"));
    assert_eq!(typed[2..], ["--dir", "inbox"]);
    let mut receiving = network.start(End::Client, &["recv", &host, "--dir", "inbox", "--yes", "--json"]);
    let pause = pause_while_cables_are_pulled(&network, &mut receiving, "inbox");
    receiving.end();
    offering.end();
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
    assert_same(&network.path("photos"), &network.path("inbox/photos"), 28);
    let video = ["video.mkv", "inbox/video.mkv"].map(|name| fs::read(network.path(name)).expect("a file"));
    assert!(video[0] == video[1]);
}

#[test]
fn black_hole_in_each_link_costs_a_receiver_less_than_a_second() {
    let Some(network) = Network::new() else { return };
    network.files("served/data", 14);
    fs::create_dir_all(network.path("got")).expect("a folder");
    let _server = network.serve(&["--allow", "read"]);
    let arguments = ["recv", "10.91.1.2", "data", "--dir", "got", "--json"];
    let mut receiving = network.start(End::Client, &arguments);
    // If the system does not report the return of a path, the endpoint detects it within RTO.Max, 10 s. Therefore only one link is
    // interrupted.
    let pause = longest_pause(
        &mut receiving,
        &network.path("got"),
        &[&|| network.interrupt(1), &|| network.restore(1)],
    );
    receiving.end();
    assert!(pause < LONGEST_PAUSE, "{pause:?} without progress");
    assert_same(&network.path("served/data"), &network.path("got/data"), 14);
}

#[test]
fn every_link_is_used_after_one_address_was_typed() {
    let Some(network) = Network::new() else { return };
    network.files("data", 6);
    let _server = network.serve(&[]);
    let end = network.start(End::Client, &["send", "data", "10.91.1.2", "--json"]).end();
    let pairs = pairs(&end);
    for pair in ["10.91.1.1>10.91.1.2", "10.91.2.1>10.91.2.2"] {
        assert!(pairs.iter().any(|one| one == pair), "{pairs:?}");
    }
}

#[test]
fn named_ends_of_paths_stay_the_only_ones() {
    let Some(network) = Network::new() else { return };
    network.files("data", 3);
    let _server = network.serve(&[]);
    let end = network.start(End::Client, &["send", "data", "10.91.1.2", "--path", "c1", "--json"]).end();
    assert_eq!(pairs(&end), ["10.91.1.1>10.91.1.2"]);
    network.files("data", 4);
    let to = ["send", "data", "10.91.1.2", "--path", "c2", "--to", "10.91.2.2", "--json"];
    let end = network.start(End::Client, &to).end();
    assert_eq!(pairs(&end), ["10.91.2.1>10.91.2.2"]);
}

#[test]
fn addresses_of_a_name_in_crossed_order_pair_by_their_networks() {
    let Some(network) = Network::new() else { return };
    network.files("data", 6);
    let _server = network.serve(&[]);
    fs::write(network.path("hosts"), "10.91.2.2 peer.test\n10.91.1.2 peer.test\n").expect("written");
    let end = network.start(End::Client, &["send", "data", "peer.test", "--json"]).end();
    let mut pairs = pairs(&end);
    pairs.sort_unstable();
    assert_eq!(pairs, ["10.91.1.1>10.91.1.2", "10.91.2.1>10.91.2.2"]);
}

#[test]
fn dead_first_address_of_a_name_is_passed_over() {
    let Some(network) = Network::new() else { return };
    network.files("data", 1);
    let _server = network.serve(&[]);
    fs::write(network.path("hosts"), "10.91.1.77 peer.test\n10.91.2.2 peer.test\n").expect("written");
    // With one local address, both addresses of the name are tried from there.
    network.client.run("ip addr flush dev c1");
    network.client.run("ip route add 10.91.1.0/24 dev c2");
    let begun = Instant::now();
    network.start(End::Client, &["send", "data", "peer.test", "--json"]).end();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// Returns the address pairs that carry data after one end has lost the address of `device`, and routes the second network over the
/// device `route`.
fn pairs_without(end: End, device: &str, route: &str) -> Option<Vec<String>> {
    let network = Network::new()?;
    network.namespace(end).run(&format!("ip addr flush dev {device}; ip route add 10.91.2.0/24 dev {route}"));
    network.files("data", 4);
    let _server = network.serve(&[]);
    let end = network.start(End::Client, &["send", "data", "10.91.1.2", "--json"]).end();
    let mut pairs = pairs(&end);
    pairs.sort_unstable();
    Some(pairs)
}

#[test]
fn one_address_of_the_client_uses_two_of_the_server() {
    let Some(pairs) = pairs_without(End::Client, "c2", "c1") else { return };
    assert_eq!(pairs, ["10.91.1.1>10.91.1.2", "10.91.1.1>10.91.2.2"]);
}

#[test]
fn two_addresses_of_the_client_use_one_of_the_server() {
    let Some(pairs) = pairs_without(End::Server, "s2", "s2") else { return };
    assert_eq!(pairs, ["10.91.1.1>10.91.1.2", "10.91.2.1>10.91.1.2"]);
}

#[test]
fn bench_survives_loss_of_a_carrier_at_either_end() {
    let Some(network) = Network::new() else { return };
    let _server = network.start(End::Server, &["bench", "-s", "--json-stream"]);
    let arguments = ["bench", "-c", "10.91.1.2", "-t", "6", "-i", "0.5", "--json-stream"];
    let bench = network.start(End::Client, &arguments);
    std::thread::sleep(Duration::from_millis(1500));
    network.pull(End::Server, 1);
    std::thread::sleep(Duration::from_millis(1500));
    network.plug(End::Server, 1);
    std::thread::sleep(Duration::from_millis(1000));
    network.pull(End::Client, 2);
    let lines = bench.lines();
    let intervals = lines.iter().filter(|line| line["event"] == "interval");
    let delivered = intervals.map(|line| line["data"]["sum"]["delivered_bytes"].as_u64().expect("a number"));
    let delivered: Vec<u64> = delivered.collect();
    assert!(delivered.len() >= 10, "{delivered:?}");
    assert!(delivered.windows(2).all(|two| two[0] + two[1] > 0), "{delivered:?}");
    assert!(delivered.iter().sum::<u64>() > 12 * MB as u64, "{delivered:?}");
}
