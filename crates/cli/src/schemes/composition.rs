//! Composition of an expression.

use anabranch_schemes::registry::{NamedScheme, Values};

use crate::output::labelled;
use crate::schemes::text::label_width;

/// Returns the scheme and each component with the values of their parameters.
pub(super) fn text(scheme: &NamedScheme) -> String {
    let preset = scheme.preset();
    let mut text = format!("{scheme}\n\n");
    text += &part(preset.name, &format!("scheme: {}", preset.about), scheme.values());
    for addition in scheme.additions() {
        let component = addition.component();
        let about = format!("{}: {}", component.role, component.about);
        text += &format!("\n{}", part(&format!("+{}", component.name), &about, addition.values()));
    }
    text
}

fn part(name: &str, about: &str, values: &Values) -> String {
    let labels: Vec<String> = values.iter().map(|(parameter, _)| format!("  {}", parameter.name)).collect();
    let width = label_width(labels.iter().map(String::as_str).chain([name]));
    let mut text = labelled(name, about, width);
    for ((parameter, value), label) in values.iter().zip(&labels) {
        let default = match value == parameter.default {
            true => String::new(),
            false => format!(" instead of {}", parameter.default),
        };
        let value = format!("{value} {}", parameter.unit);
        text += &labelled(label, &format!("{}{default}: {}", value.trim_end(), parameter.about), width);
    }
    text
}
