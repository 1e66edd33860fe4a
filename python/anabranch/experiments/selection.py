"""Selects experiments from a folder that has a folder of data for each paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import PaperError
from anabranch.experiments.fields import hint
from anabranch.experiments.model import Experiment
from anabranch.experiments.paper import Paper, read_paper

ALL = "all"


@dataclass(frozen=True, slots=True)
class Selection:
    """A paper and the selected ones of its experiments."""

    paper: Paper
    experiments: tuple[Experiment, ...]


def keys(data: Path) -> list[str]:
    """Returns the keys of all papers, sorted."""
    return sorted(file.parent.name for file in data.glob("*/paper.toml"))


def read_key(key: str, data: Path) -> Paper:
    """Reads the paper of a key. Raises `PaperError` if there is none, or something in its data is wrong."""
    known = keys(data)
    if key not in known:
        raise PaperError(f"there is no paper `{key}`; {hint(key, known)}")
    return read_paper(data / key)


def select(name: str, data: Path) -> list[Selection]:
    """Returns the experiments that `all`, `KEY` or `KEY/EXPERIMENT` names.

    Raises `PaperError` for an unknown paper or experiment.
    """
    if name == ALL:
        papers = [read_key(key, data) for key in keys(data)]
        if not papers:
            raise PaperError(f"{data}: holds no papers")
        return [Selection(paper, paper.experiments) for paper in papers]
    key, _, identity = name.partition("/")
    paper = read_key(key, data)
    if not identity:
        return [Selection(paper, paper.experiments)]
    known = [experiment.id for experiment in paper.experiments]
    if identity not in known:
        raise PaperError(f"paper `{key}` has no experiment `{identity}`; {hint(identity, known)}")
    return [Selection(paper, (paper.experiment(identity),))]
