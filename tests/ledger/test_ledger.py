"""Tests of the checks on the bug ledger."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ledger
from ledger import LedgerError

BOOK = ledger.ROOT / "docs" / "src"

ENTRY = """
[[bug]]
wrong = "A sum was too small."
found_by = "random interaction test"
fix = "0000000000000000000000000000000000000000"
test = "tests/ledger/test_ledger.py::test_missing_test_is_reported"
"""


@pytest.mark.parametrize("test", ["tests/ledger/no_such_file.py::x", "tests/ledger/ledger.py::no_such", "README.md"])
def test_missing_test_is_reported(test: str) -> None:
    bug = replace(ledger.read()[0], test=test)
    assert f"bugs.toml: the test {test} does not exist" in ledger.problems([bug])


@pytest.mark.skipif(not ledger.commits(), reason="needs the whole history")
def test_unknown_commit_is_reported() -> None:
    bug = replace(ledger.read()[0], fix="f" * 40)
    assert f"bugs.toml: commit {'f' * 40} is not in the history" in ledger.problems([bug])


def test_table_replaces_text_between_the_marks_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "bug-ledger.md"
    page.write_text((BOOK / page.name).read_text(encoding="utf-8"), encoding="utf-8")
    bugs = ledger.read()
    ledger.write(bugs, tmp_path)
    written = page.read_text(encoding="utf-8")
    assert all(bug.wrong in written and bug.test in written for bug in bugs)
    ledger.write(bugs, tmp_path)
    assert page.read_text(encoding="utf-8") == written


def test_page_without_marks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bug-ledger.md").write_text("# Bug ledger\n", encoding="utf-8")
    with pytest.raises(LedgerError, match="marks"):
        ledger.write(ledger.read(), tmp_path)


@pytest.mark.parametrize(
    "text", [ENTRY.replace("wrong", "title"), ENTRY + 'note = "x"\n', ENTRY.replace('"A sum was too small."', "1")]
)
def test_entry_with_other_keys_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bugs.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(LedgerError, match="entry 1: its keys are wrong, found_by, fix, test"):
        ledger.read(file)


def test_unreadable_ledger_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bugs.toml"
    file.write_text("[[bug]", encoding="utf-8")
    with pytest.raises(LedgerError, match=r"bugs\.toml"):
        ledger.read(file)
