"""Examples of the chapter on statistics and of docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from book import run_chapter

MODULES = [
    "anabranch.figures.labels",
    "anabranch.figures.style",
    "anabranch.estimate",
    "anabranch.statistics.jain",
    "anabranch.statistics.paired",
    "anabranch.quantity",
    "anabranch.statistics.regression",
    "anabranch.statistics.summaries",
]


def test_the_examples_of_the_chapter_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))
    run_chapter("statistics.md", tmp_path, monkeypatch)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0
    assert results.failed == 0
