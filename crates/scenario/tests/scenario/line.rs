//! Links in one line.

use anabranch_core::time::{Rate, Span};
use anabranch_sim::{LossModel, QueueLimit};

use anabranch_scenario::Link;

fn read(text: &str) -> Link {
    Link::parse(text, "--link", "link-1").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn short_and_long_forms_describe_the_same_link() {
    let short = read("rate=10Mbit,delay=45ms,loss=1%,queue=50p");
    assert_eq!(short, read("queue=50 packets, loss=0.01, delay=\"45 ms\", rate='10 Mbit/s'"));
    assert_eq!(short.name, "link-1");
    let way = &short.duplex.forward;
    assert_eq!((way.rate(), way.delay()), (Some(Rate::from_bps(10_000_000)), Some(Span::from_millis(45))));
    assert_eq!((way.queue.limit, &way.loss[0].model), (QueueLimit::Packets(50), &LossModel::Bernoulli(0.01)));
    let called =
        read("rate=1Mbit,delay=0s,loss=gilbert-elliott(p=1%,r=0.25),jitter=normal(mean=5ms,deviation=2ms)");
    let tables = "rate=1Mbit,delay=0s,loss=[(model=gilbert-elliott,p=0.01,r=25%)],\
                  jitter={mean=5ms,deviation=2ms,model=normal}";
    assert_eq!(called, read(tables));
}

#[test]
fn directions_differ_only_with_reverse() {
    let link = read("rate=10Mbit,delay=45ms,loss=1%,policer=(rate=1Mbit,burst=30kB),name=lte");
    assert_eq!((&link.duplex.reverse, link.name.as_str()), (&link.duplex.forward, "lte"));
    let Link { duplex, .. } =
        read("rate=10Mbit,delay=45ms,loss=1%,reverse=(rate=1Mbit,loss=trace(lost=[3,17]))");
    assert_eq!(
        (duplex.reverse.rate(), duplex.reverse.delay()),
        (Some(Rate::from_bps(1_000_000)), duplex.forward.delay())
    );
    assert!(matches!(&duplex.reverse.loss[0].model, LossModel::Trace(_)), "{duplex:?}");
    let events = read("rate=1Mbit,delay=0s,event=[(at=5s,up=false),(at=10s,up=true)]").duplex.events;
    assert_eq!(events.len(), 4);
}

#[test]
fn errors_name_the_place_in_the_text_and_the_remedy() {
    for (text, expected) in [
        ("", "--link:1:1: \"\" is not KEY=VALUE"),
        ("10Mbit", "--link:1:1: \"10Mbit\" is not KEY=VALUE"),
        ("rate=10Mbit", "--link:1:1: missing key `delay`"),
        (
            "delay=1ms,rat=10Mbit",
            "--link:1:11: unknown key `rat`\n    1 | delay=1ms,rat=10Mbit\n      |           ^^^ expected",
        ),
        ("delay=1ms,rat=10Mbit", "did you mean `rate`?"),
        ("rate=1Mbit,rate=2Mbit,delay=1ms", "--link:1:12: `rate` is given twice"),
        ("rate=10Mbps,delay=1ms", "did you mean `Mbit/s`?"),
        ("rate=0Mbit,delay=1ms", "--link:1:6: `rate` is out of range"),
        ("rate=10,delay=1ms", "the number 10 without a unit"),
        ("rate=10Mbit,delay=2h", "expected 0 s to 1 h, found 2 h"),
        ("rate=10Mbit,delay=-1ms", "which is negative"),
        ("rate=10Mbit,delay=1ms,loss=101%", "\"0 %\" to \"100 %\""),
        ("rate=10Mbit,delay=1ms,loss=nan", "`loss` is out of range"),
        ("rate=10Mbit,delay=1ms,where=after-queue", "`where` belongs under `loss`"),
        ("rate=10Mbit,delay=1ms,policer=1Mbit/30kB", "expected a table with `rate` and `burst`"),
        ("rate=10Mbit,delay=1ms,jitter=5ms/free", "or a table with `model`"),
        ("rate=10Mbit,delay=1ms,aggregation=5ms/32", "expected a table with `period`"),
        ("rate=10Mbit,delay=1ms,loss=trace(3,17)", "--link:1:34: \"3\" is not KEY=VALUE\n"),
        ("rate=10Mbit,delay=1ms,loss=trace(3,17)", "a list as [VALUE,…]"),
        ("rate=10Mbit,delay=1ms,loss=pareto(a=1)", "expected \"bernoulli\""),
        ("rate=10Mbit,delay=1ms,loss=gilbert-elliott(p=1%,r=0)", "the bad state would never end"),
        (
            "rate=10Mbit,delay=1ms,loss=bernoulli(rate=1%,direction=both)",
            "opposite direction go into `reverse`",
        ),
        ("rate=10Mbit,delay=1ms,loss=trace(lost=[3", "expected `,` or `]`, found the end"),
        ("rate=10Mbit,delay=1ms)", "--link:1:22: not a link"),
        ("rate=10Mbit,,delay=1ms", "--link:1:13: \"\" is not KEY=VALUE"),
        ("rate=,delay=1ms", "--link:1:6: a value is missing"),
        ("rate=10Mbit,delay=1ms,reverse=(loss=1%", "expected `,` or `)`"),
    ] {
        let error = Link::parse(text, "--link", "link-1").expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn deep_and_long_text_is_refused() {
    for open in ["a=(", "a=[", "a={", "a=b(", "a=\"", "a,", "["] {
        assert!(Link::parse(&open.repeat(10_000), "--link", "link-1").is_err(), "{open}");
    }
    assert!(Link::parse(&format!("a={}", "[".repeat(100_000)), "--link", "link-1").is_err());
}
