"""Access to the five papers of the package, whose experiments and claims are data files."""

from __future__ import annotations

from pathlib import Path

from anabranch.experiments import selection
from anabranch.experiments.selection import ALL, Selection
from anabranch.experiments.study import Study

__all__ = ["ALL", "DATA", "keys", "read_key", "select"]

DATA = Path(__file__).parent / "data"
"""Folder with a subfolder for each paper, named by the paper's key."""


def keys(data: Path = DATA) -> list[str]:
    """Returns the keys of all papers, sorted."""
    return selection.keys(data)


def read_key(key: str, data: Path = DATA) -> Study:
    """Reads the paper of a key. Raises `ExperimentError` if it does not exist or its data is wrong."""
    return selection.read_key(key, data)


def select(name: str, data: Path = DATA) -> list[Selection]:
    """Returns the experiments that `all`, `KEY` or `KEY/EXPERIMENT` names.

    Raises `ExperimentError` for an unknown paper or experiment.
    """
    return selection.select(name, data)
