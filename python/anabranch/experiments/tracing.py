"""Measures and curves from traces: runs are repeated with a trace by separate processes.

A trace of a run takes megabytes. Each process writes the trace to a temporary folder and removes it before the next
run, so that at most one trace per process exists. A trace contains only the tables that the measures read, and the run
ends after the last time that they read. The extracted values are cached under the key of the run with the measure and
its version.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from anabranch import _native
from anabranch.experiments.cost import Cost
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.model import Measure
from anabranch.experiments.plan import Curve, Extract, RunIndex, Setting, Wanted
from anabranch.experiments.scenarios import resolved, scheme_named
from anabranch.experiments.workers import Workers
from anabranch.sweeps.cache import Cache, default_folder
from anabranch.sweeps.key import CellKey
from anabranch.version import engine

if TYPE_CHECKING:
    from anabranch.series import Series

_TRACES = "traces"
"""Subfolder of the cache for values from traces."""

CURVES_VERSION = 2
"""Version of the computation of curves, which is part of their cache keys."""

Columns: TypeAlias = "dict[str, list[Any]]"
"""Table by columns."""


Extracted: TypeAlias = "float | Columns"
"""Data from a trace: the value of a measure, or the table of a curve."""

Traced: TypeAlias = "dict[Extract, dict[RunIndex, Extracted]]"


@dataclass(frozen=True, slots=True)
class Task:
    """Run to trace with the requested extracts.

    The trace is written to a folder in `scratch`. `key` is the cache key of the run.
    """

    run: RunIndex
    key: str
    scenario: str
    folder: str
    scheme: str
    seed: int
    extracts: tuple[Extract, ...]
    scratch: str


def take(task: Task) -> tuple[list[Extracted], int]:
    """Makes the run of a task. Returns the extracted values, and the number of packets with DATA."""
    from anabranch.series import Series

    with tempfile.TemporaryDirectory(dir=task.scratch) as folder:
        finished: list[str] = []
        prepared = _native.Prepared(task.scenario, task.scheme, task.folder)
        _native.run_batch(
            [(prepared, task.seed)],
            lambda _, text: finished.append(text),
            threads=1,
            trace=folder,
            tables=sorted({_table(extract) for extract in task.extracts}),
            until_s=_until_s(task.extracts),
        )
        series = Series(folder)
        values = [extracted(series, extract) for extract in task.extracts]
    return values, sum(path["sent_packets"] for path in json.loads(finished[0])["paths"])


def _table(extract: Extract) -> str:
    """Returns the table of a trace that an extract reads."""
    if isinstance(extract, Curve):
        return "paths" if extract.kind == "cwnd" else "packets"
    table = MEASURES[extract.name].table
    if table is None:
        raise ValueError(f"{extract} takes no traces")
    return table


def _until_s(extracts: Iterable[Extract]) -> float | None:
    """Returns the time after which no extract reads the trace, or `None` for the whole run."""
    latest_s = 0.0
    for extract in extracts:
        if isinstance(extract, Curve):
            until_s = extract.window_s[1] if extract.window_s else None
        else:
            until_s = MEASURES[extract.name].until(extract)
        if until_s is None:
            return None
        latest_s = max(latest_s, until_s)
    return latest_s + _MARGIN_S


_MARGIN_S = 0.01
"""Time of a run after the last read one, so that the run does not end within a window."""


def extracted(series: Series, extract: Extract) -> Extracted:
    """Returns the requested data of a trace."""
    if isinstance(extract, Curve):
        return _CURVES[extract.kind](series, extract)
    of_trace = MEASURES[extract.name].of_trace
    if of_trace is None:
        raise ValueError(f"{extract} takes no traces")
    return of_trace(series, extract)


def _cwnd(series: Series, curve: Curve) -> Columns:
    """Returns each change of a window, and its value at the end."""
    import pandas

    paths = series.paths()
    of_path = paths.groupby("path", observed=True)
    changed = of_path["cwnd_bytes"].transform(lambda each: each.ne(each.shift()))
    rows = pandas.concat([paths[changed], of_path.tail(1).assign(time_s=series.end_s)])
    return _columns(rows, curve, {"time_s": float, "path": str, "cwnd_bytes": int})


def _throughput(series: Series, curve: Curve) -> Columns:
    """Returns the throughput of all paths together, in bins. Copies count, as they do in a figure of arrivals."""
    rows = series.throughput(curve.bin_s).groupby("time_s", observed=True)["throughput_kbps"].sum().reset_index()
    return _columns(rows, curve, {"time_s": float, "throughput_kbps": float})


def _tsn(series: Series, curve: Curve) -> Columns:
    """Returns the times at which chunks were sent and received, with TSNs from 0 on."""
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


def open_traces(cache: str | os.PathLike[str] | bool | None) -> Cache | None:
    """Returns the cache of values from traces, which is in the folder of a cache of runs, or none.

    `cache` is that of `anabranch.sweep`. Raises `CacheError` if the folder cannot be used.
    """
    if cache is None or cache is False:
        return None
    return Cache.open((default_folder() if cache is True else Path(cache)) / _TRACES)


class Tracer:
    """Traces runs in processes. `cache` may be `None`."""

    def __init__(self, cache: Cache | None, workers: Workers, cost: Cost) -> None:
        self._cache = cache
        self._workers = workers
        self._cost = cost

    def trace(self, setting: Setting, wanted: Wanted, done: Callable[[], None]) -> Traced:
        """Returns the requested data of a setting. `done` is called for each finished or cached run."""
        found: Traced = {extract: {} for extract in wanted.traced}
        tasks: list[Task] = []
        for run in wanted.traced_runs():
            task = self._task(setting, wanted, run)
            for extract in task.extracts:
                value = self._cached(_key(task.key, extract))
                if value is not None:
                    found[extract][run] = value
            missing = tuple(extract for extract in task.extracts if run not in found[extract])
            if missing:
                tasks.append(replace(task, extracts=missing))
            else:
                self._cost.cached += 1
                done()
        for task, (values, packets) in self._finished(tasks):
            for extract, value in zip(task.extracts, values, strict=True):
                found[extract][task.run] = value
                self._keep(_key(task.key, extract), value)
            self._cost.computed += 1
            self._cost.packets += packets
            done()
        return found

    def _task(self, setting: Setting, wanted: Wanted, run: RunIndex) -> Task:
        scheme, place, seed = run
        settings = setting.settings_at(place, seed) | {"run.schemes": ["cmt"], "run.seeds": 1}
        scenario = resolved(setting.experiment.scenario, settings)
        label = scheme_named(scenario, setting.schemes[scheme])
        key = CellKey(fingerprint=engine().fingerprint, scenario=scenario, scheme=label, files={}).of(seed)
        extracts = sorted((extract for extract, runs in wanted.traced.items() if run in runs), key=repr)
        folder = str(setting.experiment.scenario.parent)
        return Task(run, key, scenario, folder, label, seed, tuple(extracts), str(self._workers.folder))

    def _finished(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, tuple[list[Extracted], int]]]:
        """Yields tasks with their results, in the order in which they end. Few tasks are submitted at a time, so that
        Ctrl-C waits for few."""
        waiting = list(reversed(tasks))
        running: dict[Future[tuple[list[Extracted], int]], Task] = {}
        while waiting or running:
            while waiting and len(running) < 2 * self._workers.count:
                task = waiting.pop()
                running[self._workers.submit(take, task)] = task
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()

    def _cached(self, key: str) -> Extracted | None:
        text = self._cache.get(key) if self._cache else None
        if text is None:
            return None
        value: Any = json.loads(text)["value"]
        return math.nan if value == _NAN else value

    def _keep(self, key: str, value: Extracted) -> None:
        if self._cache:
            plain = _NAN if isinstance(value, float) and math.isnan(value) else value
            self._cache.put(key, json.dumps({"value": plain}))


_NAN = "nan"
"""Text for NaN, which JSON does not have."""


def _key(run: str, extract: Extract) -> str:
    """Returns the cache key of an extract from the trace of a run."""
    if isinstance(extract, Measure):
        content = ["measure", run, MEASURES[extract.name].version, asdict(extract)]
    else:
        content = ["curve", run, CURVES_VERSION, asdict(extract)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
