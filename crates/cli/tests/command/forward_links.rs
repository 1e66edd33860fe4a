//! `forward` and `gateway` over two direct links in network namespaces.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::network::{End, Network, WEB_SERVER, assert_cut_links_stop_no_download};

/// Downloads each file through the forwarded port, one connection for each.
const DOWNLOAD: &str = "
import shutil, urllib.request
print('started')
for number in range(14):
    with urllib.request.urlopen(f'http://127.0.0.1:8001/{number}') as answer, open(f'got/{number}', 'wb') as file:
        shutil.copyfileobj(answer, file, 16384)
";

#[test]
fn cables_pulled_during_downloads_cost_no_connection() {
    let Some(network) = Network::new() else { return };
    network.files("served", 14);
    fs::create_dir_all(network.path("got")).expect("a folder");
    let _web = network.python(End::Server, WEB_SERVER);
    let mut gateway = network.start(End::Server, &["gateway", "--json", "--allow", "127.0.0.1:8000"]);
    let mut forwarding =
        network.start(End::Client, &["forward", "10.91.1.2", "--json", "-L", "8001:127.0.0.1:8000"]);
    forwarding.event("listening");
    assert_cut_links_stop_no_download(&network, network.python(End::Client, DOWNLOAD));
    gateway.interrupt();
    let end = gateway.event("end");
    assert_eq!((&end["complete"], &end["reset"]), (&14.into(), &0.into()), "{end}");
}

/// Runs a check over these pairs of addresses, and returns its status and its object.
fn check(network: &Network, links: &[u8]) -> (Option<i32>, Value) {
    let ends = links.iter().flat_map(|link| {
        ["--path".to_owned(), format!("10.91.{link}.1"), "--to".to_owned(), format!("10.91.{link}.2:9899")]
    });
    let ends: Vec<String> = ends.collect();
    let fixed =
        ["forward", "--check", "10.91.1.2", "--json", "--check-size", "1MB", "--connect-timeout", "2"];
    let arguments: Vec<&str> = fixed.into_iter().chain(ends.iter().map(String::as_str)).collect();
    let output =
        network.anabranch(End::Client, &arguments).stdout(Stdio::piped()).output().expect("it starts");
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn check_measures_each_link_and_all_together() {
    let Some(network) = Network::new() else { return };
    let _gateway = network.start(End::Server, &["gateway", "--json"]);
    let (status, report) = check(&network, &[1, 2]);
    assert_eq!(status, Some(0));
    // The links have 20 Mbit/s each. A slow machine measures less.
    let rates = |link: &Value| {
        assert!(link["rtt_ms"].as_f64().is_some_and(|rtt| rtt > 0.0), "{link}");
        ["from_gateway_kbps", "to_gateway_kbps"].map(|key| link[key].as_f64().expect("a rate"))
    };
    let links = report["links"].as_array().expect("a list");
    assert_eq!((&links[0]["local"], &links[1]["local"]), (&"10.91.1.1".into(), &"10.91.2.1".into()));
    for rate in links.iter().flat_map(rates) {
        assert!((1e1..2.5e4).contains(&rate), "{report}");
    }
    for rate in rates(&report["together"]) {
        assert!((1e1..5e4).contains(&rate), "{report}");
    }
}
