"""Executes the notebook and stores the outputs of its cells: `make notebook`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "first-sweep.ipynb"
LIMIT_S = 600


def executed(notebook: nbformat.NotebookNode, folder: Path, limit_s: int = LIMIT_S) -> nbformat.NotebookNode:
    """Returns the notebook after execution in a fresh kernel in this folder, without times."""
    client = NotebookClient(
        nbformat.from_dict(notebook),
        timeout=limit_s,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    made = client.execute()
    made.metadata = notebook.metadata
    return made


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANABRANCH_CACHE"] = str(Path(folder) / "cache")
        made = executed(nbformat.read(NOTEBOOK, as_version=4), Path(folder))
    nbformat.write(made, NOTEBOOK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
