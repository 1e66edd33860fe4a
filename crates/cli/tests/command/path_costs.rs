//! Costs and limits of links, over two direct links in network namespaces.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::network::{End, MB, Network, WEB_SERVER, assert_same, pairs};

/// Pair of the first link, and a second link with these terms.
fn over_both(terms: &str) -> Vec<String> {
    let second = format!("c2,{terms}");
    ["--path", "c1", "--to", "10.91.1.2:9899", "--path", &second, "--to", "10.91.2.2:9899"]
        .map(str::to_owned)
        .to_vec()
}

fn with<'a>(words: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

/// Returns the bytes that the client's end of a link has received and sent.
fn bytes_of(network: &Network, link: u8) -> u64 {
    let mut show = network.client.enter(&["ip", "-s", "-j", "link", "show", &format!("c{link}")]);
    let output = show.stdout(Stdio::piped()).output().expect("it starts").stdout;
    let shown: Value = serde_json::from_slice(&output).expect("JSON");
    let of = |way: &str| shown[0]["stats64"][way]["bytes"].as_u64().expect("a number");
    of("rx") + of("tx")
}

#[test]
fn backup_link_carries_a_transfer_only_while_the_other_is_cut() {
    let Some(network) = Network::new() else { return };
    network.files("data", 4);
    let _server = network.serve(&["--allow", "both"]);
    let terms = over_both("only=backup");
    let end = network.start(End::Client, &with(&["send", "data", "10.91.1.2", "--json"], &terms)).end();
    assert_eq!(pairs(&end), ["10.91.1.1>10.91.1.2"]);
    // The server's data keeps to the first link, too.
    let before = bytes_of(&network, 2);
    network.start(End::Client, &with(&["recv", "10.91.1.2", "data", "--dir", "got", "--json"], &terms)).end();
    assert_same(&network.path("data"), &network.path("got/data"), 4);
    let carried = bytes_of(&network, 2) - before;
    assert!(carried < MB as u64 / 10, "{carried} bytes on the backup link");
    network.interrupt(1);
    let before = bytes_of(&network, 2);
    network
        .start(End::Client, &with(&["recv", "10.91.1.2", "data", "--dir", "more", "--json"], &terms))
        .end();
    assert_same(&network.path("data"), &network.path("more/data"), 4);
    assert!(bytes_of(&network, 2) - before > 8 * MB as u64);
}

#[test]
fn backup_link_of_the_listening_side_carries_no_data_beside_another() {
    let Some(network) = Network::new() else { return };
    network.files("data", 4);
    let _server = network.serve(&["--allow", "both", "--cost", "s2,only=backup"]);
    let both = ["--path", "c1", "--to", "10.91.1.2:9899", "--path", "c2", "--to", "10.91.2.2:9899"];
    let words = [&["send", "data", "10.91.1.2", "--json"][..], &both].concat();
    network.start(End::Client, &words).end();
    // The report of the cost may be later than the first data.
    let before = bytes_of(&network, 2);
    let words = [&["recv", "10.91.1.2", "data", "--dir", "got", "--json"][..], &both].concat();
    network.start(End::Client, &words).end();
    assert_same(&network.path("data"), &network.path("got/data"), 4);
    let carried = bytes_of(&network, 2) - before;
    assert!(carried < MB as u64 / 4, "{carried} bytes on the backup link");
}

fn counted(network: &Network, link: &str) -> u64 {
    let text = fs::read_to_string(network.path(&format!("home-c/state/anabranch/links/{link}.json")))
        .expect("a count");
    let stored: Value = serde_json::from_str(&text).expect("JSON");
    stored["days"].as_object().expect("days").values().map(|bytes| bytes.as_u64().expect("a number")).sum()
}

#[test]
fn link_with_a_used_up_limit_is_not_used_by_later_commands() {
    let Some(network) = Network::new() else { return };
    network.files("data", 10);
    let _server = network.serve(&[]);
    let terms = over_both("limit=3MB/month");
    let before = bytes_of(&network, 2);
    let end = network.start(End::Client, &with(&["send", "data", "10.91.1.2", "--json"], &terms)).end();
    assert_eq!(end["result"], "complete", "{end}");
    assert_same(&network.path("data"), &network.path("served/data"), 10);
    let (used, carried) = (counted(&network, "c2"), bytes_of(&network, 2) - before);
    // The link has 20 Mbit/s, and 0.2 s pass between two counts.
    assert!((3_000_000..6_000_000).contains(&used), "{used}");
    // The interface also counts Ethernet headers and other protocols, and headers of segmented datagrams once.
    assert!(carried.abs_diff(used) < used / 10, "{used} of {carried}");
    network.files("data", 12);
    let before = bytes_of(&network, 2);
    let end = network.start(End::Client, &with(&["send", "data", "10.91.1.2", "--json"], &terms)).end();
    assert_eq!(pairs(&end), ["10.91.1.1>10.91.1.2"]);
    assert!(bytes_of(&network, 2) - before < 10_000, "a barred link carries nothing");
    let only = ["send", "data", "10.91.2.2", "--path", "c2,limit=3MB/month", "--connect-timeout", "2"];
    let output = network.anabranch(End::Client, &only).stderr(Stdio::piped()).output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("c2: its limit of 3.00 MB/month is used up"), "{error}");
    assert!(error.contains("has reached its limit"), "{error}");
}

#[test]
fn short_commands_count_their_bytes_and_return_the_reservation() {
    let Some(network) = Network::new() else { return };
    // Otherwise the interface counts the headers of datagrams that the system segments once.
    network.client.run("ip link set c2 gso_max_segs 1");
    network.server.run("ip link set s2 gso_max_segs 1");
    let _server = network.serve(&[]);
    let mut counts = vec![0];
    let check = ["paths", "--check", "10.91.2.2", "--path", "c2,limit=1GB/month"];
    // The host has no such file, so the association ends at once. The address belongs to the same interface.
    let recv = ["recv", "10.91.2.2", "missing", "--path", "10.91.2.1,limit=1GB/month"];
    // No host has this address.
    let unanswered =
        ["send", "served", "10.91.2.9", "--path", "c2,limit=1GB/month", "--connect-timeout", "1"];
    for arguments in [&check[..], &recv, &unanswered] {
        let before = bytes_of(&network, 2);
        network.anabranch(End::Client, arguments).stderr(Stdio::null()).output().expect("it starts");
        counts.push(counted(&network, "c2"));
        let (new, carried) =
            (counts[counts.len() - 1] - counts[counts.len() - 2], bytes_of(&network, 2) - before);
        // Without an answer, the interface drops packets that wait for the address resolution of the host.
        let is_answered = arguments != unanswered;
        assert!(new <= carried || !is_answered, "{new} of {carried}: {arguments:?}");
        assert!(new < 64 << 10, "{new}: {arguments:?}");
    }
    assert!(counts.is_sorted_by(|before, after| before < after), "{counts:?}");
}

#[test]
fn ctrl_c_before_the_first_answer_returns_the_reservation() {
    let Some(network) = Network::new() else { return };
    let arguments = ["forward", "10.91.2.9", "--json", "-D", "1080", "--path", "c2,limit=1GB/month"];
    let mut forwarding =
        network.anabranch(End::Client, &arguments).stderr(Stdio::null()).spawn().expect("it starts");
    let file = network.path("home-c/state/anabranch/links/c2.json");
    while !file.exists() && forwarding.try_wait().expect("a status").is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(counted(&network, "c2") >= 64 << 10, "reserved");
    crate::support::signal(forwarding.id(), "INT");
    assert_eq!(forwarding.wait().expect("it ends").code(), Some(130));
    assert!(counted(&network, "c2") < 64 << 10, "{}", counted(&network, "c2"));
}

#[test]
fn damaged_count_of_a_limited_link_ends_the_command_with_a_remedy() {
    let Some(network) = Network::new() else { return };
    network.files("data", 1);
    let folder = network.path("home-c/state/anabranch/links");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("c2.json"), "{").expect("written");
    let arguments = ["send", "data", "10.91.2.2", "--path", "c2,limit=3MB/month"];
    let output =
        network.anabranch(End::Client, &arguments).stderr(Stdio::piped()).output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("c2.json") && error.contains("remove it"), "{error}");
}

/// Waits until the server's command knows of a path with this cost, which the client reports in a HEARTBEAT.
fn wait_for_cost(network: &Network, command: &str, cost: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let mut top = network.anabranch(End::Server, &["top", command, "--once", "--json"]);
        let sample = top.stdout(Stdio::piped()).output().expect("it starts").stdout;
        let sample: Value = serde_json::from_slice(&sample).expect("JSON");
        let paths = sample["associations"][0]["paths"].as_array();
        if paths.is_some_and(|paths| paths.iter().any(|path| path["cost"] == cost)) {
            return;
        }
        assert!(Instant::now() < until, "{sample}");
    }
}

/// Downloads a file through the forwarded port.
const DOWNLOAD: &str = "
import shutil, urllib.request
print('started')
with urllib.request.urlopen('http://127.0.0.1:8001/0') as answer, open('got-0', 'wb') as file:
    shutil.copyfileobj(answer, file)
";

#[test]
fn forward_shows_costs_and_use_of_its_links() {
    let Some(network) = Network::new() else { return };
    network.files("served", 1);
    let _web = network.python(End::Server, WEB_SERVER);
    let _gateway = network.start(End::Server, &["gateway", "--json", "--allow", "127.0.0.1:8000"]);
    let terms = over_both("limit=1GB/month,only=backup");
    let arguments = with(&["forward", "10.91.1.2", "--json", "-L", "8001:127.0.0.1:8000"], &terms);
    let mut forwarding = network.start(End::Client, &arguments);
    forwarding.event("listening");
    wait_for_cost(&network, "gateway", "backup");
    network.python(End::Client, DOWNLOAD).wait();
    assert!(
        fs::read(network.path("got-0")).expect("a file")
            == fs::read(network.path("served/0")).expect("a file")
    );
    let mut top = network.anabranch(End::Client, &["top", "forward", "--once", "--json"]);
    let sample = top.stdout(Stdio::piped()).output().expect("it starts").stdout;
    let sample: Value = serde_json::from_slice(&sample).expect("JSON");
    assert_eq!(sample["link_costs"][0]["usage"], "backup", "{sample}");
    let paths = sample["associations"][0]["paths"].as_array().expect("paths");
    let second = paths.iter().find(|path| path["interface"] == "c2").expect("the backup path");
    assert_eq!(second["why"], "backup: another path works", "{sample}");
    let mut metrics = network.anabranch(End::Client, &["top", "forward", "--openmetrics"]);
    let page = metrics.stdout(Stdio::piped()).output().expect("it starts").stdout;
    let page = String::from_utf8(page).expect("text");
    assert!(page.contains("anabranch_link_limit_bytes{link=\"c2\"} 1000000000.0"), "{page}");
    assert!(page.contains("anabranch_link_use{link=\"c2\",use=\"backup\"} 1.0"), "{page}");
    forwarding.interrupt();
    let link = forwarding.event("link");
    assert_eq!((&link["name"], &link["usage"]), (&"c2".into(), &"backup".into()), "{link}");
    assert!(link["bytes"].as_u64().is_some_and(|bytes| bytes < MB as u64 / 10), "{link}");
}
