"""Checks that a new key of scenario files is a row in the table of its section.

In a copy of the workspace, it adds a flag to `[association]`, and a table with an enum to both directions of a link and
to its events. Then reader, canonical writer, completions, key tables of the book and Python classes have to have them.
`make new-key` runs this.

Usage: check.py [--target FOLDER]
"""

import argparse
import ast
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = "crates/scenario/src"

FLAG = """
        /// Explicit congestion notification.
        ecn: bool = "ecn" [unless false] Flag;
        /// [Packet protection]"""

SECTION = """
/// Depth of reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorderKind {
    /// By packets.
    Packets,
    /// By time.
    Time,
}

section! {
    /// Reordering of packets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Reorder {
        /// Unit of the depth.
        kind: ReorderKind = "kind" [selects required]
            OneOf(&[("packets", ReorderKind::Packets), ("time", ReorderKind::Time)]);
        /// Packets that may overtake one.
        depth: Option<u64> = "depth" [only ["packets"] required] IntegerIn::<u64>(1..=100);
        /// Time within which a packet may be overtaken.
        lag: Option<Span> = "lag" [only ["time"] or Span::from_millis(3)] SOME_DELAY;
    }
}

impl Described for Reorder {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}

section! {
    impl Policer {"""

ROW = """
        /// Reordering of packets.
        reorder: Option<Reorder> = "reorder" [optional "none"] Inner::<Reorder>::new("Reorder");"""

INFO = """        section("Reorder", "", "Reordering of packets.", crate::impairment::Reorder::fields()),
        section(
            "Reverse","""

TEST = """
fn read(text: &str) -> anabranch_scenario::Scenario {
    anabranch_scenario::Scenario::parse(text, "new.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn new_keys_are_read_and_written() {
    let text = every_key()
        .replace("[association]\\n", "[association]\\necn = true\\n")
        .replace("[path.reverse]\\n", "[path.reverse]\\nreorder = { kind = \\"time\\" }\\n")
        .replacen("[[path.event]]\\n", "[[path.event]]\\nreorder = { kind = \\"packets\\", depth = 7 }\\n", 1);
    let scenario = read(&text);
    let canonical = scenario.to_toml();
    assert!(canonical.contains("\\necn = true\\n"), "{canonical}");
    assert!(canonical.contains("\\nreorder = { kind = \\"time\\", lag = \\"3 ms\\" }\\n"), "{canonical}");
    assert!(canonical.contains("\\nreorder = { kind = \\"packets\\", depth = 7 }\\n"), "{canonical}");
    assert_eq!(read(&canonical), scenario);
    let wrong = text.replace("depth = 7", "depth = 700");
    let error = anabranch_scenario::Scenario::parse(&wrong, "new.toml", &[]).expect_err("a wrong depth");
    let error = error.to_string();
    assert!(error.contains("event.0.reorder.depth` is out of range"), "{error}");
    let line = "rate=1Mbit,delay=1ms,reverse=(reorder=(kind=packets,depth=3)),event=[(at=1s,reorder=(kind=time))]";
    let link = anabranch_scenario::Link::parse(line, "--link", "link-1");
    let written = link.unwrap_or_else(|error| panic!("{error}")).to_line();
    assert!(written.contains("reorder = { kind = \\"packets\\", depth = 3 }"), "{written}");
    assert!(written.contains("reorder = { kind = \\"time\\", lag = \\"3 ms\\" }"), "{written}");
    assert!(anabranch_scenario::Link::fields().iter().any(|field| field.key == "reorder"));
    for key in ["association.ecn", "path.*.reorder", "link.*.reverse.reorder", "path.*.event.*.reorder"] {
        assert!(keys().contains(&key.to_owned()), "{key} is not completed");
    }
}
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Cargo takes the crates of the copy for those of the workspace, so the two never share a folder.
    options.add_argument("--target", type=Path, help="folder of compiled code that is kept; only for this check")
    target = options.parse_args().target
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy_workspace(copy)
        add_keys(copy)
        environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str((target or Path(folder) / "target").resolve()),
            # The tests compute little, so compiling takes most of the time.
            "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
            "CARGO_PROFILE_DEV_DEBUG": "none",
            "CARGO_INCREMENTAL": "0",
        }
        cargo = shlex.split(os.environ.get("CARGO", "cargo"))
        command = [*cargo, "test", "--quiet", "--locked", "-p", "anabranch-scenario", "--test", "scenario"]
        tests = ["generated::book_has", "generated::python_has", "new_keys_are"]
        run([*command, "--", *tests], copy, {**environment, "UPDATE_EXPECT": "1"})
        run([*command, "--", *tests], copy, environment)
        check_generated(copy)
    print("new keys: reader, writer, completions, book and Python classes have them")


def copy_workspace(copy: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


def add_keys(copy: Path) -> None:
    sources = copy / SOURCES
    replace(sources / "association.rs", "\n        /// [Packet protection]", FLAG)
    replace(sources / "impairment.rs", "\nsection! {\n    impl Policer {", SECTION)
    append(sources / "impairment.rs", '[optional "none"] Inner::<Aggregation>::new("Aggregation");', ROW)
    append(sources / "event.rs", '"delay" [optional "no change"] DELAY;', ROW)
    insert(sources / "event.rs", "use crate::impairment::Reorder;\nuse crate::inner::Inner;\n", "use crate::form::{")
    replace(sources / "sections.rs", '        section(\n            "Reverse",', INFO)
    tests = copy / "crates/scenario/tests/scenario/generated.rs"
    tests.write_text(tests.read_text(encoding="utf-8") + TEST, encoding="utf-8")
    # The other tests make scenarios of every field.
    (tests.parent / "main.rs").write_text("//! The new keys.\n\nmod generated;\n", encoding="utf-8")
    table = "\n### Reordering\n\n<!-- keys of Reorder -->\n<!-- end of keys -->\n"
    insert(copy / "docs/src/scenarios.md", table, "\n### Jitter\n")


def append(file: Path, anchor: str, text: str) -> None:
    replace(file, anchor, anchor + text)


def insert(file: Path, text: str, anchor: str) -> None:
    replace(file, anchor, text + anchor)


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{file.name}: expected once, found {text.count(old)} times: {old.strip()}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    ended = subprocess.run(command, cwd=folder, env=environment, check=False)
    if ended.returncode:
        sys.exit(f"new keys: failed: {' '.join(command)}")


def check_generated(copy: Path) -> None:
    book = (copy / "docs/src/scenarios.md").read_text(encoding="utf-8")
    for row in ("| `ecn` | `true`, `false` | `false` |", "| `reorder` | table, see below | none |", "| `lag` |"):
        if row not in book:
            sys.exit(f"new keys: docs/src/scenarios.md has no row {row}")
    files = [copy / f"python/anabranch/scenario/{name}.py" for name in ("tables", "link_tables")]
    nodes = [node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body]
    classes = {node.name: fields(node) for node in nodes if isinstance(node, ast.ClassDef)}
    expected = {
        "AssociationSettings": {"ecn": "bool | None"},
        "Reorder": {"kind": "Literal['packets', 'time']", "depth": "int | None", "lag": "str | None"},
        "Path": {"reorder": "Reorder | None"},
        "Reverse": {"reorder": "Reorder | None"},
        "LinkEvent": {"reorder": "Reorder | None"},
    }
    for name, keys in expected.items():
        for key, kind in keys.items():
            if classes.get(name, {}).get(key) != kind:
                sys.exit(f"new keys: {name}.{key} of Python is {classes.get(name, {}).get(key)}, not {kind}")


def fields(node: ast.ClassDef) -> dict[str, str]:
    annotated = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    return {each.target.id: ast.unparse(each.annotation) for each in annotated if isinstance(each.target, ast.Name)}


if __name__ == "__main__":
    main()
