"""Pages of the book about a full reproduction, from stored results."""

from __future__ import annotations

import json
import lzma
import re
import shutil
from pathlib import Path

import pytest
from papers_planted import PLANTED

from anabranch.command.papers import main
from anabranch.experiments.pages.summary import claims_of
from anabranch.experiments.stored import LARGEST_PICTURE_BYTES, load
from anabranch.experiments.verdicts.grades import Verdict

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


@pytest.fixture(scope="module")
def results(made: Path) -> Path:
    file = made / "results.json.xz"
    assert main(["store", str(made), str(file)]) == 0
    return file


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "SUMMARY.md").write_text(SUMMARY)
    return folder


def write(results: Path, book: Path, *more: str) -> int:
    return main(["--data", DATA, "book", str(results), str(book), *more])


def test_summary_page_names_date_version_and_commit(results: Path, made: Path, book: Path) -> None:
    assert write(results, book) == 0
    about = json.loads((made / "run.json").read_text())
    page = (book / "reproduction.md").read_text()
    assert f"on {about['date']} with version {about['version']}" in page
    assert re.search(r"\| planted-paper \|[ \d|]*\| 13 \|", page)


def test_summary_page_counts_all_grades_and_misses_by_chance(results: Path, book: Path) -> None:
    assert write(results, book) == 0
    page = (book / "reproduction.md").read_text()
    grades = " | ".join(verdict.value for verdict in Verdict)
    assert f"| rank | {grades} | all |" in page
    assert f"| paper | {grades} | all |" in page
    assert re.search(r"\d+ of the 13 claims rest on an interval of 95 %", page)


def test_summary_page_has_headline_claims_under_the_standard(results: Path, book: Path) -> None:
    assert write(results, book) == 0
    page = (book / "reproduction.md").read_text()
    assert "| claim | ours | verdict | under RFC 9260 |" in page


def test_page_only_writes_no_chapters(results: Path, book: Path) -> None:
    assert write(results, book, "--page-only") == 0
    assert {file.name for file in book.iterdir()} == {"SUMMARY.md", "reproduction.md"}
    assert (book / "SUMMARY.md").read_text() == SUMMARY


def test_repeated_writing_lists_each_chapter_once(results: Path, book: Path) -> None:
    for _ in range(2):
        assert write(results, book) == 0
    assert (book / "SUMMARY.md").read_text() == SUMMARY.replace(
        "begin -->\n",
        "begin -->\n- [The papers, reproduced](reproduction.md)\n  - [planted-paper](reproduction/planted-paper.md)\n",
    )


def test_chapter_has_the_pictures_of_the_reproduction(results: Path, made: Path, book: Path) -> None:
    assert write(results, book) == 0
    chapter = (book / "reproduction" / "planted-paper.md").read_text()
    assert "![loss, figure](planted-paper-loss-figure.svg)" in chapter
    pictures = sorted((book / "reproduction").glob("*.svg"))
    drawn = [file for file in made.rglob("*.svg") if file.stat().st_size <= LARGEST_PICTURE_BYTES]
    assert len(pictures) == len(drawn) > 1
    for file in drawn:
        name = "-".join(file.relative_to(made).parts)
        assert (book / "reproduction" / name).read_bytes() == file.read_bytes(), name
    assert "| `loss-lower` | S |" in chapter
    assert "Two paths carry more than one." in chapter


def test_stored_results_have_verdicts_and_the_same_bytes_again(results: Path, made: Path, tmp_path: Path) -> None:
    verdicts = {claim["id"]: claim["verdict"] for claim in claims_of(load(results).outcome["studies"])}
    assert len(verdicts) == 13
    assert verdicts["loss-lower"] == "differs"
    assert main(["store", str(made), str(tmp_path / "again.json.xz")]) == 0
    assert (tmp_path / "again.json.xz").read_bytes() == results.read_bytes()


def test_pictures_of_an_earlier_book_are_removed(results: Path, book: Path) -> None:
    (book / "reproduction").mkdir()
    (book / "reproduction" / "gone.svg").write_text("")
    assert write(results, book) == 0
    assert not (book / "reproduction" / "gone.svg").exists()


def test_book_refuses_results_of_a_part(
    made: Path, book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = tmp_path / "quick"
    shutil.copytree(made, quick)
    outcome = json.loads((quick / "verdicts.json").read_text())
    outcome["scope"]["quick"] = True
    (quick / "verdicts.json").write_text(json.dumps(outcome))
    assert main(["store", str(quick), str(tmp_path / "quick.json.xz")]) == 0
    assert write(tmp_path / "quick.json.xz", book) == 2
    assert "is not a full reproduction" in capsys.readouterr().err
    assert not (book / "reproduction.md").exists()


def test_unreadable_results_and_book_without_marks_are_named(
    results: Path, book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", str(tmp_path / "none"), str(tmp_path / "file")]) == 2
    assert "none/verdicts.json: cannot be read" in capsys.readouterr().err
    (tmp_path / "damaged").write_bytes(results.read_bytes()[:-20])
    (tmp_path / "other").write_bytes(lzma.compress(b'{"format": "other"}'))
    for name, said in (("none", "cannot be read"), ("damaged", "cannot be read"), ("other", "has another format")):
        assert write(tmp_path / name, book) == 2
        assert f"{name}: {said}" in capsys.readouterr().err
    (book / "SUMMARY.md").write_text("# Summary\n")
    assert write(results, book) == 2
    assert "has no <!-- reproduction: begin -->" in capsys.readouterr().err
