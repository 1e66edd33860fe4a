"""Reader of `seeds.toml`: numbers of seeds of experiments, computed before the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from anabranch.experiments.fields import Fields, read_toml
from anabranch.experiments.model import Experiment
from anabranch.experiments.verdicts.power import MAX_SEEDS

SEEDS_FILE = "seeds.toml"


def with_planned_seeds(path: Path, experiments: tuple[Experiment, ...]) -> tuple[Experiment, ...]:
    """Returns the experiments with the numbers of seeds in the file, or unchanged if the file does not exist.

    `tools/plan_seeds.py` writes the file. Raises `ExperimentError` if it is invalid.
    """
    if not path.exists():
        return experiments
    top = Fields(read_toml(path), path)
    for key in ("detect_points", "power", "level"):
        top.need(key, float)
    for key in ("pilot_date", "pilot_commit"):
        top.need(key, str)
    table = top.inner("seeds")
    if table is None:
        raise top.error("seeds", "is missing; it has to be a table with a number for each experiment")
    planned = tuple(replace(each, seeds=_planned(table, each)) for each in experiments)
    table.done()
    top.done()
    return planned


def _planned(table: Fields, experiment: Experiment) -> int:
    seeds = table.maybe(experiment.id, int)
    if seeds is None:
        return experiment.seeds
    if not 2 <= seeds <= MAX_SEEDS:
        raise table.error(experiment.id, f"is {seeds}; it has to be from 2 to {MAX_SEEDS}")
    return seeds
