//! Checks of the self-description of every preset and component.

use std::path::Path;

use super::*;

/// Preset or component.
struct Entry {
    name: &'static str,
    texts: [&'static str; 3],
    parameters: &'static [Parameter],
    card: &'static Card,
}

fn entries() -> Vec<Entry> {
    let presets = PRESETS.iter().map(|preset| Entry {
        name: preset.name,
        texts: [preset.name, preset.about, preset.source],
        parameters: preset.parameters,
        card: &preset.card,
    });
    let components = COMPONENTS.iter().map(|component| Entry {
        name: component.name,
        texts: [component.name, component.about, component.source],
        parameters: component.parameters,
        card: &component.card,
    });
    presets.chain(components).collect()
}

/// Calls `check` for every parameter, with a description of it for failures.
fn each_parameter(check: impl Fn(&str, &Parameter)) {
    for entry in entries() {
        for parameter in entry.parameters {
            check(&format!("{}: {}", entry.name, parameter.name), parameter);
        }
    }
}

#[test]
fn every_default_is_a_value_that_its_parameter_takes() {
    each_parameter(|place, parameter| {
        let read = parameter.read(&parameter.default.to_string());
        assert_eq!(read, Ok(parameter.default), "{place}");
    });
}

#[test]
fn every_scheme_and_component_has_summary_and_source() {
    for entry in entries() {
        assert!(!entry.texts.contains(&""), "{}", entry.name);
    }
    each_parameter(|place, parameter| {
        assert!(![parameter.name, parameter.about, parameter.source].contains(&""), "{place}");
    });
}

#[test]
fn counts_and_times_have_a_unit_and_names_have_none() {
    each_parameter(|place, parameter| match parameter.kind {
        Kind::Count { .. } | Kind::Milliseconds { .. } => assert!(!parameter.unit.is_empty(), "{place}"),
        // Lengths and weights include their unit in the value.
        Kind::Switch | Kind::Choice(_) | Kind::Length | Kind::Weights => {
            assert!(parameter.unit.is_empty(), "{place}");
        }
        // A ratio has no unit; a factor on a time has one.
        Kind::Decimal { .. } => {}
    });
}

#[test]
fn names_are_unique() {
    let entries = entries();
    for (index, entry) in entries.iter().enumerate() {
        assert!(entries[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
        for (at, parameter) in entry.parameters.iter().enumerate() {
            let twice = entry.parameters[..at].iter().any(|other| other.name == parameter.name);
            assert!(!twice, "{}: {}", entry.name, parameter.name);
        }
    }
}

#[test]
fn names_can_stand_in_expressions_and_in_names_of_files() {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    for entry in entries() {
        assert!(entry.name.chars().all(plain) && entry.name != "all", "{}", entry.name);
        for parameter in entry.parameters {
            assert!(parameter.name.chars().all(plain), "{}: {}", entry.name, parameter.name);
        }
    }
}

#[test]
fn a_summary_has_one_to_five_lines_that_fit_a_terminal() {
    for entry in entries() {
        let lines = entry.card.summary;
        assert!((1..=5).contains(&lines.len()), "{}: {} lines", entry.name, lines.len());
        for line in lines {
            let width = line.chars().count();
            assert!((1..=110).contains(&width), "{}: {width} characters: {line}", entry.name);
        }
    }
}

#[test]
fn every_rule_names_a_file_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for entry in entries() {
        for equation in entry.card.equations() {
            let (Equation { name, rule, .. }, place) = (equation, equation.place());
            assert!(!name.is_empty() && !rule.is_empty(), "{}: {name}", entry.name);
            assert!(root.join(place).is_file(), "{}: {name}: no file {place}", entry.name);
        }
    }
}

#[test]
fn every_open_question_names_an_existing_parameter() {
    for entry in entries() {
        for choice in entry.card.choices() {
            let question = choice.question;
            assert!(!question.is_empty() && !choice.answer.is_empty(), "{}: {question}", entry.name);
            for name in choice.parameters() {
                let known = entry.parameters.iter().any(|parameter| parameter.name == name);
                assert!(known, "{}: {question}: no parameter `{name}`", entry.name);
            }
        }
    }
}

#[test]
fn every_component_has_a_valid_example() {
    for component in COMPONENTS {
        let example = component.example(PRESETS);
        let scheme = parse(&example).unwrap_or_else(|error| panic!("{example}: {error}"));
        assert_eq!(scheme.additions().len(), 1, "{example}");
    }
}

#[test]
fn only_multipath_schemes_state_their_share_of_a_bottleneck() {
    for preset in PRESETS.iter().filter(|preset| !preset.multipath) {
        assert!(!preset.coupled && preset.unfair_because.is_empty(), "{}", preset.name);
    }
    for preset in PRESETS.iter().filter(|preset| !preset.unfair_because.is_empty()) {
        assert!(preset.unfair_because.ends_with('.'), "{}: a sentence ends with a full stop", preset.name);
    }
}
