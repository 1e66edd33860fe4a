//! Cards and expressions as JSON.

use anabranch_schemes::registry::{Kind, NamedScheme, Parameter, Value, Values};
use serde_json::{Map, json};

use crate::schemes::subject::Subject;

/// Returns an array with one object for each subject.
pub(super) fn cards(subjects: &[Subject]) -> String {
    let all: Vec<serde_json::Value> = subjects.iter().map(card).collect();
    format!("{:#}\n", serde_json::Value::Array(all))
}

/// Returns an object with the scheme and the components of an expression.
pub(super) fn composition(scheme: &NamedScheme) -> String {
    let components: Vec<_> = scheme
        .additions()
        .iter()
        .map(|added| {
            let component = added.component();
            let role = component.role.to_string();
            json!({ "name": component.name, "role": role, "values": values(added.values()) })
        })
        .collect();
    let whole = json!({
        "expression": scheme.expression(),
        "scheme": { "name": scheme.preset().name, "values": values(scheme.values()) },
        "components": components,
    });
    format!("{whole:#}\n")
}

fn values(values: &Values) -> serde_json::Value {
    let pairs = values.iter().map(|(parameter, value)| (parameter.name.to_owned(), plain(value)));
    serde_json::Value::Object(pairs.collect::<Map<_, _>>())
}

fn card(subject: &Subject) -> serde_json::Value {
    let card = subject.card();
    let equations =
        card.equations().map(|one| json!({ "name": one.name, "rule": one.rule, "place": one.place() }));
    let choices = card.choices().map(|one| {
        let parameters: Vec<&str> = one.parameters().collect();
        json!({ "question": one.question, "answer": one.answer, "parameters": parameters })
    });
    let mut object = json!({
        "name": subject.name(),
        "about": subject.about(),
        "source": subject.source(),
        "summary": card.summary,
        "parameters": subject.parameters().iter().map(parameter).collect::<Vec<_>>(),
        "equations": equations.collect::<Vec<_>>(),
        "choices": choices.collect::<Vec<_>>(),
        "example": subject.example(),
    });
    match subject {
        Subject::Scheme(preset) => {
            object["kind"] = json!("scheme");
            object["multipath"] = json!(preset.multipath);
            object["coupled"] = json!(preset.coupled);
            object["unfair_because"] = match preset.unfair_because {
                "" => serde_json::Value::Null,
                because => json!(because),
            };
            object["components"] = json!(subject.partners());
        }
        Subject::Component(component) => {
            object["kind"] = json!("component");
            object["role"] = json!(component.role.to_string());
            object["needs_multipath"] = json!(component.needs_multipath);
            object["schemes"] = json!(subject.partners());
        }
    }
    object
}

fn plain(value: Value) -> serde_json::Value {
    match value {
        Value::Switch(on) => json!(on),
        Value::Number(number) => json!(number),
        Value::Choice(name) => json!(name),
        Value::Decimal(number) => json!(number),
        value @ (Value::Length(_) | Value::Weights(_)) => json!(value.to_string()),
    }
}

fn parameter(parameter: &Parameter) -> serde_json::Value {
    let mut object = json!({
        "name": parameter.name,
        "unit": parameter.unit,
        "default": plain(parameter.default),
        "about": parameter.about,
        "source": parameter.source,
    });
    let (kind, more) = match parameter.kind {
        Kind::Switch => ("switch", json!({})),
        Kind::Count { min, max } => ("count", json!({ "min": min, "max": max })),
        Kind::Choice(choice) => ("choice", json!({ "choices": choice.names() })),
        Kind::Milliseconds { min, max } => ("milliseconds", json!({ "min": min, "max": max })),
        Kind::Decimal { min, max } => ("decimal", json!({ "min": min, "max": max })),
        Kind::Length => ("length", json!({})),
        Kind::Weights => ("weights", json!({})),
    };
    object["kind"] = json!(kind);
    if let (Some(object), serde_json::Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
