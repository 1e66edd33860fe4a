//! Cost of a scheme's decisions: the time of a run per packet with DATA, compared with that of plain `cmt`.
//!
//! Schemes send different numbers of packets in the same simulated time, so times are compared per packet. Runs of a scheme and of
//! `cmt` alternate; the ratio is the median over the pairs.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures wall-clock time"
)]

use std::sync::Arc;
use std::time::Instant;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Job, TracePart};
use anabranch_scenario::Scenario;
use anabranch_schemes::registry::{COMPONENTS, PRESETS, parse};

const TURNS: usize = 7;

/// Two different paths that are always busy, with losses, so that decisions of all kinds are frequent.
const SCENARIO: &str = r#"
[run]
duration = "120 s"

[association]
recv_buffer = "512 KiB"

[[path]]
name = "path-1"
rate = "20 Mbit/s"
delay = "20 ms"
queue = "50 packets"
loss = 0.002

[[path]]
name = "path-2"
rate = "10 Mbit/s"
delay = "50 ms"
queue = "50 packets"
loss = 0.002
"#;

fn job(scheme: &str) -> Job {
    let scenario = Scenario::parse(SCENARIO, "run cost", &[]).expect("the scenario is right");
    let conventions = Conventions::named(&scenario.run.profile).expect("its profile exists");
    Job {
        scenario: Arc::new(scenario),
        conventions: Arc::new(conventions),
        scheme: parse(scheme).expect(scheme).into(),
        seed: 1,
        files: Arc::default(),
        pcap: None,
        trace: None,
        part: TracePart::default(),
        digest: false,
    }
}

/// Returns the nanoseconds per packet with DATA, and the number of these packets.
fn nanoseconds_per_packet(job: &Job) -> (f64, u64) {
    let began = Instant::now();
    let result = job.run().expect("it runs");
    let elapsed = began.elapsed().as_nanos() as f64;
    let packets = result.paths.iter().map(|path| path.sent_packets).sum::<u64>().max(1);
    (elapsed / packets as f64, packets)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // `cargo bench -- NAME` measures the schemes whose name contains NAME.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let names = PRESETS.iter().map(|preset| preset.name.to_owned());
    let base = PRESETS.iter().find(|preset| preset.name == "cmt").expect("cmt is a preset");
    let added = COMPONENTS.iter().filter(|one| one.fits(base)).map(|one| format!("cmt+{}", one.name));
    let cmt = job("cmt");
    nanoseconds_per_packet(&cmt);
    println!("{:<24} {:>9} {:>10} {:>10} {:>7}", "scheme", "packets", "ns/packet", "cmt", "ratio");
    for name in names.chain(added).filter(|name| name.contains(&wanted)) {
        let job = job(&name);
        let (mut own, mut peer, mut ratios, mut packets) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..TURNS {
            let (time, sent) = nanoseconds_per_packet(&job);
            let (other, _) = nanoseconds_per_packet(&cmt);
            (packets, ratios) = (sent, [ratios, vec![time / other]].concat());
            own.push(time);
            peer.push(other);
        }
        let [own, peer, ratio] = [own, peer, ratios].map(median);
        println!("{name:<24} {packets:>9} {own:>10.0} {peer:>10.0} {ratio:>7.2}");
    }
}
