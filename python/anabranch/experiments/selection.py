"""Selects experiments from a folder with a subfolder of data for each study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import ExperimentError
from anabranch.experiments.fields import hint
from anabranch.experiments.model import Experiment
from anabranch.experiments.study import Study, read_study

ALL = "all"


@dataclass(frozen=True, slots=True)
class Selection:
    """Study with its selected experiments."""

    study: Study
    experiments: tuple[Experiment, ...]


def keys(data: Path) -> list[str]:
    """Returns the keys of all studies, sorted."""
    return sorted(file.parent.name for file in data.glob("*/study.toml"))


def read_key(key: str, data: Path) -> Study:
    """Reads the study of a key. Raises `ExperimentError` if the study does not exist or its data is invalid."""
    known = keys(data)
    if key not in known:
        raise ExperimentError(f"unknown study `{key}`; {hint(key, known)}")
    return read_study(data / key)


def select(name: str, data: Path) -> list[Selection]:
    """Returns the experiments that `all`, `KEY` or `KEY/EXPERIMENT` names.

    Raises `ExperimentError` for an unknown study or experiment.
    """
    if name == ALL:
        studies = [read_key(key, data) for key in keys(data)]
        if not studies:
            raise ExperimentError(f"{data}: contains no studies")
        return [Selection(study, study.experiments) for study in studies]
    key, _, identity = name.partition("/")
    study = read_key(key, data)
    if not identity:
        return [Selection(study, study.experiments)]
    known = [experiment.id for experiment in study.experiments]
    if identity not in known:
        raise ExperimentError(f"study `{key}` has no experiment `{identity}`; {hint(identity, known)}")
    return [Selection(study, (study.experiment(identity),))]
