//! Every scheme, component and parameter of the registry has an effect, and no two have the same.

use std::collections::BTreeMap;

use anabranch_schemes::registry::{COMPONENTS, Kind, PRESETS, Parameter, Value};
use rayon::prelude::*;

use crate::common::run;
use crate::differences::scenarios::SCENARIOS;

/// Settings to compare: one and its others, at least one of which has to differ from it.
#[derive(Debug)]
struct Contrast {
    one: String,
    others: Vec<String>,
}

/// Returns the contrasts that no scenario separates.
fn coinciding(mut contrasts: Vec<Contrast>) -> Vec<Contrast> {
    for text in SCENARIOS {
        let schemes: BTreeMap<&str, ()> = contrasts
            .iter()
            .flat_map(|c| c.others.iter().chain([&c.one]))
            .map(|scheme| (scheme.as_str(), ()))
            .collect();
        let digests: BTreeMap<String, _> = schemes
            .into_keys()
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|scheme| (scheme.to_owned(), run(text, scheme, 1).digest.expect("it was asked for")))
            .collect();
        contrasts.retain(|c| c.others.iter().all(|other| digests[other] == digests[&c.one]));
    }
    contrasts
}

fn assert_all_differ(contrasts: Vec<Contrast>) {
    let same = coinciding(contrasts);
    let list: Vec<_> = same.iter().map(|c| format!("{} and {}", c.one, c.others.join(", "))).collect();
    assert!(same.is_empty(), "no scenario tells these apart:\n{}", list.join("\n"));
}

/// Returns every preset, and every component with a compatible scheme.
fn all() -> Vec<String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    presets.chain(COMPONENTS.iter().map(|component| component.example(PRESETS))).collect()
}

#[test]
fn any_two_presets_and_components_differ() {
    let all = all();
    let pairs =
        all.iter().enumerate().flat_map(|(i, one)| all[i + 1..].iter().map(move |other| (one, other)));
    assert_all_differ(
        pairs.map(|(one, other)| Contrast { one: one.clone(), others: vec![other.clone()] }).collect(),
    );
}

/// Returns groups of values other than the default. Each group has to have an effect.
fn alternatives(parameter: &Parameter) -> Vec<Vec<String>> {
    let default = parameter.default.to_string();
    let any_of =
        |values: &[String]| vec![values.iter().filter(|value| **value != default).cloned().collect()];
    match (parameter.kind, parameter.default) {
        (Kind::Switch, Value::Switch(on)) => vec![vec![(!on).to_string()]],
        (Kind::Choice(choice), _) => {
            let others = choice.names().into_iter().filter(|name| *name != default);
            others.map(|name| vec![name.to_owned()]).collect()
        }
        (Kind::Count { min, max }, _) => any_of(&[min.to_string(), max.min(min + 20).to_string()]),
        (Kind::Milliseconds { min, max }, _) => any_of(&[min.to_string(), max.to_string()]),
        (Kind::Decimal { min, max }, _) => {
            any_of(&[min, max, min + (max - min) / 500.0].map(|n| n.to_string()))
        }
        (Kind::Length, _) => any_of(&["100B".to_owned(), "20MTU".to_owned()]),
        (Kind::Weights, _) => vec![vec!["3:1".to_owned()]],
        (Kind::Switch, _) => Vec::new(),
    }
}

/// Parameters that only have an effect together with other settings: owner, parameter, and the expression to compare in place of
/// the owner alone.
const COMPANIONS: &[(&str, &str, &str)] = &[
    // A SACK for each packet leaves no SACK to delay.
    ("mptcp-ns2", "sack-delay", "mptcp-ns2(sack-every=2)"),
    ("braid", "sack-delay", "braid(sack-every=2)"),
    // The scheme's own retransmission policy replaces these.
    ("cmt-qa", "rtx", "cmt-qa(orp=false)"),
    ("rescheduling", "paths", "cmt+rescheduling(limit=share)"),
    // Windows become small only if each loss reduces them.
    ("braid", "floor", "braid(noise=false)"),
    // Only schemes with potentially failed paths have a window after a probe.
    ("cubic", "pf", "cmt-pf+cubic"),
    // Without opportunistic retransmission there is only one kind of evidence.
    ("blest", "evidence", "cmt+blest+opportunistic(when=always)"),
];

/// Values with the same effect as the default.
const SAME: &[(&str, &str, &str)] = &[
    // The single-path rows of both profiles have this floor.
    ("sctp", "floor", "4"),
];

fn contrasts(expression: &str, owner: &str, parameters: &[Parameter]) -> Vec<Contrast> {
    let mut all = Vec::new();
    for parameter in parameters {
        let companion = COMPANIONS.iter().find(|(o, p, _)| (*o, *p) == (owner, parameter.name));
        let one = companion.map_or(expression, |(_, _, with)| with);
        let is_same = |value: &String| SAME.contains(&(owner, parameter.name, value.as_str()));
        for mut values in alternatives(parameter) {
            values.retain(|value| !is_same(value));
            if values.is_empty() {
                continue;
            }
            let others =
                values.iter().map(|value| with_argument(one, owner, parameter.name, value)).collect();
            all.push(Contrast { one: one.to_owned(), others });
        }
    }
    all
}

/// Returns an expression with an additional argument of one of its parts.
fn with_argument(expression: &str, part: &str, name: &str, value: &str) -> String {
    let parts = expression.split('+').map(|text| {
        if text == part {
            format!("{text}({name}={value})")
        } else if let Some(rest) = text.strip_prefix(part).filter(|rest| rest.starts_with('(')) {
            format!("{part}({name}={value},{}", &rest[1..])
        } else {
            text.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("+")
}

#[test]
fn every_parameter_of_every_preset_changes_something() {
    assert_all_differ(PRESETS.iter().flat_map(|p| contrasts(p.name, p.name, p.parameters)).collect());
}

#[test]
fn every_parameter_of_every_component_changes_something() {
    let of = |c: &'static anabranch_schemes::registry::Component| {
        contrasts(&c.example(PRESETS), c.name, c.parameters)
    };
    assert_all_differ(COMPONENTS.iter().flat_map(of).collect());
}
