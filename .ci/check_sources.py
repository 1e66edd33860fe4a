"""Source checks that neither rustfmt nor clippy makes. Prints the problems and exits with status 1 if there are any.

Each clippy.toml has the limits of the whole workspace, no file and no name of a function is too long, every file of
tests belongs to a binary, dependencies of crates and of their modules point one way, and the book has a page for every
scheme and component, and names every event, field of a profile and key of a scenario file.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_cycles import import_cycles
from rust_source import without_test_files

ROOT = Path(__file__).resolve().parent.parent
# Crates whose runs must depend only on configuration, entropy and the sequence of calls.
DETERMINISTIC = ["wire", "core", "schemes", "sim"]
# Lines of a function, for clippy's `too_many_lines`; ruff limits functions in Python by their statements.
LONGEST_FUNCTION = "too-many-lines-threshold = 80"
# Lines of a source file; in Rust, those above its first test module.
LONGEST_FILE = {"rs": 800, "py": 500}
# Characters of the name of a function, which states condition and result of a test.
LONGEST_NAME = 70
# fmt: off
# Crates that each crate must not depend on, so that dependencies point one way.
LAYERS = {
    "wire": {"core", "dtls", "keying", "schemes", "sim", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "core": {"dtls", "keying", "schemes", "sim", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "mapping": {"dtls", "keying", "schemes", "sim", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "dtls": {"keying", "schemes", "sim", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "keying": {"schemes", "sim", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "identity": {"keylog", "schemes", "sim", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "keylog": {"identity", "schemes", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "schemes": {"dtls", "keying", "sim", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "sim": {"dtls", "keying", "identity", "keylog", "scenario", "trace", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "trace": {"dtls", "keying", "schemes", "identity", "keylog", "scenario", "lab", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "scenario": {"dtls", "keying", "identity", "keylog", "lab", "trace", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "lab": {"identity", "keylog", "net", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "net": {"identity", "keylog", "sim", "scenario", "lab", "trace", "relay", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "relay": {"identity", "keylog", "wire", "schemes", "scenario", "lab", "trace", "net", "rendezvous", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "rendezvous": {"keylog", "schemes", "sim", "scenario", "trace", "lab", "net", "relay", "transfer", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "transfer": {"wire", "core", "schemes", "sim", "scenario", "lab", "trace", "relay", "rendezvous", "forward", "datachannel", "tun", "observe", "cli", "python", "wheel"},
    "forward": {"wire", "core", "schemes", "sim", "scenario", "lab", "trace", "relay", "rendezvous", "transfer", "tun", "observe", "cli", "python", "wheel"},
    "tun": {"wire", "core", "schemes", "sim", "scenario", "lab", "trace", "relay", "rendezvous", "transfer", "observe", "cli", "python", "wheel"},
    "datachannel": {"dtls", "keying", "schemes", "sim", "identity", "keylog", "scenario", "lab", "trace", "net", "relay", "rendezvous", "transfer", "forward", "tun", "observe", "cli", "python", "wheel"},
    "observe": {"lab", "relay", "rendezvous", "transfer", "forward", "tun", "cli", "python", "wheel"},
    "cli": {"python", "wheel"},
    "python": {"cli", "relay", "rendezvous", "observe", "transfer", "forward", "tun", "wheel"},
}
# fmt: on
# Wall clocks, sockets and the system's randomness come in here and nowhere below.
REAL_WORLD = {"net", "relay", "transfer", "forward", "tun", "observe", "cli", "python", "wheel"}
REAL_WORLD_PACKAGES = ("tokio", "quinn-udp", "socket2", "getrandom")


def clippy_files():
    """Checks that every clippy.toml repeats the limits of the workspace, because clippy reads the nearest file only."""
    for file in sorted([ROOT / "clippy.toml", *ROOT.glob("crates/*/clippy.toml")]):
        if LONGEST_FUNCTION not in file.read_text(encoding="utf-8").splitlines():
            yield f"{file.relative_to(ROOT)}: the line `{LONGEST_FUNCTION}` is missing"
    first = ROOT / "crates" / DETERMINISTIC[0] / "clippy.toml"
    for crate in DETERMINISTIC[1:]:
        other = ROOT / "crates" / crate / "clippy.toml"
        if other.read_bytes() != first.read_bytes():
            yield f"{other.relative_to(ROOT)} differs from {first.relative_to(ROOT)}"


def read_sources():
    """Returns the text of each source by its name."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *(f"*.{kind}" for kind in LONGEST_FILE)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names}


def without_tests(sources):
    """Returns the sources that belong to no tests, benchmarks and examples."""
    others = {"tests", "benches", "fuzz", "examples"}
    return {name: text for name, text in sources.items() if not others & set(Path(name).parts)}


def long_names(sources):
    """Yields functions with names of more than `LONGEST_NAME` characters."""
    for name, text in sources.items():
        for found in re.findall(rf"\b(?:fn|def) (\w{{{LONGEST_NAME + 1},}})", text):
            yield f"{name}: {found}: {len(found)} characters, more than {LONGEST_NAME}: shorten the name"


def long_files(sources):
    for name, text in sources.items():
        lines = text.splitlines()
        ends = [at for at, line in enumerate(lines) if line.startswith("#[cfg(test)]")]
        length = ends[0] if ends else len(lines)
        longest = LONGEST_FILE[name.rpartition(".")[2]]
        if length > longest:
            yield f"{name}: {length} lines without tests, more than {longest}: divide it"


def structure(sources):
    yield from long_files(sources)
    sources = without_test_files(sources)
    yield from import_cycles(sources)


def unused_tests():
    """Finds files of integration tests that no binary contains, where the manifest lists the binaries."""
    for manifest in sorted([*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("tests/**/Cargo.toml")]):
        text, folder = manifest.read_text(encoding="utf-8"), manifest.parent / "tests"
        if "autotests = false" not in text:
            continue
        roots = {folder / f"{name}.rs" for name in re.findall(r'(?m)^\[\[test\]\]\nname = "(\w+)"$(?!\npath)', text)}
        roots |= {manifest.parent / path for path in re.findall(r'(?m)^path = "(tests/.*)"$', text)}
        modules = {name for root in roots for name in re.findall(r"(?m)^mod (\w+);", root.read_text(encoding="utf-8"))}
        for file in sorted([*folder.glob("*.rs"), *folder.glob("*/mod.rs")]):
            name = file.parent.name if file.name == "mod.rs" else file.stem
            if file not in roots and name not in modules:
                yield f"{file.relative_to(ROOT)}: no binary contains it; declare the module in {folder.name}/main.rs"


def dependencies():
    for crate, forbidden in LAYERS.items():
        manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8")
        section = ""
        for line in manifest.splitlines():
            if line.startswith("["):
                section = line.strip("[] ")
            for other in forbidden:
                if section == "dependencies" and line.startswith(f"anabranch-{other}"):
                    yield f"crates/{crate}/Cargo.toml: {crate} must not depend on {other}"
            name = re.match(r"[\w-]*", line).group()
            if crate not in REAL_WORLD and section == "dependencies" and name in REAL_WORLD_PACKAGES:
                yield f"crates/{crate}/Cargo.toml: {name} belongs to {' and '.join(sorted(REAL_WORLD))} only"


def documented(source, pattern, page, what):
    """Yields names that a source defines and that are not in backticks on its page of the book."""
    text = (ROOT / "docs" / "src" / page).read_text(encoding="utf-8")
    for name in re.findall(pattern, source):
        if not re.search(rf"`{re.escape(name)}`", text):
            yield f"docs/src/{page}: {what} `{name}` is missing"


def book():
    profile = (ROOT / "crates/core/src/profile.rs").read_text(encoding="utf-8")
    fields = profile.split("pub struct Profile {")[1].split("\n}")[0]
    yield from documented(fields, r"pub (\w+):", "profiles.md", "field")
    keys = (ROOT / "crates/scenario/tests/scenario/every-key.toml").read_text(encoding="utf-8")
    yield from documented(keys, r"(?m)^(\w+) =", "scenarios.md", "key")
    events = (ROOT / "crates/core/src/policy/event.rs").read_text(encoding="utf-8")
    names = events.split("pub enum Event<'a> {")[1]
    yield from documented(names, r"(?m)^    ([A-Z]\w+)\b", "policies.md", "event")


def main():
    sources = read_sources()
    code = structure(without_tests(sources))
    problems = [*clippy_files(), *long_names(sources), *code, *unused_tests(), *dependencies(), *book()]
    for problem in problems:
        print(problem)
    print(f"sources: {len(problems)} problems" if problems else "sources: nothing wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
