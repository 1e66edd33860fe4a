"""Runs the examples of a chapter of the book, and checks their output.

    from book import run_chapter

    def test_the_examples_of_the_chapter_run(tmp_path, monkeypatch):
        run_chapter("python-runs.md", tmp_path, monkeypatch)

Blocks that are fenced as `python` are executed one after the other, as one program. A `text` block that follows such a
block, with only blank lines between, must equal the output of the block; `...` in it matches any text, as in doctests.
Blocks fenced as `python,ignore` are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs" / "src"
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<body>.*?)^```[ \t]*$", flags=re.M | re.S)


@dataclass(frozen=True)
class Example:
    """Block that is run."""

    code: str
    line: int
    """Line of the chapter on which the code begins."""
    printed: str | None
    """Expected output, if the chapter has it."""


def examples(text: str) -> Iterator[Example]:
    """Returns the blocks of a chapter that are run, in their order."""
    blocks = list(FENCE.finditer(text))
    for block, after in zip_longest(blocks, blocks[1:]):
        if block["kind"].strip() != "python":
            continue
        line = text.count("\n", 0, block.start("body")) + 1
        printed = None
        if after is not None and after["kind"].strip() == "text" and not text[block.end() : after.start()].strip():
            printed = after["body"]
        yield Example(block["body"], line, printed)


def run_example(example: Example, chapter: str, names: dict[str, Any]) -> None:
    """Runs a block with the names of earlier blocks, and compares its output."""
    # Leading blank lines make a traceback name the line of the chapter.
    code = compile("\n" * (example.line - 1) + example.code, chapter, "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    if example.printed is None:
        return
    expected, printed = without_margins(example.printed), without_margins(out.getvalue())
    if not doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
        pytest.fail(f"{chapter}:{example.line} prints\n{printed}\nbut the chapter says\n{expected}", pytrace=False)


def without_margins(text: str) -> str:
    """Returns text without blanks at the ends of lines, and without blank lines at its end."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def run_chapter(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs all blocks of a chapter in a folder with the repository's scenarios. Returns the names that they define."""
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    found = list(examples((BOOK / name).read_text(encoding="utf-8")))
    assert found, f"{name} has no examples"
    for example in found:
        run_example(example, name, names)
    return names
