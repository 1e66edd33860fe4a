"""Repetition of runs of results, with traces, for the timeline, and comparison with the results."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import _native
from anabranch.reporting.points import Point, at_point, value_text
from anabranch.scenario import Scenario
from anabranch.simulation import run_of

if TYPE_CHECKING:
    import pandas as pd

    from anabranch.results import Results
    from anabranch.series import Series

# Times are in nanoseconds, and figures are written with all digits. Only another order of summation may differ.
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class RunKey:
    """Run of results. `point` has pairs of key and value."""

    point: tuple[tuple[str, Any], ...]
    scheme: str
    seed: int

    def __str__(self) -> str:
        return ", ".join(
            [self.scheme, f"seed {self.seed}", *(f"{key} = {value_text(value)}" for key, value in self.point)]
        )


def repeat_runs(
    results: Results, wanted: Sequence[RunKey], use: Callable[[RunKey, Series], None]
) -> dict[RunKey, list[str]]:
    """Repeats runs on all processors, and passes the traces of each to `use` when it ends, in any order.

    Returns the differences of each run from the results, which are empty if the engine is the same. Traces are in a
    temporary folder and are removed after use. Raises `RunError`, `ScenarioError` or `SchemeError` if a run cannot be
    made, for example because a file that a flow sends is missing.
    """
    differences: dict[RunKey, list[str]] = {}
    # Traces are named by scheme and seed, so each point has its own folder.
    for point in dict.fromkeys(each.point for each in wanted):
        of_point = [each for each in wanted if each.point == point]
        with tempfile.TemporaryDirectory(prefix="anabranch-report-") as folder:
            differences |= _repeat_point(results, dict(point), of_point, use, Path(folder))
    return differences


def _repeat_point(
    results: Results, point: Point, wanted: Sequence[RunKey], use: Callable[[RunKey, Series], None], folder: Path
) -> dict[RunKey, list[str]]:
    from anabranch.series import Series

    text, name = results.scenario_at(point), results.manifest["scenario_name"]
    scenario = Scenario.parse(text, name)
    jobs = [(_native.Prepared(text, each.scheme, "", name), each.seed) for each in wanted]
    differences: dict[RunKey, list[str]] = {}

    def done(index: int, figures: str) -> None:
        result = json.loads(figures)
        run, traces = run_of(scenario, result), folder / result["label"]
        use(wanted[index], Series(traces))
        shutil.rmtree(traces)
        tables = {"runs": run.to_pandas("runs"), "paths": run.to_pandas("paths"), "flows": run.to_pandas("flows")}
        differences[wanted[index]] = list(_differences(results, wanted[index], tables))

    _native.run_batch(jobs, done, trace=folder)
    return differences


def _differences(results: Results, wanted: RunKey, made: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yields the differences in the rows of a run, of its paths and of its flows."""
    for table in ("runs", "paths", "flows"):
        stored = at_point(results.to_pandas(table), dict(wanted.point))
        stored = stored[(stored["scheme"] == wanted.scheme) & (stored["seed"] == wanted.seed)]
        now = made[table]
        if len(stored) != len(now):
            yield f"{len(stored)} {table} in the results and {len(now)} now"
            continue
        for column in now.columns.intersection(stored.columns):
            for old, new in zip(stored[column], now[column], strict=True):
                if not _equal(old, new):
                    yield f"{table.removesuffix('s')} {column} is {_shown(old)} in the results and {_shown(new)} now"


def _equal(old: Any, new: Any) -> bool:
    if _missing(old) or _missing(new):
        return _missing(old) and _missing(new)
    if isinstance(old, str) or isinstance(new, str):
        return bool(old == new)
    return math.isclose(old, new, rel_tol=_TOLERANCE, abs_tol=0.0)


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _shown(value: Any) -> str:
    return "missing" if _missing(value) else f"{value}"
