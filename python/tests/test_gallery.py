"""Gallery: its scripts run, and the book shows their figures."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import matplotlib
import pytest
from book import BOOK, ROOT, run_chapter
from scour.scour import parse_args, scourString

CHAPTER = (BOOK / "gallery.md").read_text(encoding="utf-8")
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
# Options of scour, which keep the version of matplotlib.
OPTIMISED = [
    "--quiet",
    "--enable-id-stripping",
    "--shorten-ids",
    "--enable-comment-stripping",
    "--no-line-breaks",
    "--indent=none",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache of the scripts, of which two share runs."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_draws_the_picture_of_the_book(
    script: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    drawn = tmp_path / f"{script.stem}.svg"
    assert capsys.readouterr().out == f"{drawn.name}\n"
    assert [path.name for path in tmp_path.iterdir()] == [drawn.name]
    shown = BOOK / "gallery" / drawn.name
    made_by = re.search(r"matplotlib (\S+?)<", shown.read_text(encoding="utf-8"))
    assert made_by is not None
    if made_by[1] == matplotlib.__version__:
        again = f"python {script.relative_to(ROOT)} {shown.relative_to(ROOT)}, then scour {' '.join(OPTIMISED)}"
        assert optimised(drawn) == shown.read_text(encoding="utf-8"), f"the book shows another picture: {again}"


def optimised(picture: Path) -> str:
    """Returns a picture as the repository stores it."""
    text: str = scourString(picture.read_text(encoding="utf-8"), parse_args(OPTIMISED))
    return text


def test_there_are_five_short_scripts() -> None:
    assert len(SCRIPTS) == 5
    for script in SCRIPTS:
        assert len(script.read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_chapter_shows_each_picture_with_its_script(script: Path) -> None:
    assert f"](gallery/{script.stem}.svg)" in CHAPTER
    assert f"```python,ignore\n{script.read_text(encoding='utf-8')}```" in CHAPTER


def test_the_book_has_no_other_pictures() -> None:
    assert {path.stem for path in (BOOK / "gallery").iterdir()} == {script.stem for script in SCRIPTS}


def test_the_examples_of_the_chapter_run(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(cache))
    run_chapter("gallery.md", tmp_path, monkeypatch)
    assert (tmp_path / "two.svg").exists()
