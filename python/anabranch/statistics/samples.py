"""Conversion of results to samples: groups of values, and their independence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.values import did_you_mean

if TYPE_CHECKING:
    from anabranch.results import Results

Table = Literal["runs", "paths", "flows"]
SampleOf = Literal["seeds", "points"]
ResultsLike: TypeAlias = "Results | pd.DataFrame"

# Parts of a run that have one row each in a table.
_PARTS: dict[Table, tuple[str, ...]] = {"runs": (), "paths": ("path",), "flows": ("flow",)}
_VALUE = "value"


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of one metric of one table.

    `frame` has a row per run and part; columns: the swept keys, which are `over`, then `scheme`, `seed`, `parts`, those
    of `by`, and `value`.
    """

    frame: pd.DataFrame
    metric: str
    over: tuple[str, ...]
    parts: tuple[str, ...]

    @property
    def groups(self) -> list[str]:
        """Default columns for grouping rows: point, scheme, and path or flow."""
        return [*self.over, "scheme", *self.parts]


def samples_of(
    results: ResultsLike, metric: str, table: Table | None = None, by: Sequence[str] | None = None
) -> Samples:
    """Returns the rows of `metric`, which have to be unique.

    If `table` is not given, the metric is taken from the first of runs, flows and paths that contains it. `by` may name
    further columns that distinguish rows. Raises `StatisticsError` for a metric that no table has, for one that is not
    a number, and for duplicate rows.
    """
    chosen, data = _find(results, metric, table)
    over = tuple(str(key) for key in swept_keys(results, data))
    parts = tuple(part for part in _PARTS[chosen] if part in data.columns)
    keys = list(dict.fromkeys([*over, "scheme", "seed", *parts, *(by or [])]))
    _need(data, keys)
    frame = data[keys].copy()
    frame[_VALUE] = _numbers(data[metric], metric)
    _refuse_twice(frame, keys)
    return Samples(frame, metric, over, parts)


def swept_keys(results: ResultsLike, data: pd.DataFrame) -> Iterable[str]:
    """Returns the swept keys of results, in order; of a bare frame, the columns whose name has a dot, as all keys."""
    if isinstance(results, pd.DataFrame):
        return [column for column in data.columns if "." in str(column)]
    return tuple(results.over)


def as_list(by: str | Sequence[str] | None, default: Sequence[str]) -> list[str]:
    """Returns `by` as a list of columns."""
    if by is None:
        return list(default)
    return [by] if isinstance(by, str) else list(by)


def collapsed(samples: Samples, by: Sequence[str], of: SampleOf) -> pd.DataFrame:
    """Returns the values that are independent of each other within each group of `by`.

    Columns: those of `by`, `seed` if the samples are seeds, `value`, and `left_out`: true for a row of values that
    could not be used, whose `value` is NaN.

    `of="seeds"`: if `by` omits swept keys, the mean over their points for each seed that has a value at all of them.
    `of="points"`: for each point, the mean over its seeds.
    """
    rest = _left_out_keys(samples, by, of)
    frame = samples.frame
    if not rest:
        return frame.assign(left_out=frame[_VALUE].isna())
    if of == "points":
        unit = [*by, *rest]
        means = frame.groupby(unit, sort=False, dropna=False, observed=True)[_VALUE].mean().reset_index()
        return means.assign(left_out=means[_VALUE].isna())
    points = frame.groupby(list(by), sort=False, dropna=False, observed=True)
    expected = points[list(rest)].apply(lambda part: len(part.drop_duplicates())).rename("expected")
    unit = list(dict.fromkeys([*by, "seed"]))
    found = frame.groupby(unit, sort=False, dropna=False, observed=True)[_VALUE].agg(["mean", "count"]).reset_index()
    found = found.merge(expected.reset_index(), on=list(by), how="left")
    complete = found["count"] == found["expected"]
    found[_VALUE] = found["mean"].where(complete)
    return found[[*unit, _VALUE]].assign(left_out=~complete)


def _left_out_keys(samples: Samples, by: Sequence[str], of: SampleOf) -> list[str]:
    _need(samples.frame, by)
    for key in ("scheme", *samples.parts):
        if key not in by and samples.frame[key].nunique(dropna=False) > 1:
            raise StatisticsError(
                f"by={list(by)!r} leaves out `{key}`, of which there are several: a mean over them is meaningless"
            )
    rest = [key for key in samples.over if key not in by]
    if of not in ("seeds", "points"):
        raise StatisticsError(f"samples={of!r}: expected 'seeds' or 'points'")
    if of == "points" and not rest:
        raise StatisticsError(
            f"samples='points' takes the points of the swept keys that `by` leaves out, and by={list(by)!r} leaves out "
            f"none of {named(samples.over)}"
        )
    return rest


def _find(results: ResultsLike, metric: str, table: Table | None) -> tuple[Table, pd.DataFrame]:
    """Returns the table that has the metric."""
    if isinstance(results, pd.DataFrame):
        frame_table: Table = table or table_of_frame(results)
        if metric not in results.columns:
            raise StatisticsError(unknown_metric(metric, results))
        return frame_table, results
    if not hasattr(results, "to_pandas") or not hasattr(results, "over"):
        raise StatisticsError(f"expected Results or a pandas frame of their runs, not {type(results).__name__}")
    if table is not None and table not in _PARTS:
        raise StatisticsError(f"table={table!r}: expected one of {named(_PARTS)}")
    candidates: list[Table] = [table] if table else ["runs", "flows", "paths"]
    for candidate in candidates:
        data = results.to_pandas(candidate)
        if metric in data.columns:
            return candidate, data
    frames = [results.to_pandas(candidate) for candidate in candidates]
    raise StatisticsError(unknown_metric(metric, *frames))


def table_of_frame(frame: pd.DataFrame) -> Table:
    """Returns the table of a bare frame, by the columns that only one table has."""
    if "flow" in frame.columns:
        return "flows"
    return "paths" if "path" in frame.columns else "runs"


def unknown_metric(metric: str, *frames: pd.DataFrame) -> str:
    """Returns the error text for a metric that none of the tables has."""
    known = dict.fromkeys(name for frame in frames for name in metrics_of(frame))
    return f"unknown metric `{metric}`; {did_you_mean(metric, list(known))}choose one of {named(known)}"


def metrics_of(frame: pd.DataFrame) -> list[str]:
    """Returns the columns of figures: numbers that are neither seeds nor swept keys."""
    numeric = frame.select_dtypes(include="number").columns
    return [str(name) for name in numeric if name != "seed" and "." not in str(name)]


def _need(frame: pd.DataFrame, columns: Iterable[str]) -> None:
    for column in columns:
        if column not in frame.columns:
            raise StatisticsError(f"unknown column `{column}`; choose one of {named(frame.columns)}")


def _numbers(column: pd.Series[Any], metric: str) -> pd.Series[Any]:
    if pd.api.types.is_bool_dtype(column) or not (pd.api.types.is_numeric_dtype(column) or column.isna().all()):
        raise StatisticsError(f"`{metric}` does not contain numbers but {column.dtype} values, which have no mean")
    numbers = pd.to_numeric(column).astype(float)
    if np.isinf(numbers).any():
        raise StatisticsError(f"`{metric}` has an infinite value, which has no mean")
    return numbers


def _refuse_twice(frame: pd.DataFrame, keys: Sequence[str]) -> None:
    twice = frame[frame.duplicated(list(keys))]
    if not twice.empty:
        where = ", ".join(f"{key} {twice.iloc[0][key]}" for key in keys)
        raise StatisticsError(
            f"there is more than one row for {where}: repeating a run with the same seed gives no new "
            "sample; remove the copies, or add a column in which these rows differ to `by`"
        )


def named(names: Iterable[object]) -> str:
    """Returns names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names) or "none"
