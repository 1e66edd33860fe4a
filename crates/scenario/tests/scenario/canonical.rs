//! The canonical text of scenarios is stable: manifests, exports and the keys of stored results contain it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anabranch_scenario::{Override, Scenario};
use expect_test::expect_file;
use sha2::{Digest, Sha256};

/// Number of variants of each file, made by random overrides.
const VARIANTS: u64 = 40;

/// Overrides, of which each variant has a few. A file may reject some of them.
const OVERRIDES: [&str; 48] = [
    "run.seeds=7",
    "run.seeds=[3, 9, 4]",
    "run.schemes=[\"sctp\", \"cmt(trigger=4)\"]",
    "run.start=250 ms",
    "run.warmup=1500 us",
    "run.delays=true",
    "run.profile=ns2",
    "run.duration=2 min",
    "association.recv_buffer=1 MB",
    "association.send_buffer=96 KiB",
    "association.streams=12",
    "association.ordered=false",
    "association.message=1000 B",
    "association.mtu=1280 B",
    "association.encapsulation=udp",
    "association.protection=dtls",
    "path.0.name=first",
    "path.*.rate=1.5 Mbit/s",
    "path.*.delay=12345 ns",
    "path.0.queue=90 packets",
    "path.*.queue=250 ms",
    "path.*.loss=12.5 %",
    "path.0.loss={ model = \"gilbert-elliott\", p = 0.01, r = 0.3, loss_bad = 0.75, direction = \"both\" }",
    "path.*.loss=[{ model = \"trace\", lost = [9, 3, 3] }, { model = \"bernoulli\", rate = 0.1, where = \"after-queue\" }]",
    "path.*.policer={ rate = \"3 Mbit/s\", burst = \"100 kB\" }",
    "path.*.jitter=3 ms",
    "path.0.jitter={ model = \"normal\", mean = \"2 ms\", deviation = \"1 ms\", order = \"free\" }",
    "path.*.aggregation={ period = \"4 ms\", packets = 16 }",
    "path.0.reverse.rate=64 kbit/s",
    "path.*.reverse.loss=0.25",
    "path.*.reverse.jitter=1 ms",
    "path.0.background=[{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"500 B\", jitter = 0.25 }]",
    "path.0.background=[{ kind = \"pareto\", rate = \"1 Mbit/s\", packet = \"1 kB\", fragment = \"99 B\", shape = 1.75 }]",
    "path.0.background=[{ kind = \"poisson\", rate = \"9 bit/s\", packet = \"1 B\", direction = \"reverse\", stop = \"3 s\", count = 4 }]",
    "path.0.event=[{ at = \"2 s\", up = false }, { at = \"1 s\", rate = \"8 kbit/s\", direction = \"reverse\" }]",
    "path.0.event=[{ at = \"3 s\", delay = \"1 h\", loss = { model = \"bernoulli\", rate = 0.5, direction = \"both\" } }]",
    "flow.0.name=renamed",
    "flow.0.start=700 ms",
    "flow.0.direction=reverse",
    "flow.0.scheme=cmt+late(delay=9)",
    "flow.0.read_rate=4 Mbit/s",
    "flow.0.messages={ size = \"100 B\", interval = \"10 ms\" }",
    "flow=[{ kind = \"file\", size = \"3 MB\" }]",
    "flow=[{ kind = \"messages\", size = \"900 B\", interval = \"5 ms\", count = 9, reliability = { priority = 4 } }]",
    "flow=[{ kind = \"messages\", size = \"1 B\", interval = \"1 s\", reliability = { lifetime = \"1 s\", max_retransmissions = 3 } }]",
    "flow=[{ kind = \"video\", trace = \"a b.csv\", deadline = \"90 ms\", reliability = { P = { lifetime = \"9 s\" } } }]",
    "flow=[{ kind = \"file\", path = \"x.bin\", direction = \"both\" }, {}]",
    "scheme.own.expression=cmt(trigger=2)",
];

fn files() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![here.join("tests/scenario/every-key.toml")];
    for folder in ["../../scenarios", "../../scenarios/papers"] {
        let entries = fs::read_dir(here.join(folder)).expect("a folder of scenarios");
        files.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// Returns the canonical text with the overrides that the file accepts.
fn variant(text: &str, wanted: &[Override]) -> String {
    let mut set = Vec::new();
    let mut canonical = String::new();
    for one in wanted {
        set.push(one.clone());
        match Scenario::parse(text, "variant.toml", &set) {
            Ok(scenario) => canonical = scenario.to_toml(),
            Err(_) => drop(set.pop()),
        }
    }
    canonical
}

#[test]
fn canonical_texts_have_the_stored_digests() {
    let overrides: Vec<Override> = OVERRIDES.iter().map(|text| text.parse().expect("an override")).collect();
    let mut digests = String::new();
    let mut state = 1_u64;
    for file in files() {
        let text = fs::read_to_string(&file).expect("a scenario");
        let mut hash = Sha256::new();
        let scenario = Scenario::parse(&text, "file.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        hash.update(scenario.to_toml());
        for _ in 0..VARIANTS {
            let chosen: Vec<Override> = overrides
                .iter()
                .filter(|_| {
                    // Knuth's MMIX generator.
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    state >> 61 == 0
                })
                .cloned()
                .collect();
            hash.update(variant(&text, &chosen));
        }
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        writeln!(digests, "{name} {digest}").expect("room in a string");
    }
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenario/canonical.sha256");
    expect_file![stored].assert_eq(&digests);
}
