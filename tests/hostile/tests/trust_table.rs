//! The book's trust table has a row for every field, and each row names existing files and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anabranch_transfer::protocol::{Answer, Intent, Kind, Links, Message, OnClash, Outcome, Reason, Terms};
use serde_reflection::{
    ContainerFormat, Format, Named, Registry, Samples, Tracer, TracerConfig, VariantFormat,
};

const PAGE: &str = "docs/src/trust-table.md";

/// Short names of folders in the table.
const FOLDERS: [(&str, &str); 24] = [
    ("wire/", "crates/wire/src/"),
    ("core/", "crates/core/src/"),
    ("schemes/", "crates/schemes/src/"),
    ("cli/", "crates/cli/src/"),
    ("keying/", "crates/keying/src/"),
    ("identity/", "crates/identity/src/"),
    ("keylog/", "crates/keylog/src/"),
    ("net/", "crates/net/src/"),
    ("transfer/", "crates/transfer/src/"),
    ("forward/", "crates/forward/src/"),
    ("forwarding/", "crates/forward/tests/"),
    ("datachannel/", "crates/datachannel/src/"),
    ("channels/", "crates/datachannel/tests/"),
    ("tun/", "crates/tun/src/"),
    ("tunnels/", "crates/tun/tests/"),
    ("rendezvous/", "crates/rendezvous/src/"),
    ("meetings/", "crates/rendezvous/tests/"),
    ("observe/", "crates/observe/src/"),
    ("observing/", "crates/observe/tests/"),
    ("loopback/", "crates/transfer/tests/loopback/"),
    ("sockets/", "crates/net/tests/loopback/"),
    ("of-hosts/", "crates/net/tests/"),
    ("hostile/", "tests/hostile/"),
    ("endpoint/", "tests/tests/"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the folder of a short name.
fn long(short: &str) -> String {
    let folder = FOLDERS.iter().find(|(name, _)| short.starts_with(name));
    let (name, folder) = folder.unwrap_or_else(|| panic!("`{short}` is below no folder that {PAGE} names"));
    format!("{folder}{}", &short[name.len()..])
}

struct Row {
    section: String,
    field: String,
    controlled_by: String,
    bound: String,
    files: Vec<String>,
    tests: Vec<String>,
}

/// Returns the rows of all tables of the page: one for each field, of which a row of the page may have several.
fn rows() -> Vec<Row> {
    let (mut rows, mut section) = (Vec::new(), String::new());
    for line in source(PAGE).lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut section);
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if !line.starts_with("| `") {
            continue;
        }
        let &[field, controlled_by, bound, files, tests] = &cells[..] else {
            panic!("{PAGE}: a row does not have five cells: {line}");
        };
        rows.extend(quoted(field).into_iter().map(|field| Row {
            section: section.clone(),
            field,
            controlled_by: controlled_by.to_owned(),
            bound: bound.to_owned(),
            files: quoted(files),
            tests: quoted(tests),
        }));
    }
    rows
}

/// Returns the texts in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn fields_of(sections: &[&str]) -> BTreeSet<String> {
    rows().into_iter().filter(|row| sections.contains(&row.section.as_str())).map(|row| row.field).collect()
}

fn assert_same(defined: &BTreeSet<String>, in_table: &BTreeSet<String>) {
    let missing: Vec<_> = defined.difference(in_table).collect();
    let surplus: Vec<_> = in_table.difference(defined).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{PAGE}: add rows for {missing:#?}, and remove those of {surplus:#?}"
    );
}

#[test]
fn every_field_of_every_message_of_the_transfer_protocol_has_a_row() {
    let mut defined = BTreeSet::new();
    let registry = registry();
    walk_container(&registry, "Message", "", &mut defined);
    defined.extend(
        fields("crates/transfer/src/protocol/segment.rs", "Segment").map(|field| format!("Segment.{field}")),
    );
    defined.extend(["Prefix.magic", "Prefix.version"].map(str::to_owned));
    assert!(defined.contains("Offer.kind.File.size_bytes"), "{defined:#?}");
    assert_same(&defined, &fields_of(&["The transfer protocol"]));
}

/// Returns the types as their decoders read them, with all data that a peer can send.
fn registry() -> Registry {
    let mut tracer = Tracer::new(TracerConfig::default());
    let samples = Samples::new();
    let traced = tracer
        .trace_type::<Message>(&samples)
        .and_then(|_| tracer.trace_type::<Intent>(&samples))
        .and_then(|_| tracer.trace_type::<Terms>(&samples))
        .and_then(|_| tracer.trace_type::<Links>(&samples))
        .and_then(|_| tracer.trace_type::<OnClash>(&samples))
        .and_then(|_| tracer.trace_type::<Kind>(&samples))
        .and_then(|_| tracer.trace_type::<Answer>(&samples))
        .and_then(|_| tracer.trace_type::<Outcome>(&samples))
        .and_then(|_| tracer.trace_type::<Reason>(&samples));
    traced.unwrap_or_else(|error| panic!("{error}: {}", error.explanation()));
    tracer.registry().unwrap_or_else(|error| panic!("{error}: {}", error.explanation()))
}

/// Adds the paths of all fields of a type to `paths`, below `path`.
fn walk_container(registry: &Registry, name: &str, path: &str, paths: &mut BTreeSet<String>) {
    match &registry[name] {
        ContainerFormat::UnitStruct => {}
        ContainerFormat::NewTypeStruct(inner) => walk(registry, inner, path, paths),
        ContainerFormat::TupleStruct(parts) => {
            parts.iter().for_each(|part| walk(registry, part, path, paths));
        }
        ContainerFormat::Struct(fields) => walk_fields(registry, fields, path, paths),
        ContainerFormat::Enum(variants) => {
            variants.values().for_each(|variant| walk_variant(registry, variant, path, paths));
        }
    }
}

fn walk_fields(registry: &Registry, fields: &[Named<Format>], path: &str, paths: &mut BTreeSet<String>) {
    for field in fields {
        let path = below(path, &field.name);
        paths.insert(path.clone());
        walk(registry, &field.value, &path, paths);
    }
}

fn walk_variant(
    registry: &Registry,
    variant: &Named<VariantFormat>,
    path: &str,
    paths: &mut BTreeSet<String>,
) {
    let inside = below(path, &variant.name);
    match &variant.value {
        // A message without fields has a row of its own. A choice without fields has the row of its field.
        VariantFormat::Unit if path.is_empty() => {
            paths.insert(inside);
        }
        VariantFormat::Unit => {}
        VariantFormat::NewType(inner) => {
            let before = paths.len();
            walk(registry, inner, &inside, paths);
            if paths.len() == before {
                paths.insert(inside);
            }
        }
        VariantFormat::Tuple(parts) => parts.iter().for_each(|part| walk(registry, part, &inside, paths)),
        VariantFormat::Struct(fields) => walk_fields(registry, fields, &inside, paths),
        VariantFormat::Variable(_) => panic!("{inside} was not traced"),
    }
}

fn walk(registry: &Registry, format: &Format, path: &str, paths: &mut BTreeSet<String>) {
    match format {
        Format::TypeName(name) => walk_container(registry, name, path, paths),
        Format::Option(inner) | Format::Seq(inner) => walk(registry, inner, path, paths),
        Format::Tuple(parts) => parts.iter().for_each(|part| walk(registry, part, path, paths)),
        Format::TupleArray { content, .. } => walk(registry, content, path, paths),
        Format::Map { key, value } => {
            [key, value].into_iter().for_each(|part| walk(registry, part, path, paths));
        }
        _ => {}
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[test]
fn every_chunk_parameter_and_error_cause_has_a_row_for_each_of_its_fields() {
    let mut defined = BTreeSet::from(
        [
            "IP.source_address",
            "UDP.source_port",
            "UDP.length",
            "ICMP.quoted_packet",
            "Chunk.type",
            "Chunk.flags",
            "Chunk.length",
            "Header.checksum",
        ]
        .map(str::to_owned),
    );
    defined.extend(fields("crates/wire/src/header.rs", "Header").map(|field| format!("Header.{field}")));
    defined.extend(chunk_fields());
    defined.extend(
        constants("crates/wire/src/param/mod.rs", "param_types!").map(|name| format!("param.{name}")),
    );
    defined.extend(
        constants("crates/wire/src/cause/mod.rs", "cause_codes!").map(|name| format!("cause.{name}")),
    );
    assert!(defined.contains("SACK.gaps") && defined.contains("SHUTDOWN.cum_tsn"), "{defined:#?}");
    assert_same(&defined, &fields_of(&["Packets", "Chunks", "Parameters", "Error causes"]));
}

/// Returns the public fields of a struct.
fn fields(path: &str, name: &str) -> impl Iterator<Item = String> {
    let text = source(path);
    let (_, body) =
        text.split_once(&format!("pub struct {name} {{")).unwrap_or_else(|| panic!("{path}: no {name}"));
    let body = body.split("\n}").next().unwrap_or_default();
    let field = |line: &str| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0.to_owned());
    body.lines().filter_map(field).collect::<Vec<_>>().into_iter()
}

/// Returns the names that a macro call gives to numbers.
fn constants(path: &str, call: &str) -> impl Iterator<Item = String> {
    let text = source(path);
    let (_, body) = text.split_once(&format!("\n{call} {{")).unwrap_or_else(|| panic!("{path}: no {call}"));
    let body = body.split("\n}").next().unwrap_or_default();
    let name = |line: &str| Some(line.trim().split_once(" = ")?.0.to_owned());
    let names: Vec<String> =
        body.lines().filter(|line| !line.trim().starts_with("//")).filter_map(name).collect();
    assert!(names.len() > 5, "{path}: {names:?}");
    names.into_iter()
}

/// Returns, for each chunk type, the accessors of its view or the fields of its decoded form.
fn chunk_fields() -> BTreeSet<String> {
    let (views, fixed) = (views(), fixed());
    let mut all = BTreeSet::new();
    for chunk in constants("crates/wire/src/chunk_type.rs", "chunk_types!") {
        let fields = views.get(&chunk).or_else(|| fixed.get(&chunk));
        match fields.filter(|fields| !fields.is_empty()) {
            Some(fields) => all.extend(fields.iter().map(|field| format!("{chunk}.{field}"))),
            None => {
                all.insert(chunk);
            }
        }
    }
    all
}

/// Returns chunks that are decoded into a view.
fn views() -> BTreeMap<String, Vec<String>> {
    let decoders = source("crates/wire/src/chunk/mod.rs");
    let mut views = BTreeMap::new();
    for line in decoders.lines().filter(|line| line.contains("View::decode(") && line.contains(" => ")) {
        let (_, rest) = line.split_once("ChunkType::").expect("a type");
        let (chunk, decoded) = rest.split_once(" => ").expect("an arm");
        let before = decoded.split_once("View::decode").expect("a view").0;
        let view = before.rsplit('(').next().expect("a name");
        views.insert(chunk.to_owned(), accessors(view));
    }
    views
}

fn accessors(view: &str) -> Vec<String> {
    let file = match view {
        "AsconfAck" => "asconf".to_owned(),
        "NrSack" => "nr_sack".to_owned(),
        "ForwardTsn" => "forward_tsn".to_owned(),
        "ReConfig" => "re_config".to_owned(),
        "IData" => "i_data".to_owned(),
        "IForwardTsn" => "i_forward_tsn".to_owned(),
        other => other.to_lowercase(),
    };
    let path = format!("crates/wire/src/chunk/{file}.rs");
    let text = source(&path);
    let (_, body) =
        text.split_once(&format!("impl<'a> {view}View<'a> {{")).unwrap_or_else(|| panic!("{path}: {view}"));
    let body = body.split("\n}").next().unwrap_or_default();
    let name = |line: &str| {
        let (_, rest) = line.trim().strip_prefix("pub ")?.split_once("fn ")?;
        let (name, arguments) = rest.split_once('(')?;
        arguments.starts_with("&self)").then(|| name.to_owned())
    };
    let mut names: Vec<String> =
        body.lines().filter_map(name).filter(|name| !name.starts_with("raw_")).collect();
    // The fixed part as one value: its fields have their own accessors, or are only present there.
    if names.iter().any(|name| name == "repr") {
        names.retain(|name| name != "repr");
        let repr = if view == "NrSack" { "crates/wire/src/chunk/sack.rs" } else { &path };
        let kind = if view == "NrSack" { "Sack" } else { view };
        names.extend(fields(repr, &format!("{kind}Repr")));
    }
    names
}

/// Returns chunks whose fields are in the enum of all chunks.
fn fixed() -> BTreeMap<String, Vec<String>> {
    let text = source("crates/wire/src/chunk/mod.rs");
    let (_, body) = text.split_once("pub enum Chunk<'a> {").expect("the enum");
    let body = body.split("\n}").next().unwrap_or_default();
    let (mut fixed, mut current) = (BTreeMap::<String, Vec<String>>::new(), None);
    for line in body.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if let Some(name) = line.strip_suffix(" {") {
            current = Some(constant_case(name));
        } else if line == "}," {
            current = None;
        } else if let (Some(chunk), Some((field, _))) = (&current, line.split_once(':')) {
            fixed.entry(chunk.clone()).or_default().push(field.to_owned());
        }
    }
    fixed
}

/// Converts `ShutdownAck` to `SHUTDOWN_ACK`.
fn constant_case(name: &str) -> String {
    let parts = name.char_indices().flat_map(|(at, letter)| {
        let divides = at > 0 && letter.is_uppercase();
        divides.then_some('_').into_iter().chain(letter.to_uppercase())
    });
    parts.collect()
}

#[test]
fn every_row_has_a_bound_a_file_that_exists_and_a_test_that_exists() {
    let mut wrong = Vec::new();
    for row in rows() {
        if !["anyone", "peer", "path", "the user"].contains(&row.controlled_by.as_str()) {
            wrong.push(format!("{}: controlled by `{}`", row.field, row.controlled_by));
        }
        if row.bound.is_empty() || row.files.is_empty() || row.tests.is_empty() {
            wrong.push(format!("{}: no bound, no file or no test", row.field));
        }
        let no_file = |file: &&String| !root().join(long(file)).is_file();
        wrong.extend(row.files.iter().filter(no_file).map(|file| format!("{}: no file {file}", row.field)));
        let no_test = |test: &&String| !is_test(test);
        wrong.extend(row.tests.iter().filter(no_test).map(|test| format!("{}: no test {test}", row.field)));
    }
    assert!(wrong.is_empty(), "{PAGE}: {wrong:#?}");
}

/// Returns `true` if `file::function` is a test.
fn is_test(name: &str) -> bool {
    let Some((file, function)) = name.split_once("::") else { return false };
    let Ok(text) = fs::read_to_string(root().join(long(file))) else { return false };
    let Some(at) = text.find(&format!("fn {function}(")) else { return false };
    // The attributes directly precede it.
    text[..at]
        .trim_end()
        .lines()
        .rev()
        .take(3)
        .any(|line| line.trim().starts_with("#[") && line.contains("test"))
}
