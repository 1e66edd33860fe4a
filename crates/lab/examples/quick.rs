fn main() {
    let args: Vec<String> = std::env::args().collect();
    let overrides: Vec<_> = args[3..].iter().map(|a| a.parse().unwrap()).collect();
    let scenario = match anabranch_lab::scenario::Scenario::load(std::path::Path::new(&args[1]), &overrides) { Ok(s) => s, Err(e) => { eprintln!("{e}"); std::process::exit(2) } };
    let conventions = anabranch_lab::conventions::Conventions::named(&scenario.run.profile).unwrap();
    let t = std::time::Instant::now();
    for scheme in anabranch_schemes::registry::parse_list(&args[2]).unwrap() {
        for &seed in &scenario.run.seeds {
            let job = anabranch_lab::run::Job { scenario: std::sync::Arc::new(scenario.clone()), conventions: std::sync::Arc::new(conventions.clone()), scheme: scheme.clone(), seed, folder: ".".into(), pcap: None, digest: false, trace: std::env::var("TRACE").ok().map(Into::into) };
            let r = job.run().unwrap();
            println!("{} seed {} goodput {:.1} rtx {} to {} hb {} fr {} spur {} peak {} blocked {:.1} share {:?} fail {:?}", r.scheme, r.seed, r.goodput_kbps, r.retransmissions, r.timeouts, r.heartbeat_timeouts, r.fast_retransmits, r.spurious_retransmissions, r.peak_reorder_bytes, r.rwnd_blocked_s, r.shares(), r.failure());
        }
    }
    eprintln!("{:?}", t.elapsed());
}
