"""Runs the sweeps of a setting and takes measures from their tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anabranch.papers.measures import MEASURES
from anabranch.papers.measures.of_runs import Runs
from anabranch.papers.model import Axis, Measure, Value
from anabranch.papers.plan import Setting
from anabranch.papers.resolving import resolved, schemes_named, table_of
from anabranch.papers.samples import Grid

if TYPE_CHECKING:
    from anabranch.results import Results
    from anabranch.sweep.executors import ExecutorLike


@dataclass(frozen=True, slots=True)
class Means:
    """With what sweeps are run: see `anabranch.sweep`."""

    cache: str | os.PathLike[str] | bool | None = True
    executor: ExecutorLike = None
    workers: int | None = None
    progress: bool | None = None


@dataclass(slots=True)
class Cost:
    """What it took: runs that were computed and taken from caches, and packets with DATA of those computed."""

    computed: int = 0
    cached: int = 0
    packets: float = 0.0

    def add(self, results: Results) -> None:
        """Counts a sweep. Where only some of its runs were computed, they are taken to have the mean of packets."""
        import pyarrow.compute as pc

        effort = results.effort
        if effort is None:
            return
        self.computed += effort.computed
        self.cached += effort.cached
        packets = pc.sum(results.paths["sent_packets"]).as_py() or 0
        self.packets += packets * effort.computed / max(effort.computed + effort.cached, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """The runs of a setting.

    `keys` has the keys of the runs in the shape (schemes, values of the first axis, ..., seeds). `points` has for each
    run the index of its place in `places`: a cell, and the first of the seeds that share a scenario.
    """

    setting: Setting
    keys: NDArray[Any]
    runs: pd.DataFrame
    paths: pd.DataFrame
    flows: pd.DataFrame
    points: pd.Series
    places: list[tuple[tuple[int, ...], int]]

    def grid(self, measure: Measure) -> Grid:
        """A measure of all runs."""
        definition = MEASURES[measure.name]
        if definition.of_runs is None:
            raise ValueError(f"{measure} takes traces")
        by_run = definition.of_runs(Runs(self.runs, self.paths, self.flows, self.points, self._scenario), measure)
        values = by_run.reindex(self.keys.ravel()).to_numpy(dtype=float).reshape(self.keys.shape)
        return grid_of(self.setting, values)

    def _scenario(self, point: int) -> dict[str, Any]:
        cell, seed = self.places[point]
        return table_of(resolved(self.setting.experiment.scenario, self.setting.settings_at(cell, seed)))

    @property
    def failures(self) -> pd.Series:
        """What went wrong, of the runs in which something did."""
        return self.runs["failure"].dropna()


def grid_of(setting: Setting, values: NDArray[np.float64]) -> Grid:
    """Values as samples of a setting."""
    schemes = tuple(setting.schemes)
    return Grid(schemes, setting.axes, setting.seeds, values, setting.experiment.axes, setting.shortened)


def collect(setting: Setting, means: Means, cost: Cost) -> Collected:
    """Makes every run of a setting, or takes it from the cache.

    Raises what `anabranch.sweep` raises.
    """
    keys = np.empty((len(setting.schemes), *(len(axis.values) for axis in setting.axes), len(setting.seeds)), object)
    tables: list[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]] = []
    points: list[pd.Series] = []
    places: list[tuple[tuple[int, ...], int]] = []
    for seeds in _seed_groups(setting):
        results = _sweep(setting, seeds, means)
        cost.add(results)
        runs, paths, flows = (results.to_pandas(table).set_index("run") for table in ("runs", "paths", "flows"))
        tables.append((runs, paths, flows))
        first = setting.seeds.index(seeds[0])
        keys[..., first : first + len(seeds)] = _keys(setting, runs, seeds)
        points.append(_points(setting, keys, seeds, first, len(places)))
        places += [(cell, seeds[0]) for cell in setting.cells()]
    runs, paths, flows = (pd.concat(parts) for parts in zip(*tables, strict=True))
    return Collected(setting, keys, runs, paths, flows, pd.concat(points), places)


def _seed_groups(setting: Setting) -> Iterator[tuple[int, ...]]:
    """Seeds that one sweep can make: all of them, or each for itself where values are drawn for each."""
    if setting.draw:
        yield from ((seed,) for seed in setting.seeds)
    else:
        yield setting.seeds


def _sweep(setting: Setting, seeds: Sequence[int], means: Means) -> Results:
    from anabranch.sweep import sweep

    over: dict[Any, Any] = dict(over_of(axis) for axis in setting.axes)
    over["scheme"] = list(dict.fromkeys(_expressions(setting)))
    swept = {key for axis in setting.axes for settings in axis.settings for key in settings}
    fixed = {**setting.set, **setting.drawn(seeds[0])}
    return sweep(
        setting.experiment.scenario,
        over=over,
        seeds=list(seeds),
        set={key: value for key, value in fixed.items() if key not in swept},
        cache=means.cache,
        executor=means.executor,
        workers=means.workers,
        progress=False if setting.draw else means.progress,
    )


def over_of(axis: Axis) -> tuple[str | tuple[str, ...], list[Value]]:
    """An axis as a sweep has it: a key with its values, or several keys that go through theirs side by side."""
    keys = tuple(axis.settings[0])
    if len(keys) == 1:
        return keys[0], [settings[keys[0]] for settings in axis.settings]
    return keys, [[settings[key] for key in keys] for settings in axis.settings]


def _expressions(setting: Setting) -> list[str]:
    """The expression of each scheme, written in full, so that the same one is seen to be the same."""
    text = resolved(setting.experiment.scenario, setting.set)
    return [schemes_named(text, expression) for expression in setting.schemes.values()]


def _keys(setting: Setting, runs: pd.DataFrame, seeds: Sequence[int]) -> NDArray[Any]:
    """Keys of runs by scheme, axes and seed. Results are sorted by point, scheme and seed."""
    expressions = _expressions(setting)
    distinct = list(dict.fromkeys(expressions))
    shape = [*(len(axis.values) for axis in setting.axes), len(distinct), len(seeds)]
    found = runs.index.to_numpy().reshape(shape)
    return np.stack([found[..., distinct.index(expression), :] for expression in expressions])


def _points(setting: Setting, keys: NDArray[Any], seeds: Sequence[int], first: int, base: int) -> pd.Series:
    """For each run the number of its scenario."""
    chosen = keys[..., first : first + len(seeds)]
    numbers: Mapping[str, int] = {
        key: base + number
        for number, cell in enumerate(setting.cells())
        for of_scheme in chosen
        for key in of_scheme[cell]
    }
    return pd.Series(numbers, dtype=int)
