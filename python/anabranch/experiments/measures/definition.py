"""Definition of a measure: unit, description and computation."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from anabranch.experiments.model import Measure

if TYPE_CHECKING:
    import pandas

    from anabranch.series import Series

Parameter = Literal["path", "flow", "window_s", "time_s"]
TraceTable = Literal["paths", "packets"]
Until: TypeAlias = "Callable[[Measure], float | None]"
"""Last second of a run that a measure reads; `None` for the whole run."""


def _end(asked: Measure) -> float | None:
    return None


RESOLUTIONS = {
    "%": 0.01,
    "1": 0.001,
    "B": 1.0,
    "TSN": 1.0,
    "TSN/s": 1.0,
    "dB": 0.01,
    "kbit/s": 1.0,
    "ms": 1.0,
    "packets": 1.0,
    "per MB": 0.01,
    "per delivered chunk": 0.01,
    "per run": 1.0,
    "per run and path": 1.0,
    "s": 1.0,
}
"""Steps in which figures are printed, by unit: counts are whole numbers."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Measure with exactly one of `of_runs` and `of_trace`. `label` is the text of an axis before the unit.

    `of_runs` returns a value for each run of the tables of a sweep, by the run's key. `of_trace` returns the value of
    one traced run. A run without a value has NaN. A traced measure reads `table` of the trace, up to the second
    `until`. If its computation changes, it needs another `version`, so that cached values are not used. `grows` marks
    counts that grow with the duration of a run.
    """

    name: str
    label: str
    unit: str
    about: str
    source: str
    needs: frozenset[Parameter] = frozenset()
    allows: frozenset[Parameter] = frozenset()
    of_runs: Callable[[Any, Measure], pandas.Series] | None = None
    of_trace: Callable[[Series, Measure], float] | None = None
    table: TraceTable | None = None
    until: Until = _end
    grows: bool = False
    version: int = 1

    @property
    def resolution(self) -> float:
        """Step in which figures of the measure are printed, which is the tolerance of a claimed zero."""
        return RESOLUTIONS[self.unit]

    @property
    def traced(self) -> bool:
        """`True` if the measure needs a trace of every run."""
        return self.of_trace is not None


MEASURES: dict[str, Definition] = {}
"""Measures by name."""

Compute = TypeVar("Compute", bound="Callable[[Any, Measure], Any]")


def measure(
    label: str,
    unit: str,
    source: str,
    *,
    needs: Collection[Parameter] = (),
    allows: Collection[Parameter] = (),
    grows: bool = False,
    reads: TraceTable | None = None,
    until: Until = _end,
) -> Callable[[Compute], Compute]:
    """Registers a function as a measure with the function's name. Its docstring is the definition.

    A measure that `reads` a table of a trace needs traces.
    """

    def define(compute: Compute) -> Compute:
        MEASURES[compute.__name__] = Definition(
            name=compute.__name__,
            label=label,
            unit=unit,
            about=" ".join((compute.__doc__ or "").split()),
            source=source,
            needs=frozenset(needs),
            allows=frozenset(allows),
            of_runs=None if reads else compute,
            of_trace=compute if reads else None,
            table=reads,
            until=until,
            grows=grows,
        )
        return compute

    return define
