"""Checks the bug ledger `bugs.toml`, and generates its table in the book.

tests/ledger/ledger.py check           prints problems of the ledger and exits with 1 if there are any
tests/ledger/ledger.py write FOLDER    writes the table into FOLDER/bug-ledger.md, a copy of the book's page
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent.parent
BUGS = ROOT / "tests" / "ledger" / "bugs.toml"
PAGE = "bug-ledger.md"
BEGIN = "<!-- ledger: begin -->"
END = "<!-- ledger: end -->"
KEYS = ("wrong", "found_by", "fix", "test")


class LedgerError(Exception):
    """The ledger or its page cannot be read; the text names the file and the reason."""


@dataclass(frozen=True)
class Bug:
    """One entry of the ledger; the head of `bugs.toml` explains its keys."""

    wrong: str
    found_by: str
    fix: str
    test: str


def read(path: Path = BUGS) -> list[Bug]:
    """Returns the entries of a ledger file. Raises `LedgerError` if an entry has other keys than `KEYS`."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("bug", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LedgerError(f"{path}: {error}") from error
    for number, entry in enumerate(entries, 1):
        if set(entry) != set(KEYS) or not all(isinstance(value, str) and value for value in entry.values()):
            raise LedgerError(f"{path.name}: entry {number}: its keys are {', '.join(KEYS)}, each a text")
    return [Bug(**entry) for entry in entries]


def table(bugs: list[Bug]) -> str:
    """Returns the table of the page."""
    rows = [f"| {bug.wrong} | {bug.found_by} | `{bug.fix[:8]}` | `{bug.test}` |" for bug in bugs]
    return "\n".join(["| what was wrong | found by | fix | regression test |", "| --- | --- | --- | --- |", *rows])


def write(bugs: list[Bug], folder: Path) -> None:
    """Writes the table between the marks of the page in the folder. Raises `LedgerError` if the page has no marks."""
    page = folder / PAGE
    try:
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        _, after = rest.split(END)
    except (OSError, ValueError) as error:
        raise LedgerError(f"{page}: the marks {BEGIN} and {END} are expected once each, in this order") from error
    page.write_text(f"{before}{BEGIN}\n{table(bugs)}\n{END}{after}", encoding="utf-8")


def problems(bugs: list[Bug]) -> list[str]:
    """Returns the complaints about entries."""
    known = commits()
    found = [f"bugs.toml: the test {bug.test} does not exist" for bug in bugs if not test_exists(bug.test)]
    found += [f"bugs.toml: commit {bug.fix} is not in the history" for bug in bugs if known and bug.fix not in known]
    return found


def test_exists(test: str) -> bool:
    """Returns `True` if the file of `path::name` defines a function of that name."""
    path, _, name = test.partition("::")
    file = ROOT / path
    wanted = re.compile(rf"\b(?:fn|def) {re.escape(name)}\b")
    return bool(name) and file.is_file() and bool(wanted.search(file.read_text(encoding="utf-8")))


@functools.cache
def commits() -> set[str]:
    """Returns the hashes of the history, or none if the clone is shallow or there is no repository."""
    try:
        if git("rev-parse", "--is-shallow-repository") != "false":
            return set()
        return set(git("rev-list", "HEAD").split())
    except (OSError, subprocess.CalledProcessError):
        return set()


def git(*arguments: str) -> str:
    """Returns the output of a command of git in the repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: list[str]) -> int:
    """Runs the command and returns its exit status."""
    try:
        match arguments:
            case ["check"]:
                complaints = problems(read())
                print("\n".join(complaints) or "bug ledger: every fix and regression test exists")
                return 1 if complaints else 0
            case ["write", folder]:
                write(read(), Path(folder))
                return 0
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
