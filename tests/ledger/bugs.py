"""The bugs of `bugs.toml`: reading the file, and finding what is wrong with it."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

try:
    import tomllib
except ModuleNotFoundError:
    try:
        import tomli as tomllib
    except ModuleNotFoundError:
        sys.exit("the bug ledger needs Python 3.11, or `pip install tomli` for an older one")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUGS = HERE / "bugs.toml"

REQUIRED = ("id", "title", "fixed", "date", "where", "wrong", "found_by", "input", "test")
REPRODUCTION = ("take", "place", "command", "fails_with", "fixed_command", "verified")
OPTIONAL = (*REPRODUCTION, "note", "not_reproducible")


class LedgerError(Exception):
    """Something is wrong with the ledger, or a reproduction did not do what the ledger says."""


@dataclass(frozen=True)
class Bug:
    """One bug. What its fields mean is said at the top of `bugs.toml`."""

    id: str
    title: str
    fixed: str
    date: str
    where: list[str]
    wrong: str
    found_by: str
    input: str
    test: str
    take: list[str] = field(default_factory=list)
    place: dict[str, str] = field(default_factory=dict)
    command: str = ""
    fails_with: str = ""
    fixed_command: str = ""
    verified: str = ""
    note: str = ""
    not_reproducible: str = ""

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.command)

    @property
    def fixed_arguments(self) -> list[str]:
        """What runs at the fix."""
        return shlex.split(self.fixed_command or self.command)


@dataclass(frozen=True)
class Unfounded:
    """A stored random case without a bug of the product behind it."""

    seed: str
    why: str


@dataclass(frozen=True)
class Ledger:
    bugs: list[Bug]
    unfounded: list[Unfounded]

    def bug(self, name: str) -> Bug:
        for bug in self.bugs:
            if bug.id == name:
                return bug
        raise LedgerError(f"no bug has the id {name!r}; `tests/ledger/reproduce.py list` prints all ids")


def read(path: Path = BUGS) -> Ledger:
    """The ledger in a file. Raises `LedgerError` with everything that is wrong with its shape."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LedgerError(f"{path}: {error}") from error
    problems = [f"{path.name}: unknown table `{name}`" for name in sorted(set(data) - {"bug", "unfounded"})]
    entries = data.get("bug", [])
    for number, entry in enumerate(entries, 1):
        name = entry.get("id", f"entry {number}")
        problems += [f"{path.name}: {name}: {problem}" for problem in _problems_of_entry(entry)]
    ids = [entry.get("id") for entry in entries]
    problems += [
        f"{path.name}: the id {name!r} is given twice" for name in sorted({i for i in ids if i and ids.count(i) > 1})
    ]
    unfounded = data.get("unfounded", [])
    problems += [
        f"{path.name}: `unfounded` {number}: the keys are `seed` and `why`"
        for number, entry in enumerate(unfounded, 1)
        if set(entry) != {"seed", "why"}
    ]
    if problems:
        raise LedgerError("\n".join(problems))
    return Ledger([Bug(**entry) for entry in entries], [Unfounded(**entry) for entry in unfounded])


def _problems_of_entry(entry: dict[str, object]) -> list[str]:
    problems = [f"the key `{key}` is missing" for key in REQUIRED if not entry.get(key)]
    problems += [f"unknown key `{key}`" for key in sorted(set(entry) - {*REQUIRED, *OPTIONAL})]
    if problems:
        return problems
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(entry["id"])):
        problems.append("an id has lower-case letters, digits and single hyphens")
    if not re.fullmatch(r"[0-9a-f]{40}", str(entry["fixed"])):
        problems.append("`fixed` is the full hash of a commit, 40 digits")
    problems += [
        f"`{key}` is a date such as 2026-11-22"
        for key in ("date", "verified")
        if entry.get(key) and not re.fullmatch(r"\d{4}-\d\d-\d\d", str(entry[key]))
    ]
    if entry.get("not_reproducible"):
        given = [key for key in REPRODUCTION if entry.get(key)]
        return problems + [f"`{key}` makes no sense beside `not_reproducible`" for key in given]
    problems += [f"the key `{key}` is missing" for key in ("command", "fails_with") if not entry.get(key)]
    placed = entry.get("place", {})
    taken = [*entry.get("take", []), *(placed.values() if isinstance(placed, dict) else [])]  # type: ignore[misc]
    problems += [f"`{path}` is not a path of tests" for path in taken if not is_of_tests(str(path))]
    if not taken:
        problems.append("`take` or `place` has to say which tests go onto the parent of the fix")
    return problems


def is_of_tests(path: str) -> bool:
    """Whether a path holds tests and nothing that users run, so that taking it from a fix cannot take the fix."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        return False
    # New tests may need packages, which a lock file names.
    named = pure.name in ("tests.rs", "Cargo.lock")
    return named or bool({"tests", "proptest-regressions"} & set(pure.parts))


def record(path: Path, name: str, day: str) -> None:
    """Writes the day into the entry of a bug on which its command failed before the fix and passed with it."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next((n for n, line in enumerate(lines) if line.rstrip() == f'id = "{name}"'), None)
    if at is None:
        raise LedgerError(
            f'{path}: there is no line `id = "{name}"`; write `verified = "{day}"` into the entry yourself'
        )
    end = next((n for n in range(at, len(lines)) if lines[n].startswith("[[")), len(lines))
    while lines[end - 1].strip() == "":
        end -= 1
    verified = f'verified = "{day}"\n'
    for number in range(at, end):
        if lines[number].startswith("verified ="):
            lines[number] = verified
            break
    else:
        lines.insert(end, verified)
    path.write_text("".join(lines), encoding="utf-8")
