"""The notebook: from a scenario to a figure in ten cells."""

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
    """An empty folder, far from the repository."""
    return tmp_path_factory.mktemp("anywhere")


@pytest.fixture(scope="module")
def executed(source: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """The notebook as a fresh kernel leaves it."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        # What the client of the kernel warns of is not for us to mend.
        warnings.simplefilter("ignore")
        from nbclient import NotebookClient

        patch.setenv("ANABRANCH_CACHE", str(folder / "cache"))
        # The kernel has to find the package that is tested here.
        patch.setenv("PYTHONPATH", str(Path(anabranch.__file__).parents[1]), prepend=os.pathsep)
        notebook = nbformat.from_dict(source)
        client = NotebookClient(
            notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        client.execute()
    return notebook


def outputs(notebook: nbformat.NotebookNode, kind: str) -> list[str]:
    """What cells show of a kind, such as `image/png`."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in shown if kind in output.get("data", {})]


def test_the_notebook_has_ten_cells_and_stores_no_outputs(source: nbformat.NotebookNode) -> None:
    nbformat.validate(source)
    assert len(source.cells) == 10
    for cell in source.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)


def test_every_cell_runs_and_nothing_is_warned_of(executed: nbformat.NotebookNode) -> None:
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    errors = [output for cell in code for output in cell.outputs if output.get("name") == "stderr"]
    assert errors == []


def test_its_figures_and_tables_are_shown(executed: nbformat.NotebookNode) -> None:
    assert len(outputs(executed, "image/png")) == 3
    tables = outputs(executed, "text/html")
    assert any("±" in table and "db-cmt" in table for table in tables)
    assert any("p_value" in table for table in tables)


def test_what_it_writes_can_be_read(executed: nbformat.NotebookNode, folder: Path) -> None:
    assert executed.cells
    results = Results.read(folder / "first-sweep")
    assert results.schemes == ["sctp", "cmt", "db-cmt"]
    assert results.runs.num_rows == 5 * 3 * 10
    assert (folder / "first-sweep" / "goodput.svg").stat().st_size > 10_000
