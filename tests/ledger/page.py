"""The book's page about the bugs of the ledger, and what is checked of both."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator

import bugs
from bugs import HERE, ROOT, Bug, Ledger, LedgerError

PAGE = ROOT / "docs" / "src" / "bug-ledger.md"
BEGIN = "<!-- ledger: begin -->"
END = "<!-- ledger: end -->"
TREE = "target/by-hand"


def by_hand(bug: Bug) -> list[str]:
    """Shell commands, to be given in the repository's folder, that do what `reproduce.py run` does."""
    lines = [f"git worktree add {TREE} {bug.fixed}^"]
    if bug.take:
        lines.append(shlex.join(["git", "-C", TREE, "checkout", bug.fixed, "--", *bug.take]))
    lines += [shlex.join(["cp", f"tests/ledger/{source}", f"{TREE}/{path}"]) for source, path in bug.place.items()]
    return [*lines, f"(cd {TREE} && {bug.command})", f"git worktree remove --force {TREE}"]


def generated(ledger: Ledger) -> str:
    """What stands between the marks of the page."""
    parts = ["| bug | fixed | found by | reproduced by | verified |", "| --- | --- | --- | --- | --- |"]
    parts += [_row(bug) for bug in ledger.bugs]
    for bug in ledger.bugs:
        parts += ["", f"## {bug.id}", "", *_section(bug)]
    parts += ["", "## Stored cases without a bug", ""]
    parts += [f"* `{case.seed}`: {case.why}" for case in ledger.unfounded]
    return "\n".join(parts)


def _row(bug: Bug) -> str:
    command = "not reproducible" if bug.not_reproducible else f"`make ledger LEDGER={bug.id}`"
    cells = [f"[{bug.title}](#{bug.id})", bug.date, bug.found_by, command, bug.verified or "no"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _section(bug: Bug) -> Iterator[str]:
    where = ", ".join(f"`{path}`" for path in bug.where)
    yield f"**{bug.title}.** {bug.wrong}"
    yield ""
    yield f"* Fixed on {bug.date} by commit {bug.fixed}, in {where}."
    yield f"* Found by {bug.found_by}. Input: {bug.input}."
    yield f"* Test today: {bug.test}."
    if bug.note:
        yield f"* {bug.note}"
    if bug.not_reproducible:
        yield f"* Not reproducible: {bug.not_reproducible}"
        return
    seen = f"Verified on {bug.verified}, at the parent and at the fix." if bug.verified else "Not verified."
    yield f"* The command below fails at the parent of the fix with `{bug.fails_with}`. {seen}"
    if bug.fixed_command:
        yield f"* The case does not compile with the interface of the fix. At the fix runs `{bug.fixed_command}`."
    yield from ("", "```sh", f"make ledger LEDGER={bug.id}", "# or by hand:", *by_hand(bug), "```")


def _divided() -> tuple[str, str, str]:
    """The page before the generated part, that part, and the page after it."""
    try:
        text = PAGE.read_text(encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{PAGE}: {error}") from error
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise LedgerError(f"{PAGE}: the marks {BEGIN} and {END} have to stand there once each, in this order")
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    return before, old.strip("\n"), after


def write(ledger: Ledger) -> None:
    before, _, after = _divided()
    PAGE.write_text(f"{before}{BEGIN}\n{generated(ledger)}\n{END}{after}", encoding="utf-8")


def problems() -> list[str]:
    """What is wrong with the ledger, or stale in the book."""
    try:
        ledger = bugs.read()
        _, written, _ = _divided()
    except LedgerError as error:
        return str(error).splitlines()
    checks = (_problems_of_files, _problems_of_tests, _problems_of_seeds, _problems_of_history)
    found = [problem for check in checks for problem in check(ledger)]
    if written != generated(ledger):
        found.append(f"{PAGE.relative_to(ROOT)}: stale; run `tests/ledger/reproduce.py book`")
    return found


def _problems_of_files(ledger: Ledger) -> Iterator[str]:
    """Everything in `cases` belongs to a bug, and every file that a bug places is there."""
    used = {source for bug in ledger.bugs for source in bug.place}
    kept = {path.relative_to(HERE).as_posix() for path in (HERE / "cases").rglob("*") if path.is_file()}
    yield from (
        f"tests/ledger/{source}: missing, though a bug of bugs.toml places it" for source in sorted(used - kept)
    )
    yield from (f"tests/ledger/{source}: no bug of bugs.toml places it" for source in sorted(kept - used))


def _problems_of_tests(ledger: Ledger) -> Iterator[str]:
    """The test that a bug names is there today: `path::name` in backticks."""
    for bug in ledger.bugs:
        for path, name in re.findall(r"`([\w./-]+)::([\w:]+)`", bug.test):
            file = ROOT / path
            wanted = re.compile(rf"\b(?:fn|def) {re.escape(name.rsplit(':', 1)[-1])}\b")
            if not file.is_file() or not wanted.search(file.read_text(encoding="utf-8")):
                yield f"bugs.toml: {bug.id}: the test {path}::{name} does not exist"
        for path in bug.where:
            if not (ROOT / path).exists():
                yield f"bugs.toml: {bug.id}: {path} does not exist"


def _problems_of_seeds(ledger: Ledger) -> Iterator[str]:
    """Every case that proptest has stored belongs to a bug, or is said to belong to none."""
    told = " ".join([*(bug.input for bug in ledger.bugs), *(case.seed for case in ledger.unfounded)])
    for file in sorted([*ROOT.glob("*/proptest-regressions/*.txt"), *ROOT.glob("crates/*/proptest-regressions/*.txt")]):
        for seed in re.findall(r"^cc ([0-9a-f]{8})", file.read_text(encoding="utf-8"), re.M):
            if seed not in told:
                where = file.relative_to(ROOT)
                yield f"bugs.toml: seed {seed} of {where} belongs to no bug: name it in an `input`, or in `unfounded`"


def _problems_of_history(ledger: Ledger) -> Iterator[str]:
    """The commits are ancestors of what is checked out. Said of whole histories only: a shallow clone has none."""
    if is_shallow():
        return
    known = set((_git("rev-list", "HEAD") or "").split())
    for bug in ledger.bugs:
        if bug.fixed not in known:
            yield f"bugs.toml: {bug.id}: commit {bug.fixed} is not in the history"


def is_shallow() -> bool:
    """Whether the history is not there as a whole, or there is none at all."""
    return _git("rev-parse", "--is-shallow-repository") != "false"


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
