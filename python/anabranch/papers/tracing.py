"""Measures and curves that take traces: runs are made once more with a trace, by processes of their own.

A trace of a run takes megabytes. It is written to a temporary folder, what is asked for is taken from it, and it is
removed before the next run begins: as many traces are on disk at one time as there are processes. What was taken is
kept in the cache, under the key of the run with the measure and its version.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from anabranch import _native
from anabranch.engine import engine
from anabranch.papers.measures import MEASURES
from anabranch.papers.model import Measure, Value
from anabranch.papers.plan import Cell, Curve, Setting, Wanted
from anabranch.papers.resolving import resolved, schemes_named
from anabranch.papers.workers import Workers
from anabranch.sweep.cache import Cache
from anabranch.sweep.key import CellKey

if TYPE_CHECKING:
    from anabranch.series import Series

CURVES_VERSION = 2
"""Of what is taken from traces for figures."""

Columns: TypeAlias = "dict[str, list[Any]]"
"""A table by its columns."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run to be traced, and what is asked of it. The trace is for a while in `scratch`."""

    scenario: str
    folder: str
    scheme: str
    seed: int
    measures: tuple[Measure, ...]
    curves: tuple[Curve, ...]
    scratch: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a traced run gave, in the order of the task, and how many packets with DATA left in it."""

    values: tuple[float, ...]
    curves: tuple[Columns, ...]
    packets: int


def take(task: Task) -> Answer:
    """Makes the run of a task and takes from its trace what is asked for."""
    from anabranch.series import Series

    with tempfile.TemporaryDirectory(dir=task.scratch) as folder:
        finished: list[str] = []
        prepared = _native.Prepared(task.scenario, task.scheme, task.folder)
        _native.run_batch([(prepared, task.seed)], lambda _, text: finished.append(text), threads=1, trace=folder)
        series = Series(folder)
        values = tuple(_value(series, measure) for measure in task.measures)
        curves = tuple(_CURVES[curve.kind](series, curve) for curve in task.curves)
    packets = sum(path["sent_packets"] for path in json.loads(finished[0])["paths"])
    return Answer(values, curves, packets)


def _value(series: Series, measure: Measure) -> float:
    of_trace = MEASURES[measure.name].of_trace
    if of_trace is None:
        raise ValueError(f"{measure} takes no traces")
    return of_trace(series, measure)


def _cwnd(series: Series, curve: Curve) -> Columns:
    """Each change of a window, and how it stood at the end."""
    import pandas

    paths = series.paths()
    of_path = paths.groupby("path", observed=True)
    changed = of_path["cwnd_bytes"].transform(lambda each: each.ne(each.shift()))
    rows = pandas.concat([paths[changed], of_path.tail(1).assign(time_s=series.end_s)])
    return _columns(rows, curve, {"time_s": float, "path": str, "cwnd_bytes": int})


def _throughput(series: Series, curve: Curve) -> Columns:
    """All paths together, in bins. Each copy counts, as in a figure of what arrives."""
    rows = series.throughput(curve.bin_s).groupby("time_s", observed=True)["throughput_kbps"].sum().reset_index()
    return _columns(rows, curve, {"time_s": float, "throughput_kbps": float})


def _tsn(series: Series, curve: Curve) -> Columns:
    """When chunks were sent and received, with TSNs from 0 on."""
    rows = series.tsn()
    rows = rows.assign(tsn=rows["tsn"] - rows["tsn"].min())
    return _columns(rows, curve, {"time_s": float, "path": str, "event": str, "tsn": int})


def _out_of_order(series: Series, curve: Curve) -> Columns:
    return _columns(series.out_of_order(), curve, {"time_s": float, "path": str, "offset": int})


def _columns(rows: Any, curve: Curve, kinds: Mapping[str, type]) -> Columns:
    if curve.window_s is not None:
        rows = rows[(rows["time_s"] >= curve.window_s[0]) & (rows["time_s"] <= curve.window_s[1])]
    return {name: [kind(value) for value in rows[name]] for name, kind in kinds.items()}


_CURVES: Mapping[str, Callable[[Any, Curve], Columns]] = {
    "cwnd": _cwnd,
    "throughput-time": _throughput,
    "tsn": _tsn,
    "out-of-order": _out_of_order,
}


@dataclass(frozen=True, slots=True)
class Traced:
    """What traced runs of a setting gave, by measure or curve and cell."""

    values: Mapping[Measure, Mapping[Cell, float]]
    curves: Mapping[Curve, Mapping[Cell, Columns]]


class Tracer:
    """Traces runs in processes, and counts them."""

    def __init__(self, cache: Cache | None, workers: Workers) -> None:
        self._cache = cache
        self._workers = workers
        self.computed = 0
        self.cached = 0
        self.packets = 0

    def trace(self, setting: Setting, wanted: Wanted, done: Callable[[], None]) -> Traced:
        """Everything that is wanted of a setting. `done` is called for each run once it is finished or found."""
        values: dict[Measure, dict[Cell, float]] = {measure: {} for measure in wanted.traced}
        curves: dict[Curve, dict[Cell, Columns]] = {curve: {} for curve in wanted.curves}
        tasks: list[tuple[Cell, str, Task]] = []
        for cell in cells_of(wanted):
            key, task = self._task(setting, wanted, cell)
            missing = self._from_cache(key, cell, task, values, curves)
            if missing.measures or missing.curves:
                tasks.append((cell, key, missing))
            else:
                self.cached += 1
                done()
        for cell, key, task, answer in self._answers(tasks):
            for measure, value in zip(task.measures, answer.values, strict=True):
                values[measure][cell] = value
                self._keep(_measure_key(key, measure), value)
            for curve, columns in zip(task.curves, answer.curves, strict=True):
                curves[curve][cell] = columns
                self._keep(_curve_key(key, curve), columns)
            self.computed += 1
            self.packets += answer.packets
            done()
        return Traced(values, curves)

    def _task(self, setting: Setting, wanted: Wanted, cell: Cell) -> tuple[str, Task]:
        """The task of a cell with the key of its run."""
        scheme, place, seed = cell
        settings: dict[str, Value] = {**setting.settings_at(place, seed), "run.schemes": ["cmt"], "run.seeds": 1}
        scenario = resolved(setting.experiment.scenario, settings)
        label = schemes_named(scenario, setting.schemes[scheme])
        key = CellKey(fingerprint=engine().fingerprint, scenario=scenario, scheme=label, files={}).of(seed)
        task = Task(
            scenario=scenario,
            folder=str(setting.experiment.scenario.parent),
            scheme=label,
            seed=seed,
            measures=tuple(sorted((m for m, cells in wanted.traced.items() if cell in cells), key=str)),
            curves=tuple(sorted((c for c, cells in wanted.curves.items() if cell in cells), key=repr)),
            scratch=str(self._workers.folder),
        )
        return key, task

    def _from_cache(
        self,
        key: str,
        cell: Cell,
        task: Task,
        values: Mapping[Measure, dict[Cell, float]],
        curves: Mapping[Curve, dict[Cell, Columns]],
    ) -> Task:
        """Takes what the cache has, and gives the task with what it has not."""
        measures, missing_curves = [], []
        for measure in task.measures:
            found = self._kept(_measure_key(key, measure))
            if found is None:
                measures.append(measure)
            else:
                values[measure][cell] = float(found)
        for curve in task.curves:
            columns = self._kept(_curve_key(key, curve))
            if columns is None:
                missing_curves.append(curve)
            else:
                curves[curve][cell] = columns
        return replace(task, measures=tuple(measures), curves=tuple(missing_curves))

    def _answers(self, tasks: Sequence[tuple[Cell, str, Task]]) -> Iterator[tuple[Cell, str, Task, Answer]]:
        """What tasks give, in whatever order they end; few are handed out at a time, so that an end comes soon."""
        waiting = list(reversed(tasks))
        running: dict[Future[Answer], tuple[Cell, str, Task]] = {}
        while waiting or running:
            while waiting and len(running) < 2 * self._workers.count:
                given = waiting.pop()
                running[self._workers.submit(take, given[2])] = given
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield *running.pop(future), future.result()

    def _kept(self, key: str) -> Any:
        text = self._cache.get(key) if self._cache else None
        if text is None:
            return None
        found = json.loads(text)["value"]
        return math.nan if found == _NAN else found

    def _keep(self, key: str, value: float | Columns) -> None:
        if self._cache:
            plain = _NAN if isinstance(value, float) and math.isnan(value) else value
            self._cache.put(key, json.dumps({"value": plain}))


_NAN = "nan"
"""JSON has no word for it."""


def cells_of(wanted: Wanted) -> list[Cell]:
    """The runs that have to be traced, each once, in a fixed order."""
    cells = {cell for each in (*wanted.traced.values(), *wanted.curves.values()) for cell in each}
    return sorted(cells)


def open_cache(folder: Path | None) -> Cache | None:
    """The cache in a folder. Raises `CacheError` if there can be none."""
    return None if folder is None else Cache.open(folder)


def _measure_key(run: str, measure: Measure) -> str:
    return _hashed("measure", run, MEASURES[measure.name].version, asdict(measure))


def _curve_key(run: str, curve: Curve) -> str:
    return _hashed("curve", run, CURVES_VERSION, asdict(curve))


def _hashed(*content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
