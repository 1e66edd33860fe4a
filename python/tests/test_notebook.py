"""Notebook: from a scenario to a figure in ten cells."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import nbformat
import pytest
from book import ROOT

import anabranch
from anabranch.results import Results

NOTEBOOK = ROOT / "examples" / "first-sweep.ipynb"
LIMIT_S = 240


@pytest.fixture(scope="module")
def source() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty folder outside the repository."""
    return tmp_path_factory.mktemp("anywhere")


@pytest.fixture(scope="module")
def executed(source: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Returns the notebook after execution in a fresh kernel."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        # Warnings of the kernel's client concern other packages.
        warnings.simplefilter("ignore")
        from execute_notebook import executed

        patch.setenv("ANABRANCH_CACHE", str(folder / "cache"))
        # The kernel has to import the package under test.
        patch.setenv("PYTHONPATH", str(Path(anabranch.__file__).parents[1]), prepend=os.pathsep)
        return executed(source, folder, LIMIT_S)


def outputs(notebook: nbformat.NotebookNode, kind: str) -> list[str]:
    """Returns the outputs of a kind, such as `image/png`."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in shown if kind in output.get("data", {})]


def test_the_notebook_stores_what_its_cells_show(
    source: nbformat.NotebookNode, executed: nbformat.NotebookNode
) -> None:
    nbformat.validate(source)
    assert len(source.cells) == 10
    # The output of data frames and figures depends on the versions of pandas and matplotlib.
    ours = [kind for kind in outputs(source, "text/html") if kind.startswith("<p><b>")]
    assert len(ours) == 2
    assert ours == [kind for kind in outputs(executed, "text/html") if kind.startswith("<p><b>")]
    code = [[cell.execution_count for cell in book.cells if cell.cell_type == "code"] for book in (source, executed)]
    assert code[0] == code[1]
    for kind in ("image/png", "text/html", "text/plain"):
        assert len(outputs(source, kind)) == len(outputs(executed, kind)), f"{kind}: make notebook stores it"


def test_every_cell_runs_without_warnings(executed: nbformat.NotebookNode) -> None:
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    errors = [output for cell in code for output in cell.outputs if output.get("name") == "stderr"]
    assert errors == []


def test_its_figures_and_tables_are_shown(executed: nbformat.NotebookNode) -> None:
    assert len(outputs(executed, "image/png")) == 3
    tables = outputs(executed, "text/html")
    assert sum("±" in table and "db-cmt" in table for table in tables) == 2
    assert any("p_value" in table for table in tables)


def test_files_written_by_the_notebook_can_be_read(executed: nbformat.NotebookNode, folder: Path) -> None:
    assert executed.cells
    results = Results.read(folder / "first-sweep")
    assert results.schemes == ["sctp", "cmt", "db-cmt"]
    assert results.runs.num_rows == 4 * 3 * 10
    assert (folder / "first-sweep" / "goodput.svg").stat().st_size > 10_000
