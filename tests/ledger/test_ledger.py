"""The ledger's own tools, tried on a repository of two commits: a bug and its fix."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bugs
import page
import reproduce
import scratch
from bugs import Bug, LedgerError
from scratch import Limits, Scratch

PROGRAM = "product.py"
TEST = "tests/test_product.py"
CHECKS = "import sys\nsys.path.insert(0, '.')\nfrom product import SUM\nassert SUM == 4, f'{SUM} is not 4'\n"

ENTRY = f"""
[[bug]]
id = "sum-too-small"
title = "A sum was too small"
fixed = "{"0" * 40}"
date = "2026-11-22"
where = ["Makefile"]
wrong = "One was added instead of two."
found_by = "a random test"
input = "seed 1"
test = "`tests/ledger/test_ledger.py::git`"
take = ["{TEST}"]
command = "python3 {TEST}"
fails_with = "3 is not 4"
"""


def git(folder: Path, *arguments: str) -> str:
    options = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *options, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "A change")
    return git(folder, "rev-parse", "HEAD")


def state(folder: Path) -> list[str]:
    """What a reproduction must not change."""
    return [git(folder, *arguments.split()) for arguments in ("status --porcelain", "rev-parse HEAD", "worktree list")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    commit(tmp_path, {PROGRAM: "SUM = 3\n", ".gitignore": "/target\n"})
    commit(tmp_path, {PROGRAM: "SUM = 4\n", TEST: CHECKS})
    return tmp_path


@pytest.fixture
def bug(root: Path) -> Bug:
    return Bug(
        id="sum-too-small",
        title="A sum was too small",
        fixed=git(root, "rev-parse", "HEAD"),
        date="2026-11-22",
        where=[PROGRAM],
        wrong="One was added instead of two.",
        found_by="a random test",
        input="seed 1",
        test="none",
        take=[TEST],
        command=f"{sys.executable} -B {TEST}",
        fails_with="3 is not 4",
    )


def at_parent(root: Path, bug: Bug, limits: Limits | None = None) -> None:
    with Scratch(root, limits or Limits()) as clone:
        clone.fails_at_parent(bug)


def at_fix(root: Path, bug: Bug) -> None:
    with Scratch(root, Limits()) as clone:
        clone.passes_at_fix(bug)


def test_a_bug_fails_at_the_parent_and_passes_at_the_fix(root: Path, bug: Bug) -> None:
    with Scratch(root, Limits()) as clone:
        clone.fails_at_parent(bug)
        clone.passes_at_fix(bug)


def test_only_the_tests_of_the_fix_are_taken(root: Path, bug: Bug) -> None:
    with Scratch(root, Limits()) as clone:
        clone.fails_at_parent(bug)
        assert (clone.tree / PROGRAM).read_text() == "SUM = 3\n"
        assert (clone.tree / TEST).exists()


def test_nothing_of_one_reproduction_is_left_for_the_next(root: Path, bug: Bug) -> None:
    with Scratch(root, Limits()) as clone:
        clone.fails_at_parent(bug)
        with pytest.raises(LedgerError, match="without '3 is not 4'"):
            clone.fails_at_parent(replace(bug, take=[]))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", "passes at the parent"),
        ("""python3 -c 'import sys; sys.exit("another reason")'""", "(?s)without '3 is not 4'.*another reason"),
        ("no-such-program", "`no-such-program` cannot be started"),
    ],
)
def test_another_outcome_at_the_parent_reproduces_nothing(root: Path, bug: Bug, command: str, expected: str) -> None:
    with pytest.raises(LedgerError, match=expected):
        at_parent(root, replace(bug, command=command))


def test_a_command_that_fails_at_the_fix_is_told_of(root: Path, bug: Bug) -> None:
    with pytest.raises(LedgerError, match="fails at the fix"):
        at_fix(root, replace(bug, command="false"))


def test_a_command_of_the_fix_runs_there_without_what_was_placed(
    root: Path, bug: Bug, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path_factory.mktemp("ledger")
    (ledger / "old.py").write_text("raise SystemExit('only for the old interface')\n")
    monkeypatch.setattr(scratch, "HERE", ledger)
    bug = replace(bug, take=[], place={"old.py": TEST}, fails_with="only for the old interface")
    at_parent(root, bug)
    with pytest.raises(LedgerError, match="fails at the fix"):
        at_fix(root, bug)
    at_fix(root, replace(bug, command="false", fixed_command=bug.command))


def test_a_command_of_the_fix_that_fits_no_test_is_no_pass(
    root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = stand_in_for_cargo(root, bug, monkeypatch, "echo 'test result: ok. 0 passed; 0 failed'")
    with pytest.raises(LedgerError, match="no test ran"):
        at_fix(root, replace(bug, command="false", fixed_command="cargo test"))


def stand_in_for_cargo(root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch, script: str) -> Bug:
    """The bug with `cargo test` as its command, where cargo is this script."""
    cargo = root / "target" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text(f"#!/bin/sh\n{script}\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}:/usr/bin:/bin")
    return replace(bug, command="cargo test")


def test_a_filter_that_fits_no_test_is_no_pass(root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = stand_in_for_cargo(root, bug, monkeypatch, "echo 'test result: ok. 0 passed; 0 failed'")
    with pytest.raises(LedgerError, match="no test ran"):
        at_fix(root, bug)


def test_what_does_not_compile_reproduces_nothing(root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = stand_in_for_cargo(root, bug, monkeypatch, "echo 'error: assert 3 is not 4'; exit 101")
    with pytest.raises(LedgerError, match="no test failed"):
        at_parent(root, bug)


def test_a_command_is_ended_with_all_that_it_started_when_its_time_is_over(root: Path, bug: Bug) -> None:
    left = root / "target" / "left"
    command = f"sh -c 'while sleep 0.1; do date > {left}; done & wait'"
    with pytest.raises(LedgerError, match=r"ended after 1 s \(--timeout\)"):
        at_parent(root, replace(bug, command=command), Limits(seconds=1))
    left.unlink(missing_ok=True)
    time.sleep(0.6)
    assert not left.exists()


def test_a_command_that_prints_without_end_is_ended(root: Path, bug: Bug) -> None:
    with pytest.raises(LedgerError, match="printed 1000 bytes"):
        at_parent(root, replace(bug, command="yes"), Limits(log_bytes=1000))


def test_an_unknown_commit_says_how_to_get_the_history(root: Path, bug: Bug) -> None:
    with pytest.raises(LedgerError, match="git fetch --unshallow"):
        at_parent(root, replace(bug, fixed="f" * 40))


def test_the_checkout_is_left_as_it_was(root: Path, bug: Bug) -> None:
    (root / PROGRAM).write_text("SUM = 5\n")
    before = state(root)
    at_parent(root, bug)
    assert state(root) == before
    assert (root / PROGRAM).read_text() == "SUM = 5\n"
    assert not (root / "target" / "ledger" / "tree").exists()


def test_variables_of_a_git_hook_do_not_lead_to_the_checkout(
    root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("GIT_DIR", str(root / ".git"))
        patched.setenv("GIT_WORK_TREE", str(root))
        at_parent(root, bug)
    assert git(root, "status", "--porcelain") == ""


def test_cargo_builds_apart_from_the_checkout(root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(root / "target"))
    command = """sh -c 'echo "built in $CARGO_TARGET_DIR"; false'"""
    at_parent(root, replace(bug, command=command, fails_with=f"built in {root / 'target' / 'ledger' / 'build'}"))


def test_variables_that_change_which_cases_are_drawn_are_left_out(
    root: Path, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_CASES", "7")
    monkeypatch.setenv("PROPTEST_CASES", "7")
    command = """sh -c 'echo "cases: $ANABRANCH_CASES$PROPTEST_CASES."; false'"""
    at_parent(root, replace(bug, command=command, fails_with="cases: ."))


def test_two_reproductions_at_once_do_not_share_a_clone(root: Path) -> None:
    with Scratch(root, Limits()), pytest.raises(LedgerError, match="another reproduction"), Scratch(root, Limits()):
        pass


def test_files_of_the_ledger_are_placed_over_those_of_the_parent(
    root: Path, bug: Bug, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path_factory.mktemp("ledger")
    (ledger / "cases").mkdir()
    (ledger / "cases" / "sum.py").write_text("raise SystemExit('placed')\n")
    monkeypatch.setattr(scratch, "HERE", ledger)
    at_parent(root, replace(bug, take=[], place={"cases/sum.py": TEST}, fails_with="placed"))


def read(folder: Path, text: str) -> bugs.Ledger:
    file = folder / "bugs.toml"
    file.write_text(text, encoding="utf-8")
    return bugs.read(file)


def test_an_entry_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, ENTRY).bugs[0].arguments == ["python3", TEST]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENTRY.replace('title = "A sum was too small"\n', ""), "sum-too-small: the key `title` is missing"),
        (ENTRY + 'cause = "x"\n', "unknown key `cause`"),
        (ENTRY.replace("0" * 40, "0" * 12), "full hash"),
        (ENTRY.replace("2026-11-22", "today"), "`date` is a date"),
        (ENTRY.replace(TEST, PROGRAM), "`product.py` is not a path of tests"),
        (ENTRY.replace(f'["{TEST}"]', '["../tests/x"]'), "is not a path of tests"),
        (ENTRY.replace('fails_with = "3 is not 4"\n', ""), "the key `fails_with` is missing"),
        (
            ENTRY.replace("take =", "not_reproducible = 'x'\nfixed_command = 'true'\ntake ="),
            "`fixed_command` makes no sense",
        ),
        (ENTRY + 'not_reproducible = "because"\n', "`command` makes no sense"),
        (ENTRY.replace("sum-too-small", "Sum!"), "an id has lower-case letters"),
        (ENTRY + ENTRY, "given twice"),
        ("[[bugs]]\n", "unknown table `bugs`"),
        ('[[unfounded]]\nseed = "1"\n', "`unfounded` 1: the keys are `seed` and `why`"),
        ("[[bug]", "bugs.toml"),
    ],
)
def test_what_is_wrong_with_an_entry_is_named(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(LedgerError, match=re.escape(expected)):
        read(tmp_path, text)


def test_the_day_of_a_verification_is_written_into_its_entry_alone(tmp_path: Path) -> None:
    file = tmp_path / "bugs.toml"
    read(tmp_path, ENTRY + ENTRY.replace("sum-too-small", "sum-too-large"))
    bugs.record(file, "sum-too-small", "2026-11-23")
    bugs.record(file, "sum-too-small", "2026-11-24")
    assert [bug.verified for bug in bugs.read(file).bugs] == ["2026-11-24", ""]


def test_every_bug_has_a_row_and_a_command_on_the_page() -> None:
    ledger = bugs.read()
    text = page.generated(ledger)
    for bug in ledger.bugs:
        assert f"(#{bug.id})" in text
        assert f"## {bug.id}\n" in text
        assert bug.not_reproducible or f"\nmake ledger LEDGER={bug.id}\n" in text


def test_a_stale_page_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = bugs.read()
    changed = replace(ledger, bugs=[replace(ledger.bugs[0], title="Another title"), *ledger.bugs[1:]])
    monkeypatch.setattr(bugs, "read", lambda: changed)
    assert any("stale" in problem for problem in page.problems())


def test_tests_that_are_gone_and_unknown_commits_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = bugs.read()
    gone = replace(ledger.bugs[0], test="`tests/tests/interaction.rs::no_such_test`", fixed="f" * 40)
    monkeypatch.setattr(bugs, "read", lambda: replace(ledger, bugs=[gone]))
    problems = "\n".join(page.problems())
    assert "no_such_test does not exist" in problems
    assert page.is_shallow() or "is not in the history" in problems


def test_a_stored_case_that_nobody_explains_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = bugs.read()
    monkeypatch.setattr(bugs, "read", lambda: replace(ledger, unfounded=[]))
    assert any("seed 29c87d84 of tests/proptest-regressions/interaction.txt" in line for line in page.problems())


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *arguments])
    return reproduce.main()


def test_list_names_every_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "list") == 0
    text = capsys.readouterr().out
    assert all(bug.id in text for bug in bugs.read().bugs)


@pytest.mark.parametrize("arguments", ["run", "run --all x", "run --record x", "run x", "show x"])
def test_a_wrong_call_says_what_to_do(
    arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *arguments.split()) == 2
    assert re.search(r"reproduce\.py list|--record needs --fixed", capsys.readouterr().err)


def test_show_prints_commands_for_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bug = next(bug for bug in bugs.read().bugs if not bug.not_reproducible)
    assert call(monkeypatch, "show", bug.id) == 0
    assert f"git worktree add {page.TREE} {bug.fixed}^" in capsys.readouterr().out
