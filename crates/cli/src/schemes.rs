//! `anabranch schemes`.

use anabranch_schemes::registry::{self, Kind, PRESETS, Parameter, Preset, Value};
use clap::Args;
use serde_json::json;

use crate::exit::{Status, Stopped};
use crate::output::{self, labelled};
use crate::table::Sheet;

const EXAMPLES: &str = "\
Examples:
  See all schemes with their parameters:
    anabranch schemes
  See one of them in detail, with the values that its parameters take:
    anabranch schemes cmt-pf
  Use a scheme with parameters of your choice:
    anabranch run scenarios/two-path.toml --schemes 'cmt,cmt(rtx=rtx-asap,sfr=false)'";

/// List the schemes, their parameters and where they are published.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemesArguments {
    /// Show this scheme only, in detail
    name: Option<String>,

    /// Print JSON: an array with one object per scheme
    #[arg(long)]
    json: bool,
}

/// Carries the command out.
pub(crate) fn schemes(arguments: &SchemesArguments) -> Result<Status, Stopped> {
    let chosen = match &arguments.name {
        Some(name) => std::slice::from_ref(find(name)?),
        None => PRESETS,
    };
    let text = match (arguments.json, &arguments.name) {
        (true, _) => as_json(chosen),
        (false, Some(_)) => chosen.iter().map(card).collect(),
        (false, None) => list(chosen),
    };
    output::print(&text)?;
    Ok(Status::Success)
}

fn find(name: &str) -> Result<&'static Preset, Stopped> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return Ok(preset);
    }
    Err(match registry::parse(name) {
        Err(error) => Stopped::usage(error),
        Ok(scheme) => {
            let plain = scheme.preset().name;
            Stopped::usage(format!("`{name}` has parameters; give the name only: anabranch schemes {plain}"))
        }
    })
}

/// Columns for labels, wide enough for the longest of these.
fn label_width<'a>(labels: impl IntoIterator<Item = &'a str>) -> usize {
    labels.into_iter().map(str::len).max().unwrap_or(0) + 2
}

fn list(presets: &[Preset]) -> String {
    let mut text = String::new();
    let width = label_width(presets.iter().map(|preset| preset.name));
    for preset in presets {
        text += &labelled(preset.name, preset.about, width);
        text += &labelled("", &format!("source: {}", preset.source), width);
        let mut sheet = Sheet::new().text("").text("").text("").text("");
        for parameter in preset.parameters {
            let name = parameter.name.to_owned();
            sheet.row(vec![String::new(), name, with_unit(parameter), parameter.about.to_owned()]);
        }
        if !preset.parameters.is_empty() {
            text += &sheet.print();
        }
        text.push('\n');
    }
    text += "Below each scheme stand its parameters, their defaults and what they do.\n";
    text + "anabranch schemes NAME shows the values that the parameters of one scheme take, and their sources.\n"
}

fn card(preset: &Preset) -> String {
    let width = label_width(["new data", "parameter", preset.name]);
    let mut text = labelled(preset.name, preset.about, width);
    text += &labelled("source", preset.source, width);
    let paths = match preset.multipath {
        true => "on several paths at once",
        false => "on the primary path only",
    };
    text += &labelled("new data", paths, width);
    let width = label_width(preset.parameters.iter().map(|parameter| parameter.name).chain(["  default"]));
    for parameter in preset.parameters {
        text.push('\n');
        text += &labelled(parameter.name, parameter.about, width);
        text += &labelled("  default", &with_unit(parameter), width);
        text += &labelled("  values", &values(parameter), width);
        text += &labelled("  source", parameter.source, width);
    }
    if let Some(parameter) = preset.parameters.first() {
        let example = format!("{}({}={})", preset.name, parameter.name, parameter.default);
        text += &format!("\nSet parameters in parentheses, as in --schemes '{example}'.\n");
    }
    text
}

fn with_unit(parameter: &Parameter) -> String {
    format!("{} {}", parameter.default, parameter.unit).trim_end().to_owned()
}

fn values(parameter: &Parameter) -> String {
    match parameter.kind {
        Kind::Switch => "true, false".to_owned(),
        Kind::Count { min, max } => format!("whole numbers from {min} to {max}"),
        Kind::Choice(names) => names.join(", "),
        Kind::Milliseconds { min, max } => format!("{min}ms to {max}ms"),
        Kind::Decimal { min, max } => format!("numbers from {min} to {max}"),
        Kind::Length => "bytes or largest chunks, such as 1468B or 1.5MTU".to_owned(),
        Kind::Weights => "a whole number per path, such as 3:1".to_owned(),
    }
}

fn as_json(presets: &[Preset]) -> String {
    let all: Vec<serde_json::Value> = presets
        .iter()
        .map(|preset| {
            let parameters: Vec<_> = preset.parameters.iter().map(parameter_json).collect();
            json!({
                "name": preset.name,
                "about": preset.about,
                "source": preset.source,
                "multipath": preset.multipath,
                "parameters": parameters,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(all))
}

fn parameter_json(parameter: &Parameter) -> serde_json::Value {
    let mut object = json!({
        "name": parameter.name,
        "unit": parameter.unit,
        "default": match parameter.default {
            Value::Switch(on) => json!(on),
            Value::Number(number) => json!(number),
            Value::Choice(name) => json!(name),
            Value::Decimal(number) => json!(number),
            value @ (Value::Length(_) | Value::Weights(_)) => json!(value.to_string()),
        },
        "about": parameter.about,
        "source": parameter.source,
    });
    let (kind, more) = match parameter.kind {
        Kind::Switch => ("switch", json!({})),
        Kind::Count { min, max } => ("count", json!({ "min": min, "max": max })),
        Kind::Choice(names) => ("choice", json!({ "choices": names })),
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
