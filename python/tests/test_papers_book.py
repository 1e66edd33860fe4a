"""The book's pages of a full reproduction."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from papers_planted import PLANTED

from anabranch.command.papers import main
from anabranch.papers.verdicts.grades import Verdict

DATA = str(PLANTED.parent)
SUMMARY = """# Summary

- [Before](before.md)
<!-- reproduction: begin -->
<!-- reproduction: end -->
- [After](after.md)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    arguments = ["--data", DATA, "reproduce", "all", "--out", str(folder), "--no-cache"]
    assert main(arguments) == 0
    return folder


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "SUMMARY.md").write_text(SUMMARY)
    return folder


def test_the_page_says_by_what_and_when_it_was_made(made: Path, book: Path) -> None:
    assert main(["book", str(made), str(book)]) == 0
    about = json.loads((made / "run.json").read_text())
    page = (book / "reproduction.md").read_text()
    assert f"on {about['date']} with version {about['version']}" in page
    assert re.search(r"\| \[planted-paper\]\(reproduction/planted-paper\.md\) \|[ \d|]*\| 13 \|", page)


def test_the_page_counts_in_all_grades_and_says_how_many_intervals_miss_by_chance(made: Path, book: Path) -> None:
    assert main(["book", str(made), str(book)]) == 0
    page = (book / "reproduction.md").read_text()
    grades = " | ".join(verdict.value for verdict in Verdict)
    assert f"| rank | {grades} | all |" in page
    assert f"| paper | {grades} | all |" in page
    assert re.search(r"\d+ of the 13 claims rest on an interval of 95 %", page)


def test_the_page_has_headline_claims_under_the_standard(made: Path, book: Path) -> None:
    assert main(["book", str(made), str(book)]) == 0
    page = (book / "reproduction.md").read_text()
    assert "| claim | paper | ours | verdict | under RFC 9260 |" in page


def test_chapters_are_listed_in_the_summary_each_time_anew(made: Path, book: Path) -> None:
    for _ in range(2):
        assert main(["book", str(made), str(book)]) == 0
    assert (book / "SUMMARY.md").read_text() == SUMMARY.replace(
        "begin -->\n",
        "begin -->\n- [The papers, reproduced](reproduction.md)\n  - [planted-paper](reproduction/planted-paper.md)\n",
    )


def test_a_chapter_has_the_pictures_that_go_into_the_book(made: Path, book: Path) -> None:
    assert main(["book", str(made), str(book)]) == 0
    chapter = (book / "reproduction" / "planted-paper.md").read_text()
    assert "![loss, figure](planted-paper-loss-figure.svg)" in chapter
    assert (book / "reproduction" / "planted-paper-loss-figure.svg").is_file()
    assert "| `loss-lower` | S |" in chapter
    assert "Two paths carry more than one." in chapter


def test_verdicts_are_stored_for_the_tests(made: Path, book: Path) -> None:
    assert main(["book", str(made), str(book)]) == 0
    stored = json.loads((book / "reproduction" / "verdicts.json").read_text())
    assert len(stored) == 13
    assert stored["loss-lower"] == "differs"


def test_what_was_left_of_an_earlier_book_goes(made: Path, book: Path) -> None:
    (book / "reproduction").mkdir()
    (book / "reproduction" / "gone.svg").write_text("")
    assert main(["book", str(made), str(book)]) == 0
    assert not (book / "reproduction" / "gone.svg").exists()


def test_only_a_full_reproduction_goes_into_the_book(
    made: Path, book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = tmp_path / "quick"
    shutil.copytree(made, quick)
    outcome = json.loads((quick / "verdicts.json").read_text())
    outcome["scope"]["quick"] = True
    (quick / "verdicts.json").write_text(json.dumps(outcome))
    assert main(["book", str(quick), str(book)]) == 2
    assert "is not a full reproduction" in capsys.readouterr().err
    assert not (book / "reproduction.md").exists()


def test_a_folder_or_book_that_is_none_is_named(
    made: Path, book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["book", str(tmp_path / "none"), str(book)]) == 2
    assert "none/verdicts.json: cannot be read" in capsys.readouterr().err
    (book / "SUMMARY.md").write_text("# Summary\n")
    assert main(["book", str(made), str(book)]) == 2
    assert "has no <!-- reproduction: begin -->" in capsys.readouterr().err
