//! Valid scenarios: the built-in ones, one with every key, and the effect of defaults and overrides.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_core::time::{Rate, Span};
use anabranch_scenario::{Direction, FlowKind, Loss, Override, Queue, Scenario, ScenarioError, Stop};
use anabranch_sim::{LossModel, LossPlace, QueueLimit};
use expect_test::expect_file;

const SMALL: &str = r#"
[run]
duration = "60 s"

[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.1

[[path]]
name = "slow"
rate = "2 Mbit/s"
delay = "90 ms"

[[path.background]]
kind = "cbr"
rate = "1 Mbit/s"
packet = "500 B"
"#;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn parse(text: &str, set: &[&str]) -> Result<Scenario, ScenarioError> {
    let set: Vec<Override> = set.iter().map(|text| text.parse().expect("an override")).collect();
    Scenario::parse(text, "test.toml", &set)
}

fn good(text: &str, set: &[&str]) -> Scenario {
    parse(text, set).unwrap_or_else(|error| panic!("{error}"))
}

fn bernoulli(rate: f64) -> Vec<Loss> {
    vec![Loss { model: LossModel::Bernoulli(rate), place: LossPlace::BeforeQueue }]
}

#[test]
fn every_ready_made_scenario_is_read_and_written_again() {
    let mut count = 0;
    for entry in fs::read_dir(here().join("../../scenarios")).expect("the folder of scenarios") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(good(&scenario.to_toml(), &[]), scenario, "{}", file.display());
        count += 1;
    }
    assert!(count >= 7, "only {count} scenarios");
}

#[test]
fn every_key_is_accepted() {
    let file = here().join("tests/scenario/every-key.toml");
    let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
    let text = scenario.to_toml();
    expect_file![here().join("tests/scenario/every-key.resolved.toml")].assert_eq(&text);
    assert_eq!(good(&text, &[]), scenario);
}

#[test]
fn omitted_keys_have_defaults() {
    let scenario = good(SMALL, &[]);
    assert_eq!(scenario.run.schemes, ["cmt"]);
    assert_eq!((scenario.run.seeds.as_slice(), scenario.run.profile.as_str()), (&[1][..], "rfc9260"));
    assert_eq!(scenario.association.recv_buffer_bytes, 65_536);
    assert_eq!(scenario.flows.len(), 1);
    assert_eq!(scenario.flows[0].kind, FlowKind::Bulk);
    assert_eq!(scenario.flows[0].paths, [0, 1]);
    let own = scenario.paths[0].own.as_ref().expect("a link of its own");
    assert_eq!(own.forward.queue, Queue::drop_tail(QueueLimit::Packets(50)));
    assert_eq!(
        (own.reverse.rate(), own.reverse.delay()),
        (Some(Rate::from_bps(10_000_000)), Some(Span::from_millis(45)))
    );
    assert_eq!((&own.forward.loss, &own.reverse.loss), (&bernoulli(0.1), &Vec::new()));
}

#[test]
fn a_loss_of_zero_is_no_loss() {
    for loss in ["0", "0.0", "0 %", "[]"] {
        let scenario = good(SMALL, &[&format!("path.path-1.loss={loss}")]);
        assert_eq!(scenario.paths[0].own.as_ref().map(|own| own.forward.loss.len()), Some(0), "{loss}");
    }
}

#[test]
fn empty_list_of_flows_equals_an_omitted_one() {
    let scenario = good(SMALL, &["flow=[]"]);
    assert_eq!(scenario, good(SMALL, &[]));
    assert_eq!(good(&scenario.to_toml(), &[]), scenario);
    let renamed = good(SMALL, &["flow=[]", "flow.flow-1.name=other"]);
    assert_eq!(renamed.flows[0].name, "other");
}

#[test]
fn overrides_reach_every_kind_of_place() {
    let set = [
        "run.seeds=3",
        "run.schemes=[\"cmt\", \"sctp\"]",
        "association.recv_buffer='128 KiB'",
        "path.path-1.loss=2 %",
        "path.1.delay=80 ms",
        "path.slow.background.0.rate=2 Mbit/s",
        "path.*.reverse.loss=0.5",
        "path.*.background.*.direction=reverse",
        "flow.flow-1.kind=messages",
        "flow.0.size=1000 B",
        "flow.*.interval=20 ms",
    ];
    let scenario = good(SMALL, &set);
    assert_eq!(scenario.run.seeds, [1, 2, 3]);
    assert_eq!(scenario.run.schemes, ["cmt", "sctp"]);
    assert_eq!(scenario.association.recv_buffer_bytes, 131_072);
    let [first, slow] = [0, 1].map(|index| scenario.paths[index].own.as_ref().expect("a link of its own"));
    assert_eq!(first.forward.loss, bernoulli(0.02));
    assert_eq!((&first.reverse.loss, &slow.reverse.loss), (&bernoulli(0.5), &bernoulli(0.5)));
    assert_eq!(slow.forward.delay(), Some(Span::from_millis(80)));
    assert_eq!(slow.background[0].direction, Direction::Reverse);
    assert!(matches!(scenario.flows[0].kind, FlowKind::Messages { size_bytes: 1000, .. }));
}

#[test]
fn the_last_override_wins() {
    let scenario = good(
        SMALL,
        &["path.*.delay=1 ms", "path.slow.delay=2 ms", "path.slow.name=fast", "path.fast.delay=3 ms"],
    );
    let delays = scenario.paths.iter().map(|path| path.own.as_ref().and_then(|own| own.forward.delay()));
    assert!(delays.eq([Some(Span::from_millis(1)), Some(Span::from_millis(3))]));
}

#[test]
fn an_override_is_checked_like_the_file() {
    let error = parse(SMALL, &["path.slow.lsos=0.1"]).expect_err("a misspelled key");
    assert!(
        error.to_string().starts_with("--set path.slow.lsos=0.1: unknown key `path.slow.lsos`"),
        "{error}"
    );
    let error = parse(SMALL, &["asociation.streams=2"]).expect_err("a misspelled table");
    assert_eq!(error.problems()[0].nearest.as_deref(), Some("association"));
}

#[test]
fn override_can_repair_an_invalid_file() {
    assert!(parse("[[path]]\nrate = \"1 Mbit/s\"\n", &[]).is_err());
    let set =
        ["path.path-1.delay=1 ms", "run.stop=transfer", "flow.flow-1.kind=file", "flow.flow-1.size=1 MB"];
    let scenario = good("[[path]]\nrate = \"1 Mbit/s\"\n", &set);
    assert_eq!(scenario.run.stop, Stop::Transfer { cap: None });
}

#[test]
fn a_scenario_may_define_schemes_and_make_one_from_another() {
    let text = format!(
        "{SMALL}\n[scheme.slow]\nexpression = \"fast( trigger = 7 )\"\n[scheme.fast]\nexpression = \"cmt(rtx=rtx-asap,trigger=4)\"\n"
    );
    let scenario = good(&text, &["scheme.third.expression=slow(sfr=false)"]);
    let names: Vec<&str> = scenario.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    assert_eq!(names, ["fast", "slow", "third"]);
    let words = scenario.vocabulary();
    let slow = words.parse("slow").expect("defined");
    assert_eq!(slow.to_string(), "slow");
    assert_eq!(slow.expression(), "cmt(rtx=rtx-asap,trigger=7)");
    let third = words.parse("third").expect("defined");
    assert_eq!(third.expression(), "cmt(rtx=rtx-asap,trigger=7,sfr=false)");
    let error = parse(&text, &["scheme.third.expression=cmtt"]).expect_err("no such scheme").to_string();
    let expected = "--set scheme.third.expression=cmtt: scheme `third`: unknown scheme `cmtt`, did you mean `cmt`?\n      | there are: sctp";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn events_are_sorted_and_split_by_direction() {
    let text = format!(
        "{SMALL}\n[[path.event]]\nat = \"20 s\"\nup = true\n[[path.event]]\nat = \"10 s\"\nup = false\nloss = 0.5\n"
    );
    let scenario = good(&text, &[]);
    let events = &scenario.paths[1].own.as_ref().expect("a link of its own").events;
    let seen = events.iter().map(|event| (event.at, event.direction, event.change.up, event.loss.is_some()));
    let (ten, twenty) = (Span::from_secs(10), Span::from_secs(20));
    assert!(seen.eq([
        (ten, Direction::Forward, Some(false), true),
        (ten, Direction::Reverse, Some(false), false),
        (twenty, Direction::Forward, Some(true), false),
        (twenty, Direction::Reverse, Some(true), false),
    ]));
}

#[test]
fn a_byte_order_mark_and_crlf_are_harmless() {
    let text = format!("\u{feff}{}", SMALL.replace('\n', "\r\n"));
    assert_eq!(good(&text, &[]), good(SMALL, &[]));
}
