//! Programs through a simulated forwarder.

use anabranch_lab::run::ConnectionResult;
use anabranch_mapping::STREAM_SCHEDULER;

use crate::common::{job, run};

/// Two paths of 4 Mbit/s with a round trip of 20 ms.
fn scenario(flow: &str, path: &str) -> String {
    let path = format!("[[path]]\nrate = \"4 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"50 packets\"\n{path}\n");
    format!(
        "[run]\nduration = \"10 s\"\nprofile = \"net\"\n[association]\nrecv_buffer = \"1 MiB\"\n\
         encapsulation = \"udp\"\n{path}{path}[[flow]]\nkind = \"forward\"\n{flow}\n"
    )
}

fn connections(text: &str) -> Vec<ConnectionResult> {
    let mut result = run(text, "braid", 1);
    assert_eq!(result.failure, None);
    result.flows.remove(0).connections
}

#[test]
fn downloads_share_the_rate_of_all_paths_equally() {
    let found = connections(&scenario("downloads = 3", ""));
    let names: Vec<&str> = found.iter().map(|each| each.name.as_str()).collect();
    assert_eq!(names, ["download-1", "download-2", "download-3"]);
    for each in &found {
        // A third of 8 Mbit/s without headers.
        assert!((2_200.0..2_667.0).contains(&each.goodput_kbps), "{found:?}");
        assert_eq!((each.sent, each.median_ms), (0, None));
    }
}

#[test]
fn keystroke_waits_for_its_echo_and_less_so_with_priority() {
    let p99 = |priority: bool| {
        let keys = format!(
            "downloads = 8\nkeystrokes = {{ interval = \"100 ms\", priority = {priority} }}\nstart = \"0 s\""
        );
        let found = connections(&scenario(&keys, ""));
        let typed = found.last().expect("keystrokes");
        assert_eq!((typed.name.as_str(), typed.sent), ("keystrokes", 100));
        // The first and the last one may be in flight at the end.
        assert!(typed.completed >= 98 && typed.median_ms > Some(20.0), "{typed:?}");
        typed.p99_ms.expect("a time")
    };
    assert!(p99(true) < p99(false), "{} and {}", p99(true), p99(false));
}

#[test]
fn keystrokes_beside_64_downloads_return_within_20_ms_of_idle() {
    let p99_ms = |downloads: usize| {
        let flow =
            format!("downloads = {downloads}\nkeystrokes = {{ interval = \"50 ms\" }}\nstart = \"0 s\"");
        let text =
            scenario(&flow, "").replace("4 Mbit/s", "10 Mbit/s").replace("[run]", "[run]\nwarmup = \"2 s\"");
        let found = connections(&text);
        let typed = found.last().expect("keystrokes");
        assert!(typed.completed >= typed.sent - 2, "{typed:?}");
        let downloaded: f64 = found.iter().take(downloads).map(|each| each.goodput_kbps).sum();
        assert!(downloads == 0 || downloaded > 16_000.0, "{downloaded}");
        typed.p99_ms.expect("a time")
    };
    let [idle, one, many] = [0, 1, 64].map(p99_ms);
    assert!(many < idle + 20.0 && one < idle + 20.0, "{idle} {one} {many}");
}

#[test]
fn response_begins_when_the_whole_request_has_arrived() {
    let flow = "requests = { request = \"100 kB\", response = \"50 kB\", interval = \"1 s\" }";
    let found = connections(&scenario(flow, ""));
    let [requests] = &found[..] else { panic!("{found:?}") };
    // 150 kB at 8 Mbit/s take 150 ms, and two propagations 20 ms.
    assert!(requests.sent >= 9 && requests.median_ms > Some(170.0), "{requests:?}");
    assert!(requests.p99_ms < Some(1_000.0) && requests.goodput_kbps > 900.0, "{requests:?}");
}

#[test]
fn lost_datagrams_arrive_within_their_lifetime() {
    let flow = "datagrams = { size = \"160 B\", interval = \"20 ms\" }";
    for protection in ["", "protection = \"dtls\"\n"] {
        let text =
            scenario(flow, "loss = 0.05").replace("encapsulation", &format!("{protection}encapsulation"));
        let found = connections(&text);
        let datagrams = &found[0];
        assert!(datagrams.sent > 480 && datagrams.completed >= datagrams.sent - 3, "{datagrams:?}");
        assert!(datagrams.median_ms < Some(15.0) && datagrams.max_ms < Some(1_000.0), "{datagrams:?}");
    }
}

#[test]
fn small_datagrams_beside_a_lossy_path_arrive_in_time() {
    let flow = "datagrams = { size = \"160 B\", interval = \"20 ms\" }";
    let one_lossy = scenario(flow, "").replacen("queue", "loss = 0.05\nqueue", 1);
    let found = connections(&one_lossy);
    let [datagrams] = &found[..] else { panic!("{found:?}") };
    assert!(datagrams.sent > 480 && datagrams.completed == datagrams.sent, "{datagrams:?}");
    assert!(datagrams.max_ms < Some(15.0), "{datagrams:?}");
    // Over two lossy paths a copy is in time, too. A retransmission takes a round trip of 20 ms more.
    let p99_ms = |flow: &str| connections(&scenario(flow, "loss = 0.05"))[0].p99_ms;
    assert!(p99_ms(flow) < Some(15.0), "{:?}", p99_ms(flow));
    let fast = "datagrams = { size = \"160 B\", interval = \"5 ms\" }";
    assert!(p99_ms(fast) > Some(25.0), "{:?}", p99_ms(fast));
}

#[test]
fn streams_of_a_flow_are_scheduled_as_those_of_the_forwarder() {
    let job = job(&scenario("downloads = 3", ""), "braid", 1);
    let plan = job.flow_plan(0).expect("a plan");
    assert_eq!(plan.config.stream_scheduler, STREAM_SCHEDULER);
    assert_eq!(plan.streams, 6);
}

#[test]
fn costs_of_paths_hold_for_both_directions() {
    let flow = "downloads = 1\nkeystrokes = { interval = \"100 ms\" }";
    let rate = |cost: &str| {
        let text = scenario(flow, "").replacen("queue", &format!("cost = \"{cost}\"\nqueue"), 1);
        connections(&text)[0].goodput_kbps
    };
    let [free, metered, backup] = ["free", "metered", "backup"].map(rate);
    assert!((6_500.0..8_000.0).contains(&free), "{free}");
    // Data waits for a second before it uses the metered path.
    assert!(metered > 5_000.0 && metered < free, "{metered}");
    assert!((3_200.0..4_000.0).contains(&backup), "{backup}");
}
