//! Compares the scheme with plain CMT, seed by seed.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::sync::Arc;

use anabranch_lab::conventions::Conventions;
use anabranch_lab::run::{Job, JobScheme, ScenarioFiles, TracePart};
use anabranch_lab::scenario::Scenario;
use anabranch_schemes::registry;
use own_scheme::Quiet;

// ANCHOR: run
const SCENARIO: &str = r#"
[run]
duration = "30 s"

[association]
recv_buffer = "64 KiB"

[[path]]
name = "wifi"
rate = "10 Mbit/s"
delay = "15 ms"

[[path]]
name = "lte"
rate = "5 Mbit/s"
delay = "40 ms"
loss = "0.5 %"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let scenario = Arc::new(Scenario::parse(SCENARIO, "own scheme", &[])?);
    let conventions = Arc::new(Conventions::named(&scenario.run.profile)?);
    let files = Arc::new(ScenarioFiles::new("."));
    let schemes = [registry::parse("cmt")?.into(), JobScheme::new("quiet", Arc::new(Quiet))];
    println!("seed   {:>12}   {:>12}   (kbit/s)", "cmt", "quiet");
    for seed in 1..=5 {
        let goodput = |scheme: &JobScheme| {
            let job = Job {
                scenario: Arc::clone(&scenario),
                conventions: Arc::clone(&conventions),
                scheme: scheme.clone(),
                seed,
                files: Arc::clone(&files),
                pcap: None,
                trace: None,
                part: TracePart::default(),
                digest: false,
            };
            job.run().map(|result| result.goodput_kbps)
        };
        println!("{seed:4}   {:12.0}   {:12.0}", goodput(&schemes[0])?, goodput(&schemes[1])?);
    }
    Ok(())
}
// ANCHOR_END: run
