//! Files that are generated from the tables of fields: the key tables of the book and the classes of the Python package.
//! `UPDATE_EXPECT=1` writes them.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_scenario::{Field, Presence, SectionInfo, keys, sections};
use expect_test::expect_file;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn every_key() -> String {
    fs::read_to_string(workspace().join("crates/scenario/tests/scenario/every-key.toml")).expect("a scenario")
}

#[test]
fn book_has_the_key_tables_of_the_sections() {
    let file = workspace().join("docs/src/scenarios.md");
    let text = fs::read_to_string(&file).expect("the chapter on scenario files");
    let mut page = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("<!-- keys of ") {
        let (class, table) = after.split_once(" -->\n").expect("the end of a marker");
        let end = table.find("<!-- end of keys -->").expect("a marker behind the table");
        page += &format!("{before}<!-- keys of {class} -->\n\n{}\n", table_of(class));
        rest = &table[end..];
    }
    page += rest;
    expect_file![file].assert_eq(&page);
    for section in sections() {
        assert!(
            page.contains(&format!("<!-- keys of {} -->", section.class)),
            "no table of {}",
            section.class
        );
    }
}

fn table_of(class: &str) -> String {
    let sections = sections();
    let section = sections.iter().find(|section| section.class == class).expect("a section of this class");
    let mut table = "| key | value | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for field in &section.fields {
        let elsewhere = class == "Path" && field.key != "name";
        let of_link = |other: &&SectionInfo| other.class == "Link";
        let link = sections.iter().find(of_link).expect("links");
        if elsewhere && link.fields.iter().any(|other| other.key == field.key) {
            continue;
        }
        let (value, help) = (&field.about.text, &field.help);
        table += &format!("| `{}` | {value} | {} | {}{help} |\n", field.key, default_of(field), only(field));
    }
    table
}

fn default_of(field: &Field) -> String {
    match &field.presence {
        Presence::Required => "required".to_owned(),
        Presence::Default(value) => format!("`{value}`"),
        Presence::Optional(text) => (*text).to_owned(),
    }
}

/// Returns the words for which a key applies, as a prefix of its help text.
fn only(field: &Field) -> String {
    let words: Vec<String> = field.only.iter().map(|word| format!("`{word}`")).collect();
    if words.is_empty() || field.help.starts_with('`') {
        String::new()
    } else {
        format!("{} only. ", words.join(" and "))
    }
}

#[test]
fn python_has_the_classes_of_the_sections() {
    for (file, of_links) in [("link_tables.py", true), ("tables.py", false)] {
        let mut text = HEAD.to_owned();
        if of_links {
            text = text.replace(TABLE, &format!("{TABLE}from anabranch.scenario.tables import Handover\n"));
        }
        for section in sections().iter().filter(|section| is_of_links(section) == of_links) {
            text += &class_of(section);
        }
        expect_file![workspace().join("python/anabranch/scenario").join(file)].assert_eq(&text);
    }
}

/// Import of the base class.
const TABLE: &str = "from anabranch.scenario.table import Table\n";

/// Returns `true` for links and paths, and for most tables in them.
fn is_of_links(section: &SectionInfo) -> bool {
    let others = [
        "RunSettings",
        "AssociationSettings",
        "Scheme",
        "Reliability",
        "SmallMessages",
        "Exchange",
        "Datagrams",
        "Flow",
        "Handover",
    ];
    !others.contains(&section.class)
}

const HEAD: &str = r#""""Tables of scenario files as dataclasses.

Generated from `crates/scenario` by `UPDATE_EXPECT=1 cargo test -p anabranch-scenario`. Values are as in a file: text
with units, numbers, and `None` or `()` for keys that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from anabranch.scenario.table import Table
"#;

/// Returns the name of a key in Python.
fn python_name(key: &str) -> &str {
    match key {
        "event" => "events",
        other => other,
    }
}

fn class_of(section: &SectionInfo) -> String {
    let class = section.class;
    let (required, optional): (Vec<&Field>, Vec<&Field>) =
        section.fields.iter().partition(|field| is_required(field));
    let mut text = format!(
        "\n\n@dataclass(frozen=True, slots=True, kw_only=True, repr=False)\nclass {class}(Table):\n    \"\"\"{}\"\"\"\n\n",
        wrapped(section.about)
    );
    let renamed = section.fields.iter().filter(|field| python_name(field.key) != field.key);
    text += &mapping("KEYS", "str", renamed.map(|f| (python_name(f.key), format!("\"{}\"", f.key))));
    let inner = |field: &&Field| field.about.class.is_some_and(|inner| inner != class);
    let inner = section.fields.iter().filter(inner);
    text += &mapping(
        "INNER",
        "type[Table]",
        inner.map(|f| (python_name(f.key), f.about.class.unwrap_or_default().to_owned())),
    );
    let units = section.fields.iter().filter(|field| !field.about.unit.is_empty());
    text += &mapping("UNITS", "str", units.map(|f| (python_name(f.key), format!("\"{}\"", f.about.unit))));
    if class == "Scheme" {
        text += "    name: str\n    \"\"\"Name, unique among schemes and components.\"\"\"\n";
    }
    for field in required.into_iter().chain(optional) {
        text += &attribute(field);
    }
    let own: Vec<&str> =
        section.fields.iter().filter(|f| f.about.class == Some(class)).map(|f| f.key).collect();
    if !own.is_empty() {
        let keys: Vec<String> = own.iter().map(|key| format!("\"{key}\"")).collect();
        text += &format!("\n\n{class}.INNER = dict.fromkeys(({}), {class})\n", keys.join(", "));
    }
    text
}

fn is_required(field: &Field) -> bool {
    field.presence == Presence::Required && field.only.is_empty()
}

fn mapping<'a>(name: &str, of: &str, entries: impl Iterator<Item = (&'a str, String)>) -> String {
    let entries: String = entries.map(|(key, value)| format!("        \"{key}\": {value},\n")).collect();
    if entries.is_empty() {
        return String::new();
    }
    format!("    {name}: ClassVar[Mapping[str, {of}]] = {{\n{entries}    }}\n")
}

fn attribute(field: &Field) -> String {
    let (name, python) = (python_name(field.key), &field.about.python);
    let list = python.starts_with("Sequence[") && field.about.class.is_some();
    let declared = if is_required(field) {
        format!("{name}: {python}")
    } else if list {
        format!("{name}: {python} = ()")
    } else {
        format!("{name}: {python} | None = None")
    };
    // Names that a linter mistakes for digits.
    let excused = if ["I"].contains(&name) { "  # noqa: E741" } else { "" };
    format!("    {declared}{excused}\n    \"\"\"{}\"\"\"\n", documentation(field))
}

/// Returns help and default of a key without links, as lines of a docstring.
fn documentation(field: &Field) -> String {
    let default = match &field.presence {
        Presence::Required => " Required.".to_owned(),
        Presence::Default(value) => format!(" Default: `{value}`."),
        Presence::Optional("none" | "no change") => String::new(),
        Presence::Optional(text) => format!(" Default: {text}."),
    };
    wrapped(&without_links(&format!("{}{}{default}", only(field), field.help)))
}

/// Wraps text to lines of a docstring.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("a line");
        if last.chars().count() + word.chars().count() > 100 {
            lines.push(word.to_owned());
        } else {
            *last += if last.is_empty() { "" } else { " " };
            *last += word;
        }
    }
    lines.join("\n    ")
}

fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain += before;
        rest = after;
        if let Some((words, link)) = after.split_once("](")
            && !words.contains(['[', ']'])
            && let Some((_, behind)) = link.split_once(')')
        {
            plain += words;
            rest = behind;
        } else {
            plain.push('[');
        }
    }
    plain + rest
}

#[test]
fn completed_keys_are_those_of_the_file_with_every_key() {
    let keys = keys();
    let mut table = String::new();
    for line in every_key().lines() {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, _)) = line.split_once(" = ")
            && !key.starts_with([' ', '#'])
            && !table.contains("scheme.")
        {
            let place = match table.split_once('.') {
                None if ["run", "association"].contains(&table.as_str()) => table.clone(),
                None => format!("{table}.*"),
                Some((list, "reverse")) => format!("{list}.*.reverse"),
                Some((list, inner)) => format!("{list}.*.{inner}.*"),
            };
            assert!(keys.contains(&format!("{place}.{key}")), "{place}.{key} is not completed");
        }
    }
}

#[test]
fn every_key_of_a_section_is_in_the_file_with_every_key() {
    let resolved = "crates/scenario/tests/scenario/every-key.resolved.toml";
    let text = every_key() + &fs::read_to_string(workspace().join(resolved)).expect("its canonical text");
    for section in sections() {
        for field in section.fields {
            let key = field.key;
            let given = text.contains(&format!("\n{key} = ")) || text.contains(&format!(" {key} = "));
            let table = text.contains(&format!(".{key}]"));
            assert!(given || table || section.class == "Reliability", "{key} is nowhere");
        }
    }
}
