"""Examples of the chapter on scenarios, runs and series, and of docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from book import ROOT, Example, examples, run_chapter, run_example

MODULES = [
    "anabranch.catalogue",
    "anabranch.simulation",
    "anabranch.scenario.flow",
    "anabranch.scenario.scenario",
    "anabranch.series.series",
]


def test_the_examples_of_the_chapter_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chapter("python-runs.md", tmp_path, monkeypatch)
    assert (tmp_path / "outage.toml").exists()


def test_the_examples_of_the_chapter_about_schemes_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chapter("python-schemes.md", tmp_path, monkeypatch)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_hold(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0
    assert results.failed == 0


# The extractor itself

CHAPTER = """\
# A chapter

```python
first = 1
```

Text between.

```sh
exit 1
```

```python
print(first + 1)
print("x y")
```
```text
2
x...
```

```python,ignore
raise RuntimeError
```
"""


def test_blocks_are_found_with_their_lines_and_what_they_print() -> None:
    assert list(examples(CHAPTER)) == [
        Example("first = 1\n", 4, None),
        Example('print(first + 1)\nprint("x y")\n', 14, "2\nx...\n"),
    ]


def test_blocks_share_their_names_and_print_what_is_said() -> None:
    names: dict[str, object] = {}
    for example in examples(CHAPTER):
        run_example(example, "chapter.md", names)
    assert names["first"] == 1


def test_a_block_that_prints_something_else_fails_with_its_place() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"chapter\.md:7 prints\n2\n\nbut the chapter says\n3"):
        run_example(Example("print(1 + 1)\n", 7, "3\n"), "chapter.md", {})


def test_a_block_that_fails_is_traced_to_its_line_in_the_chapter() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_example(Example("one = 1\none / 0\n", 7, None), "chapter.md", {})
    assert (str(caught.traceback[-1].path), caught.traceback[-1].lineno + 1) == ("chapter.md", 8)


def test_a_chapter_without_examples_is_not_taken_for_one_that_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="has no examples"):
        run_chapter("introduction.md", tmp_path, monkeypatch)
