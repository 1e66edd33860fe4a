"""Runs for experiments and claims, and their measured values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from anabranch.experiments.cost import Cost
from anabranch.experiments.model import DEFAULT, Measure
from anabranch.experiments.plan import Extract, RunIndex, Scope, Setting, Wanted, narrowed, settings_of, wanted
from anabranch.experiments.samples import SampleGrid
from anabranch.experiments.selection import Selection
from anabranch.experiments.study import Study
from anabranch.experiments.sweeps import SweepOptions, collect, grid_of
from anabranch.experiments.tracing import Extracted, Tracer


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Measured values under one setting of an experiment, without the runs themselves."""

    setting: Setting
    grids: Mapping[Measure, SampleGrid]
    traced: Mapping[Extract, Mapping[RunIndex, Extracted]]
    runs: int
    failed: int


class Measured:
    """Measurements of all experiments that were run, by study, experiment and setting."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Measurements] = {}

    def put(self, study: Study, measurements: Measurements) -> None:
        """Adds the measurements of a setting."""
        setting = measurements.setting
        self._found[study.key, setting.experiment.id, setting.id] = measurements

    def get(self, study: Study, experiment: str, setting: str = DEFAULT) -> Measurements | None:
        """Returns the measurements of a setting, or `None` if it was not run."""
        return self._found.get((study.key, experiment, setting))

    def of_experiment(self, study: Study, experiment: str) -> list[Measurements]:
        """Returns the measurements of all settings of an experiment in the order of their runs."""
        return [found for (key, name, _), found in self._found.items() if (key, name) == (study.key, experiment)]


@dataclass(frozen=True, slots=True)
class Job:
    """Setting of an experiment with the measures to compute."""

    study: Study
    setting: Setting
    wanted: Wanted

    @property
    def runs(self) -> int:
        """Number of runs, including traced ones."""
        return (math.prod(self.setting.shape) if self.wanted.tables else 0) + len(self.wanted.traced_runs())


def jobs_of(selections: Iterable[Selection], scope: Scope) -> list[Job]:
    """Returns the jobs of the selected experiments, and of the experiments with which their claims compare them."""
    jobs = []
    for selection in selections:
        study = selection.study
        chosen = [experiment.id for experiment in selection.experiments]
        claims = [claim for claim in study.claims if claim.experiment in chosen]
        needed = {quantity.experiment for claim in claims for quantity in claim.quantities()}
        for experiment in study.experiments:
            if experiment.id not in needed.union(chosen):
                continue
            settings = settings_of(experiment, scope)[: None if experiment.id in chosen else 1]
            for setting in settings:
                # A variant may be limited to the claims that it can decide.
                only = setting.change.claims if setting.change else ()
                deciding = [claim for claim in claims if not only or claim.id in only]
                if not scope.claims:
                    jobs.append(Job(study, setting, wanted(setting, deciding, changed=len(settings) > 1)))
                # This setting also judges claims of other experiments that have a setting of the same name.
                elif kept := narrowed(setting, [c for c in claims if c in deciding or c.experiment != experiment.id]):
                    jobs.append(Job(study, kept, wanted(kept, deciding)))
    return jobs


def run_job(job: Job, options: SweepOptions, tracer: Tracer, cost: Cost, done: Callable[[int], None]) -> Measurements:
    """Runs one job. `done` is called with the number of runs that have finished since the last call.

    Raises what `anabranch.sweep` raises.
    """
    grids: dict[Measure, SampleGrid] = {}
    runs = failed = 0
    if job.wanted.tables:
        collected = collect(job.setting, options, cost)
        runs, failed = collected.keys.size, len(collected.failures)
        grids = {measure: collected.grid(measure) for measure in job.wanted.tables}
        done(runs)
    traced = tracer.trace(job.setting, job.wanted, lambda: done(1))
    for extract, values in traced.items():
        if isinstance(extract, Measure):
            grids[extract] = _traced_grid(job.setting, values)
    # Claims name the experiment's measure. A change that replaces it supplies the samples of that name.
    if job.setting.measure in grids:
        grids[job.setting.experiment.measure] = grids[job.setting.measure]
    return Measurements(job.setting, grids, traced, runs or len(job.wanted.traced_runs()), failed)


def _traced_grid(setting: Setting, values: Mapping[RunIndex, Extracted]) -> SampleGrid:
    found = np.full(setting.shape, np.nan)
    schemes = list(setting.schemes)
    for (scheme, cell, seed), value in values.items():
        if seed in setting.seeds:
            found[(schemes.index(scheme), *cell, setting.seeds.index(seed))] = value
    return grid_of(setting, found)
