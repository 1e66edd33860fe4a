"""Stored results of studies, and the tables that the book's chapters have of them."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

import pytest
from book import BOOK
from studies.results import MARK, main, parts_of

RESULTS = BOOK.parent / "results"


def test_every_mark_of_the_book_is_replaced_by_its_part(tmp_path: Path) -> None:
    marked = [page for page in BOOK.glob("*.md") if MARK.search(page.read_text(encoding="utf-8"))]
    assert {page.name for page in marked} == {
        *("arena.md", "beside.md", "limit.md"),
        *("recorded-choice.md", "which-scheme.md"),
    }
    for page in marked:
        shutil.copy(page, tmp_path)
    assert main([str(RESULTS), str(tmp_path)]) == 0
    pages = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.iterdir()}
    assert not any(MARK.search(text) for text in pages.values())
    assert "| goal, every point | 88 | 97 |" in pages["limit.md"]
    assert "<summary>collapse: No collapse, 9 settings</summary>" in pages["limit.md"]
    assert "| 32 KiB | unlike | much | `sctp` |" in pages["which-scheme.md"]


def test_results_name_date_version_and_commit() -> None:
    for file in RESULTS.glob("*.json.xz"):
        name = file.name.removesuffix(".json.xz")
        if name != "papers":
            made = parts_of(RESULTS, name)["made"]
            assert made.startswith("Made on 2026-")
            assert "commit `unknown`" not in made


@pytest.mark.parametrize(
    ("mark", "content", "says"),
    [
        ("bounds clases", None, "page.md: unknown results `bounds clases`; choose one of: bounds classes"),
        ("bounds classes", b"no xz", "bounds.json.xz: cannot be read"),
        ("bounds classes", lzma.compress(b'{"format": "other"}'), "bounds.json.xz: has another format"),
        ("bounds classes", lzma.compress(b'{"format": "anabranch study 1"}'), "bounds.json.xz: has other content"),
    ],
)
def test_unknown_part_or_damaged_results_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mark: str, content: bytes | None, says: str
) -> None:
    results, folder = tmp_path / "results", tmp_path / "pages"
    results.mkdir()
    folder.mkdir()
    shutil.copy(RESULTS / "bounds.json.xz", results)
    if content is not None:
        (results / "bounds.json.xz").write_bytes(content)
    page = folder / "page.md"
    page.write_text(f"a\n<!-- results: {mark} -->\nz\n")
    assert main([str(results), str(folder)]) == 1
    assert says in capsys.readouterr().err
    assert "<!-- results" in page.read_text()
