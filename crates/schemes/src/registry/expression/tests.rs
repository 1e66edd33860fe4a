//! Tests of valid and invalid expressions. They use artificial components, so they do not depend on the real ones.

use anabranch_core::PathState;
use anabranch_core::policy::{AckTiming, Arrival, Policies, RetransmitChoice, Scheme};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;

use super::*;
use crate::ack::DelayedAcks;
use crate::preset::cmt_pf::PotentiallyFailed;
use crate::registry::{Card, Component, Kind, PRESETS, Parameter, Role, Value, Values};
use crate::testing::{World, lost_on, path};

const BLANK: Card = Card { summary: &["A made-up one."], equations: &[], choices: &[] };

const DELAY: &[Parameter] = &[Parameter {
    name: "delay",
    kind: Kind::Milliseconds { min: 0, max: 500 },
    unit: "ms",
    default: Value::Number(7),
    about: "a delay",
    source: "made up",
}];

fn same_policies(_: &Values, policies: Policies) -> Policies {
    policies
}

const PLAIN: Component = Component {
    name: "",
    about: "made up",
    source: "made up",
    role: Role::Scheduler,
    needs_multipath: false,
    parameters: &[],
    card: BLANK,
    apply: same_policies,
};

/// `late` delays SACKs.
const COMPONENTS: &[Component] = &[
    Component {
        name: "late",
        role: Role::Acknowledgement,
        parameters: DELAY,
        apply: |values, policies| {
            let acks = DelayedAcks { every: 9, delay: values.milliseconds("delay"), for_cmt: true };
            Policies { ack: Box::new(acks), ..policies }
        },
        ..PLAIN
    },
    Component {
        name: "pf",
        role: Role::Failover,
        apply: |_, policies| Policies { failover: Box::new(PotentiallyFailed), ..policies },
        ..PLAIN
    },
    Component { name: "turns", role: Role::Scheduler, needs_multipath: true, ..PLAIN },
    Component { name: "chance", role: Role::Scheduler, needs_multipath: true, ..PLAIN },
];

fn vocabulary() -> Vocabulary {
    Vocabulary { presets: PRESETS, components: COMPONENTS, defined: Vec::new() }
}

fn scheme(text: &str) -> NamedScheme {
    vocabulary().parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    vocabulary().parse(text).expect_err(text).to_string()
}

fn ack_delay(scheme: &NamedScheme) -> AckTiming {
    let arrival = Arrival { packets: 1, gap: true, duplicate: false, immediate: false, first: false };
    scheme.policies().ack.timing(&arrival, &World::new(Profile::rfc9260(), 2).view()).choice
}

#[test]
fn commas_inside_parentheses_do_not_split_a_list() {
    let text = "sctp, cmt(rtx=rtx-asap,trigger=4)+turns(a=1,b=2)+late,,cmt-pf";
    assert_eq!(split_list(text), ["sctp", "cmt(rtx=rtx-asap,trigger=4)+turns(a=1,b=2)+late", "cmt-pf"]);
}

#[test]
fn parameters_change_only_the_named_value() {
    let scheme = scheme("cmt(rtx=rtx-asap, trigger=4,sfr=false)");
    assert_eq!(scheme.values().number("trigger"), 4);
    assert!(!scheme.values().switch("sfr") && scheme.values().switch("cuc"));
    let values: Vec<String> =
        scheme.values().iter().map(|(p, value)| format!("{}={value}", p.name)).collect();
    assert_eq!(values[..3], ["rtx=rtx-asap", "trigger=4", "sfr=false"]);
}

#[test]
fn naive_cmt_is_cmt_with_its_repairs_off() {
    let naive = scheme("naive-cmt");
    assert!(!["sfr", "cuc", "dac"].iter().any(|name| naive.values().switch(name)));
}

#[test]
fn all_expands_to_every_preset() {
    assert_eq!(parse_list("all").map(|l| l.len()), Ok(PRESETS.len()));
    let several = vocabulary().parse_list("cmt+pf, all").expect("valid");
    assert_eq!(several.len(), 1 + PRESETS.len());
}

#[test]
fn component_replaces_its_role_and_keeps_the_others() {
    let plain = AckTiming::Within(Span::from_millis(200));
    assert_eq!(ack_delay(&scheme("cmt")), plain);
    assert_eq!(ack_delay(&scheme("cmt+late")), AckTiming::Within(Span::from_millis(7)));
    assert_eq!(ack_delay(&scheme("cmt+late(delay=9ms)")), AckTiming::Within(Span::from_millis(9)));
    let both = scheme("cmt(rtx=rtx-same,trigger=4)+late(delay=9)+pf");
    assert_eq!(ack_delay(&both), AckTiming::Within(Span::from_millis(9)));
    let mut world = World::new(Profile::rfc9260(), 2);
    world.paths[0].error_count = 1;
    let mut policies = both.policies();
    let state = policies.failover.on_error(path(0), false, &world.view()).choice;
    assert_eq!(state, PathState::PotentiallyFailed);
    let lost = lost_on(1, anabranch_core::policy::LossCause::Timeout);
    assert_eq!(world.route(&mut *policies.retransmit, lost).choice, RetransmitChoice::Path(path(1)));
    let names: Vec<&str> = both.additions().iter().map(|added| added.component().name).collect();
    assert_eq!((both.preset().name, names), ("cmt", vec!["late", "pf"]));
    assert!(both.is_multipath() && !scheme("sctp+late").is_multipath());
}

#[test]
fn a_scheme_is_called_what_was_written_without_blanks() {
    for (text, name) in [
        (" cmt ", "cmt"),
        (
            "cmt( trigger = 4 , sack-delay = 50 ms ) + late ( delay = 9 ms )",
            "cmt(trigger=4,sack-delay=50ms)+late(delay=9ms)",
        ),
        ("cmt()+late()", "cmt+late"),
    ] {
        assert_eq!(scheme(text).to_string(), name);
        assert_eq!(scheme(name).to_string(), name);
        assert_eq!(scheme(name).expression(), name);
    }
}

#[test]
fn unknown_name_is_refused_with_valid_and_nearest_names() {
    let cases = [
        ("cmtt", "unknown scheme `cmtt`, did you mean `cmt`?; there are: sctp, naive-cmt, cmt, cmt-pf"),
        ("trns", "unknown scheme `trns`, did you mean `cmt+turns`?; there are: sctp"),
        ("zzzzzz", "unknown scheme `zzzzzz`; there are: sctp"),
        ("turns", "`turns` is a component, not a scheme: write `cmt+turns`"),
        ("cmt+trns", "unknown component `trns`, did you mean `turns`?; there are: late, pf, turns, chance"),
        ("cmt+naive-cm", "unknown component `naive-cm`, did you mean `naive-cmt`?; there are: late"),
        (
            "cmt+sctp",
            "`sctp` is a scheme and cannot be added to one: schemes come first; components are: late",
        ),
    ];
    for (text, expected) in cases {
        assert!(refusal(text).starts_with(expected), "{text}: {}", refusal(text));
    }
    let none = Vocabulary { components: &[], ..vocabulary() };
    assert_eq!(
        none.parse("cmt+turns").expect_err("no components").to_string(),
        "unknown component `turns`; there are: none"
    );
}

#[test]
fn invalid_parameter_names_its_owner() {
    let cases = [
        ("cmt(rtxx=1)", "scheme `cmt` has no parameter `rtxx`, did you mean `rtx`?; it has: rtx, trigger"),
        (
            "cmt+late(dela=1)",
            "component `late` has no parameter `dela`, did you mean `delay`?; it has: delay",
        ),
        ("cmt+pf(x=1)", "component `pf` has no parameter `x`; it has: none"),
        ("cmt(trigger=0)", "`trigger=0` in scheme `cmt`: expected a number from 1 to 100"),
        ("cmt+late(delay=501)", "`delay=501` in component `late`: expected milliseconds from 0 to 500"),
        (
            "cmt(rtx=rtx-best)",
            "`rtx=rtx-best` in scheme `cmt`: expected one of rtx-same, rtx-asap, rtx-cwnd, rtx-ssthresh",
        ),
        ("cmt(sfr=no)", "`sfr=no` in scheme `cmt`: expected true or false"),
        ("cmt(trigger=3,trigger=4)", "`trigger` is set twice in scheme `cmt`"),
        ("cmt+late(delay=3,delay=3)", "`delay` is set twice in component `late`"),
    ];
    for (text, expected) in cases {
        assert!(refusal(text).starts_with(expected), "{text}: {}", refusal(text));
    }
}

#[test]
fn malformed_expression_is_refused_with_the_expected_form() {
    let cases = [
        ("", "`` is not a scheme: it is empty; write `name`, `name(parameter=value,…)` or `name+component`"),
        ("cmt(trigger)", "a parameter needs a value"),
        ("cmt(trigger=3", "a parenthesis is not closed"),
        ("cmt(trigger=3))", "parentheses do not match"),
        ("cmt((trigger=3))", "parentheses do not match"),
        ("cmt)trigger=3(", "parentheses do not match"),
        ("cmt(trigger=3)late", "something follows the parameters without a `+`"),
        ("cmt(trigger=3)(sfr=true)", "something follows the parameters without a `+`"),
        ("(trigger=3)", "the parameters follow no name"),
        ("cmt+", "one side of a `+` is empty"),
        ("+late", "one side of a `+` is empty"),
        ("cmt++late", "one side of a `+` is empty"),
    ];
    for (text, expected) in cases {
        assert!(refusal(text).contains(expected), "{text}: {}", refusal(text));
    }
    assert!(parse_list(" , ").is_err());
}

#[test]
fn a_scheme_takes_one_component_of_each_role_and_each_component_once() {
    assert_eq!(refusal("cmt+late+pf+late"), "component `late` is added twice");
    assert_eq!(
        refusal("cmt+turns+late+chance"),
        "`turns` and `chance` both take the role of scheduler, which a scheme has once; remove one of the two"
    );
}

#[test]
fn multipath_component_is_refused_in_single_path_scheme() {
    assert_eq!(
        refusal("sctp+turns"),
        "impossible combination: `turns` needs a scheme that sends new data on several paths, and `sctp` uses one; \
         components for `sctp`: late, pf"
    );
}

#[test]
fn roles_owned_by_a_scheme_cannot_be_replaced() {
    assert_eq!(
        refusal("cmt-pf+late+pf"),
        "impossible combination: `pf` would replace the failover that defines `cmt-pf`; components for `cmt-pf`: \
         late, turns, chance"
    );
    let preset = |name| PRESETS.iter().find(|preset| preset.name == name).expect("a preset");
    assert!(!COMPONENTS[1].fits(preset("cmt-pf")) && COMPONENTS[1].fits(preset("cmt")));
    assert_eq!(COMPONENTS[1].example(&[]), "NAME+pf");
}

#[test]
fn definitions_may_use_each_other_in_any_order() {
    let definitions = [
        ("top", "middle(trigger=5)+pf"),
        ("bottom", "cmt( trigger = 4 )"),
        ("middle", "bottom + late(delay=9)"),
    ];
    let (words, faults) = vocabulary().define(&definitions);
    assert_eq!(faults, []);
    let scheme = words.parse("top").expect("defined");
    assert_eq!(scheme.to_string(), "top");
    assert_eq!(scheme.expression(), "cmt(trigger=5)+late(delay=9)+pf");
    assert_eq!(ack_delay(&scheme), AckTiming::Within(Span::from_millis(9)));
    let changed = words.parse_list("top, middle(trigger=6) +turns").expect("defined").remove(1);
    assert_eq!(changed.to_string(), "middle(trigger=6)+turns");
    assert_eq!(changed.expression(), "cmt(trigger=6)+late(delay=9)+turns");
}

#[test]
fn definitions_follow_the_rules_of_expressions() {
    let (words, _) = vocabulary().define(&[("mine", "cmt+late")]);
    let refusal = |text| words.parse(text).expect_err(text).to_string();
    assert_eq!(refusal("mine+late"), "component `late` is added twice");
    assert!(refusal("mine(triger=4)").starts_with("scheme `mine` has no parameter `triger`, did you mean"));
    assert!(refusal("mien").contains("did you mean `mine`?; there are: sctp, naive-cmt, cmt, cmt-pf, "));
    assert!(refusal("cmt+mine").starts_with("`mine` is a scheme and cannot be added"));
}

#[test]
fn invalid_definitions_are_named_and_dependents_omitted() {
    let definitions = [
        ("cmt", "sctp"),
        ("needs-bad", "bad+late"),
        ("bad", "cmt+lat"),
        ("pf", "cmt"),
        ("all", "cmt"),
        ("good", "cmt+late"),
    ];
    let (words, faults) = vocabulary().define(&definitions);
    let said: Vec<(usize, String)> = faults.into_iter().map(|(at, fault)| (at, fault.to_string())).collect();
    assert_eq!(
        said,
        [
            (0, "`cmt` is the name of a scheme already; choose another name".to_owned()),
            (
                2,
                "unknown component `lat`, did you mean `late`?; there are: late, pf, turns, chance"
                    .to_owned()
            ),
            (3, "`pf` is the name of a component already; choose another name".to_owned()),
            (4, "`all` is the word for every scheme already; choose another name".to_owned()),
        ]
    );
    assert!(words.parse("good").is_ok() && words.parse("needs-bad").is_err() && words.parse("bad").is_err());
}

#[test]
fn a_circle_of_definitions_is_shown() {
    let definitions = [("a", "b+late"), ("b", "c"), ("c", "a(trigger=4)"), ("d", "a"), ("e", "e")];
    let (_, faults) = vocabulary().define(&definitions);
    let said: Vec<(usize, String)> = faults.into_iter().map(|(at, fault)| (at, fault.to_string())).collect();
    let text = |circle: &str| {
        format!("the definitions form a circle: {circle}; remove the reference in one of them")
    };
    assert_eq!(
        said,
        [
            (0, text("a → b → c → a")),
            (1, text("b → c → a → b")),
            (2, text("c → a → b → c")),
            (4, text("e → e"))
        ]
    );
}
