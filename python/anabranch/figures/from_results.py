"""Selection of results for figures: the rows of some points and schemes, and the key of the x axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anabranch.errors import FigureError
from anabranch.figures.labels import key_label
from anabranch.quantity import numbers_of
from anabranch.statistics.samples import ResultsLike, Table, named, swept_keys, table_of_frame

TABLES: tuple[Table, ...] = ("runs", "flows", "paths")

# Runs may have several of these.
_PARTS = ("flow", "path")


@dataclass(frozen=True, slots=True)
class View:
    """Selected rows of results. The functions of `anabranch.statistics` accept it as `Results`."""

    frames: Mapping[Table, pd.DataFrame]
    over: tuple[str, ...]

    def to_pandas(self, table: Table = "runs") -> pd.DataFrame:
        return self.frames.get(table, pd.DataFrame())

    @property
    def rows(self) -> pd.DataFrame:
        """The runs, or the only table of a bare frame."""
        return next(iter(self.frames.values()))

    @property
    def schemes(self) -> list[str]:
        """Schemes in the requested order, by default that of the results."""
        return [str(scheme) for scheme in dict.fromkeys(self.rows["scheme"])]

    @property
    def varied(self) -> list[str]:
        """Swept keys that have several values here."""
        return [key for key in self.over if self.rows[key].nunique(dropna=False) > 1]


def view(
    results: ResultsLike, schemes: str | Sequence[str] | None = None, at: Mapping[str, object] | None = None
) -> View:
    """Returns the rows of these schemes (default: all), where swept keys, flow or path have the values of `at`.

    Raises `FigureError` for results without rows, and for schemes, keys and values that they do not have.
    """
    frames: dict[Table, pd.DataFrame]
    if isinstance(results, pd.DataFrame):
        _need_columns(results)
        frames = {table_of_frame(results): results}
    elif hasattr(results, "to_pandas") and hasattr(results, "over"):
        frames = {table: results.to_pandas(table) for table in TABLES}
    else:
        raise FigureError(f"expected Results or a pandas frame of their runs, not {type(results).__name__}")
    rows = next(iter(frames.values()))
    over = tuple(swept_keys(results, rows))
    if rows.empty:
        raise FigureError("the results have no runs to draw")
    if schemes is not None:
        frames = _of_schemes(frames, [schemes] if isinstance(schemes, str) else list(schemes))
    for key, value in (at or {}).items():
        frames = _at(frames, over, key, value)
    return View(frames, over)


def _need_columns(frame: pd.DataFrame) -> None:
    for column in ("scheme", "seed"):
        if column not in frame.columns:
            raise FigureError(f"the frame has no column `{column}`; it has {named(frame.columns)}")


def _of_schemes(frames: dict[Table, pd.DataFrame], schemes: list[str]) -> dict[Table, pd.DataFrame]:
    known = list(dict.fromkeys(next(iter(frames.values()))["scheme"]))
    for scheme in schemes:
        if scheme not in known:
            raise FigureError(f"no runs of `{scheme}`; choose one of {named(known)}")
    # The requested order is that of legends.
    return {
        table: pd.concat([frame[frame["scheme"] == scheme] for scheme in dict.fromkeys(schemes)])
        for table, frame in frames.items()
    }


def _at(frames: dict[Table, pd.DataFrame], over: Sequence[str], key: str, value: object) -> dict[Table, pd.DataFrame]:
    having = [frame for frame in frames.values() if key in frame.columns]
    if key not in over and not (key in _PARTS and having):
        raise FigureError(f"`{key}` was not swept; swept are {named(over)}, and there are {named(_PARTS)}")
    known = list(dict.fromkeys(having[0][key]))
    chosen = next((each for each in known if each == value), None)
    if chosen is None:
        # Numbers from a command line are text.
        chosen = next((each for each in known if _same_number(each, value)), None)
    if chosen is None:
        raise FigureError(f"no `{key}` of {value}; choose one of {named(known)}")
    return {table: frame[frame[key] == chosen] if key in frame.columns else frame for table, frame in frames.items()}


def _same_number(one: Any, other: Any) -> bool:
    try:
        return float(one) == float(other)
    except (TypeError, ValueError):
        return False


def axis_key(of: View, x: str | None) -> str:
    """Returns the swept key for the x axis: `x`, or the only one that has several values."""
    if x is not None:
        if x not in of.over:
            raise FigureError(f"`{x}` was not swept; swept are {named(of.over)}")
        return x
    candidates = of.varied or list(of.over)
    if not candidates:
        raise FigureError("no key was swept, so the figure has no axis; `bars` compares schemes without one")
    if len(candidates) > 1:
        raise FigureError(f"x= has to name the swept key of the axis: {named(candidates)}")
    return candidates[0]


def need_one_point(of: View, along: Sequence[str]) -> None:
    """Raises `FigureError` if swept keys outside `along` vary within one position of the x axis."""
    others = [key for key in of.varied if key not in along]
    if not others:
        return
    places = of.rows.groupby(list(along), dropna=False, observed=True) if along else [((), of.rows)]
    for _, place in places:
        for key in others:
            values = list(dict.fromkeys(place[key]))
            if len(values) > 1:
                raise FigureError(f"`{key}` has several values ({named(values)}); choose one with at={{{key!r}: ...}}")


def need_one_part(of: View, metric: str, table: Table | None) -> None:
    """Raises `FigureError` if the metric has a value for each of several flows or paths."""
    for name in (table,) if table else TABLES:
        frame = of.to_pandas(name)
        if metric in frame.columns:
            for part in _PARTS:
                parts = list(dict.fromkeys(frame[part])) if part in frame.columns else []
                if len(parts) > 1:
                    raise FigureError(
                        f"`{metric}` has a value for each {part} ({named(parts)}); choose one with at={{{part!r}: ...}}"
                    )
            return


def positions(key: str, values: Iterable[object]) -> tuple[dict[Any, float], str] | None:
    """Returns the position of each value on a numeric axis, and the axis label; `None` if the values are words."""
    distinct = list(dict.fromkeys(values))
    numbers = numbers_of(key, distinct)
    if numbers is None or not np.isfinite(numbers.values).all():
        return None
    return dict(zip(distinct, numbers.values, strict=True)), key_label(key, numbers.unit)


def numeric_positions(key: str, values: Iterable[object]) -> tuple[dict[Any, float], str]:
    """Returns the result of `positions`. Raises `FigureError` if the values are words."""
    distinct = list(dict.fromkeys(values))
    found = positions(key, distinct)
    if found is None:
        raise FigureError(
            f"the values of `{key}` are not numbers ({named(distinct)}), so they have no axis; "
            "`bars` draws them side by side"
        )
    return found
