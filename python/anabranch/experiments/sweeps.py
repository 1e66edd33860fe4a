"""Runs the sweeps of a setting and computes measures from their tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anabranch.experiments.cost import Cost
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.measures.of_runs import Place, Runs
from anabranch.experiments.model import Axis, Measure
from anabranch.experiments.plan import Setting
from anabranch.experiments.samples import SampleGrid
from anabranch.experiments.scenarios import resolved, scheme_named, tables_of
from anabranch.values import Value

if TYPE_CHECKING:
    from anabranch.results import Results
    from anabranch.sweeps.executors import ExecutorLike


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Arguments of `anabranch.sweep` that do not affect results."""

    cache: str | os.PathLike[str] | bool | None = True
    executor: ExecutorLike = None
    workers: int | None = None
    progress: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Runs of a setting.

    `keys` contains the keys of the runs in the shape (schemes, values of the first axis, ..., seeds).
    """

    setting: Setting
    keys: NDArray[Any]
    tables: Runs

    def grid(self, measure: Measure) -> SampleGrid:
        """Returns a measure of all runs."""
        definition = MEASURES[measure.name]
        if definition.of_runs is None:
            raise ValueError(f"{measure} needs traces of the runs, which a sweep does not write")
        by_run = definition.of_runs(self.tables, measure)
        return grid_of(self.setting, by_run.reindex(self.keys.ravel()).to_numpy(dtype=float).reshape(self.keys.shape))

    @property
    def failures(self) -> pd.Series:
        """Errors of the runs that failed."""
        return self.tables.runs["failure"].dropna()


def grid_of(setting: Setting, values: NDArray[np.float64]) -> SampleGrid:
    """Returns values as samples of a setting."""
    schemes = tuple(setting.schemes)
    return SampleGrid(schemes, setting.axes, setting.seeds, values, setting.experiment.axes, setting.shortened)


def collect(setting: Setting, options: SweepOptions, cost: Cost) -> Collected:
    """Performs every run of a setting, or reads it from the cache.

    Raises the errors of `anabranch.sweep`.
    """
    keys = np.empty(setting.shape, object)
    frames: list[tuple[pd.DataFrame, ...]] = []
    places: dict[str, Place] = {}
    schemes = _full_expressions(setting)
    for seeds in _seed_groups(setting):
        results = _sweep(setting, schemes, seeds, options)
        cost.add(results)
        tables = tuple(results.to_pandas(table).set_index("run") for table in ("runs", "paths", "flows"))
        frames.append(tables)
        first = setting.seeds.index(seeds[0])
        keys[..., first : first + len(seeds)] = own = _keys(setting, schemes, tables[0], seeds)
        # Schemes become the last dimension, so that the index of a cell selects the keys of all schemes.
        by_cell = np.moveaxis(own, 0, -1)
        places |= {key: (cell, seeds[0]) for cell in setting.cells() for key in by_cell[cell].ravel()}

    def scenario(place: Place) -> dict[str, Any]:
        return tables_of(resolved(setting.experiment.scenario, setting.settings_at(*place)))

    runs, paths, flows = (pd.concat(parts) for parts in zip(*frames, strict=True))
    return Collected(setting, keys, Runs(runs, paths, flows, places, scenario, setting.experiment.scenario.parent))


def _seed_groups(setting: Setting) -> Iterator[tuple[int, ...]]:
    """Yields the seeds of each sweep: all seeds, or one seed per sweep if the setting draws values for each seed."""
    if setting.draw:
        yield from ((seed,) for seed in setting.seeds)
    else:
        yield setting.seeds


def _sweep(setting: Setting, schemes: list[str], seeds: Sequence[int], options: SweepOptions) -> Results:
    from anabranch.sweeps import sweep

    over: dict[Any, Any] = dict(over_of(axis) for axis in setting.axes)
    over["scheme"] = list(dict.fromkeys(schemes))
    swept = {key for axis in setting.axes for settings in axis.settings for key in settings}
    fixed = {**setting.overrides, **setting.drawn(seeds[0])}
    return sweep(
        setting.experiment.scenario,
        over=over,
        seeds=list(seeds),
        overrides={key: value for key, value in fixed.items() if key not in swept},
        cache=options.cache,
        executor=options.executor,
        workers=options.workers,
        progress=False if setting.draw else options.progress,
    )


def over_of(axis: Axis) -> tuple[str | tuple[str, ...], list[Value]]:
    """Returns an axis for `over` of a sweep: a key with its values, or several keys that vary together."""
    keys = tuple(axis.settings[0])
    if len(keys) == 1:
        return keys[0], [settings[keys[0]] for settings in axis.settings]
    return keys, [[settings[key] for key in keys] for settings in axis.settings]


def _full_expressions(setting: Setting) -> list[str]:
    """Returns the full expression of each scheme. Equal schemes have equal full expressions."""
    text = resolved(setting.experiment.scenario, setting.overrides)
    return [scheme_named(text, expression) for expression in setting.schemes.values()]


def _keys(setting: Setting, schemes: list[str], runs: pd.DataFrame, seeds: Sequence[int]) -> NDArray[Any]:
    """Returns the keys of runs by scheme, axes and seed. `runs` must be sorted by point, scheme and seed."""
    distinct = list(dict.fromkeys(schemes))
    found = runs.index.to_numpy().reshape([*setting.shape[1:-1], len(distinct), len(seeds)])
    return np.stack([found[..., distinct.index(scheme), :] for scheme in schemes])
