//! Cards and lists for a terminal.

use crate::output::labelled;
use crate::schemes::subject::{Subject, default_of, fairness, values_of};

/// Returns the columns of labels, for the longest of these.
pub(super) fn label_width<'a>(labels: impl IntoIterator<Item = &'a str>) -> usize {
    labels.into_iter().map(str::len).max().unwrap_or(0) + 2
}

/// Returns two sections: schemes and components.
pub(super) fn list(subjects: &[Subject]) -> String {
    let width = label_width(subjects.iter().map(Subject::name));
    let (mut schemes, mut components) = (String::new(), String::new());
    for subject in subjects {
        let line = |about: &str| labelled(subject.name(), &format!("{about} ({})", subject.source()), width);
        match subject {
            Subject::Scheme(_) => schemes += &line(subject.about()),
            Subject::Component(component) => {
                components += &line(&format!("{}: {}", component.role, subject.about()));
            }
        }
    }
    let mut text = format!("Schemes\n{schemes}");
    if !components.is_empty() {
        text += &format!("\nComponents, added to a scheme with +\n{components}");
    }
    text + "\nanabranch schemes NAME shows the rules, the open points and the parameters of one of them.\n"
}

/// Returns all information about a subject.
pub(super) fn card(subject: &Subject) -> String {
    let (label, place) = subject.place();
    let partners = match subject {
        Subject::Scheme(_) => "add",
        Subject::Component(_) => "add to",
    };
    let width = label_width([subject.name(), label, "source", "fairness", partners, "example"]);
    let mut text = labelled(subject.name(), subject.about(), width);
    text += &labelled("source", subject.source(), width);
    text += &labelled(label, &place, width);
    if let Some(fairness) = fairness(subject) {
        text += &labelled("fairness", &fairness, width);
    }
    if !subject.partners().is_empty() {
        text += &labelled(partners, &subject.partners().join(", "), width);
    }
    text += &labelled("example", &format!("--schemes '{}'", subject.example()), width);
    text += &format!("\n{}", labelled("", &subject.card().summary.join(" "), 0));
    text + &parameters(subject) + &rules(subject) + &choices(subject)
}

fn parameters(subject: &Subject) -> String {
    let parameters = subject.parameters();
    if parameters.is_empty() {
        return String::new();
    }
    let width = label_width(parameters.iter().map(|parameter| parameter.name).chain(["  default"]));
    let mut text = "\nParameters\n".to_owned();
    for parameter in parameters {
        text += &labelled(parameter.name, parameter.about, width);
        text += &labelled("  default", &default_of(parameter), width);
        text += &labelled("  values", &values_of(parameter), width);
        text += &labelled("  source", parameter.source, width);
    }
    text
}

fn rules(subject: &Subject) -> String {
    let mut equations = subject.card().equations().peekable();
    if equations.peek().is_none() {
        return String::new();
    }
    let mut text = "\nRules\n".to_owned();
    for equation in equations {
        text += &labelled("", equation.name, 0);
        text += &labelled("", equation.rule, 4);
        text += &labelled("", equation.place(), 4);
    }
    text
}

fn choices(subject: &Subject) -> String {
    let mut choices = subject.card().choices().peekable();
    if choices.peek().is_none() {
        return String::new();
    }
    let mut text = "\nOpen points and choices\n".to_owned();
    for choice in choices {
        text += &labelled("", choice.question, 0);
        text += &labelled("", choice.answer, 4);
        if !choice.parameter.is_empty() {
            text += &labelled("", &format!("Change it with: {}", choice.parameter), 4);
        }
    }
    text
}
