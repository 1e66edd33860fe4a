"""What a measure is: its unit, its definition, and how it is computed."""

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
"""The last second of a run that a measure reads; `None` if it reads all."""


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
"""Steps in which figures are printed, by unit: counts in ones, and the rest as the papers have it."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A measure. Exactly one of `of_runs` and `of_trace` is there. `label` is what an axis says in front of the unit.

    `of_runs` takes the tables of a sweep and gives a value for each run, under the run's key. `of_trace` takes one
    traced run and gives its value. NaN stands for a run without a value. A traced measure that is computed otherwise
    than before gets another `version`, so that no value from a cache is taken for it. Of its trace it reads `table`,
    and nothing after the second `until`. `grows` is for counts that are the larger the longer a run lasts.
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
        """The step in which figures of the measure are printed, which is the tolerance of a claimed zero."""
        return RESOLUTIONS[self.unit]

    @property
    def traced(self) -> bool:
        """Whether it takes a trace of every run."""
        return self.of_trace is not None


MEASURES: dict[str, Definition] = {}
"""All measures by name."""

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
    """Makes a function a measure, which is called by the function's name and defined by its docstring.

    One that `reads` a table of a trace takes traces.
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
