"""The papers that the package brings, and how they are named on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import PaperError
from anabranch.papers.fields import hint
from anabranch.papers.model import Experiment
from anabranch.papers.paper import Paper, read_paper

DATA = Path(__file__).parent / "data"
"""Where papers are: a folder for each, called by its key."""

ALL = "all"


@dataclass(frozen=True, slots=True)
class Selection:
    """A paper and those of its experiments that are meant."""

    paper: Paper
    experiments: tuple[Experiment, ...]


def keys(data: Path = DATA) -> list[str]:
    """The keys of all papers, sorted."""
    return sorted(file.parent.name for file in data.glob("*/paper.toml"))


def read_key(key: str, data: Path = DATA) -> Paper:
    """The paper of a key. Raises `PaperError` if there is none, or something in its data is wrong."""
    known = keys(data)
    if key not in known:
        raise PaperError(f"there is no paper `{key}`; {hint(key, known)}")
    return read_paper(data / key)


def select(name: str, data: Path = DATA) -> list[Selection]:
    """What `all`, `KEY` or `KEY/EXPERIMENT` means.

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
