"""Selection of traces for figures: the rows of one flow in one direction, between two times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from anabranch.errors import FigureError
from anabranch.statistics.samples import named

if TYPE_CHECKING:
    from anabranch.series import Series
    from anabranch.simulation import Run


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of a run's rows: one flow in one direction, between two times in seconds."""

    flow: str | None = None
    direction: str | None = None
    between: tuple[float, float] | None = None


def series_of(given: Series | Run) -> Series:
    """Returns the traces of a run. Raises `FigureError` for other objects."""
    from anabranch.series import Series
    from anabranch.simulation import Run

    series = given.series if isinstance(given, Run) else given
    if not isinstance(series, Series):
        raise FigureError(f"expected a Run or the result of read_trace(DIR), not {type(given).__name__}")
    return series


def rows_of(frame: pd.DataFrame, choice: Choice, what: str) -> pd.DataFrame:
    """Returns the rows of `choice`. A flow or direction that is not named has to be the only one.

    Raises `FigureError` if there are none, or several flows or directions.
    """
    for column, wanted in (("flow", choice.flow), ("direction", choice.direction)):
        frame = _only(frame, column, wanted, what)
    if choice.between is not None:
        frame = _between(frame, choice.between, what)
    return frame


def checked(between: tuple[float, float]) -> tuple[float, float]:
    """Returns the two times. Raises `FigureError` unless the first is before the second."""
    start, end = between
    if not start < end:
        raise FigureError(f"between=({start:g}, {end:g}): the first time has to be before the second")
    return start, end


def paths_of(series: Series, rows: pd.DataFrame) -> list[str]:
    """Returns the paths in the order of the scenario, so that each keeps its look, and then others that have rows."""
    senders: Sequence[dict[str, Any]] = series.manifest.get("sender", [])
    known = [str(path) for sender in senders for path in sender.get("paths", [])]
    present = [str(path) for path in rows["path"].dropna().unique()]
    return list(dict.fromkeys([*known, *sorted(present)]))


def title_of(series: Series) -> str:
    """Returns scheme and seed of a run, if its manifest names them: real sockets have no seed."""
    scheme, seed = series.manifest.get("scheme"), series.manifest.get("seed")
    parts = [str(scheme)] if scheme is not None else []
    return ", ".join([*parts, *([f"seed {seed}"] if seed is not None else [])])


def _only(frame: pd.DataFrame, column: str, wanted: str | None, what: str) -> pd.DataFrame:
    if frame.empty:
        raise FigureError(f"the trace has no {what} to draw")
    present = sorted(str(value) for value in frame[column].dropna().unique())
    if wanted is None:
        if len(present) > 1:
            raise FigureError(
                f"the trace has {what} of several {column}s ({named(present)}): choose one with {column}="
            )
        return frame
    if wanted not in present:
        raise FigureError(f"the trace has no {what} of {column} `{wanted}`; it has {named(present)}")
    return frame[frame[column] == wanted]


def _between(frame: pd.DataFrame, between: tuple[float, float], what: str) -> pd.DataFrame:
    start, end = checked(between)
    chosen = frame[(frame["time_s"] >= start) & (frame["time_s"] <= end)]
    if chosen.empty:
        first, last = frame["time_s"].min(), frame["time_s"].max()
        raise FigureError(f"no {what} between {start:g} and {end:g} s: they are from {first:g} to {last:g} s")
    return chosen
