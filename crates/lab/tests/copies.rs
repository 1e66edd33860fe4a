//! Redundant copies of `braid` on unequal paths with a small receive buffer.
//!
//! A random search found both settings. A slow path whose chunks are all copied to fast paths showed neither its queue nor its
//! losses, got nearly all new data, and kept the receive buffer full.

use crate::common::{job, run};

pub(crate) const SMALL_BUFFER: &str = r#"
[run]
duration = "15 s"
[association]
recv_buffer = "32 KiB"
[[path]]
name = "path-1"
rate = "31 Mbit/s"
delay = "5 ms"
queue = "20 packets"
loss = 0.0246
[[path]]
name = "path-2"
rate = "38 Mbit/s"
delay = "13 ms"
queue = "100 packets"
loss = 0.0036
[[path]]
name = "path-3"
rate = "590 kbit/s"
delay = "95 ms"
queue = "200 packets"
"#;

pub(crate) const BURSTS: &str = r#"
[run]
duration = "30 s"
[association]
recv_buffer = "64 KiB"
[[path]]
name = "path-1"
rate = "5.8 Mbit/s"
delay = "11 ms"
queue = "50 packets"
loss = { model = "gilbert-elliott", p = 0.00932, r = 0.25 }
[[path]]
name = "path-2"
rate = "520 kbit/s"
delay = "124 ms"
queue = "50 packets"
loss = { model = "gilbert-elliott", p = 0.00035, r = 0.25 }
[[path]]
name = "path-3"
rate = "600 kbit/s"
delay = "21 ms"
queue = "100 packets"
[[path]]
name = "path-4"
rate = "2.3 Mbit/s"
delay = "5 ms"
queue = "20 packets"
loss = { model = "gilbert-elliott", p = 0.00097, r = 0.25 }
"#;

/// Returns the scenario with a bulk flow on this path alone.
fn alone(text: &str, path: &str) -> String {
    format!("{text}\n[[flow]]\nname = \"own\"\nkind = \"bulk\"\npaths = [\"{path}\"]\n")
}

#[test]
fn slow_path_beside_small_buffer_costs_no_goodput_of_best_path() {
    for (text, best) in [(SMALL_BUFFER, "path-1"), (BURSTS, "path-1")] {
        for seed in 1..=3 {
            let best = run(&alone(text, best), "braid", seed).goodput_kbps;
            let all = run(text, "braid", seed).goodput_kbps;
            assert!(all >= 0.9 * best, "seed {seed}: {all:.0} of {best:.0} kbit/s");
        }
    }
}

#[test]
fn declared_losses_of_each_path_match_the_drops_of_its_link() {
    for text in [SMALL_BUFFER, BURSTS] {
        for seed in 1..=3 {
            let (result, details) =
                job(text, "braid", seed).run_in_detail().expect("the scenario can be run");
            let sender = &details.senders[0];
            for (path, sent) in result.paths.iter().zip(&sender.paths) {
                // Nearly all chunks are of the largest size, one in a packet.
                let chunk = sent.facts.largest_chunk.get() as f64;
                let declared = sent.facts.lost.get() as f64 / chunk;
                let off = (declared - path.drops as f64).abs();
                let most = 0.04 * path.sent_packets as f64 + 2.0;
                assert!(off <= most, "{}: {declared:.0} of {} drops", path.name, path.drops);
            }
        }
    }
}
