"""The points of results: the values of the swept keys that go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anabranch.quantity import numbers_of
from anabranch.reporting.choice import Choice, ChoiceError, listed

if TYPE_CHECKING:
    import pandas as pd

    from anabranch.results import Results

# A value for each swept key, in their order. The only point of results of which nothing was swept has none.
Point = dict[str, Any]


def points_of(results: Results) -> list[Point]:
    """The points that have runs, in the order of the results."""
    keys = list(results.over)
    if not keys:
        return [{}] if results.runs.num_rows else []
    rows = results.runs.select(keys).to_pylist()
    return list({tuple(row.values()): row for row in rows}.values())


def varied_keys(points: Sequence[Point]) -> list[str]:
    """The keys that have more than one value."""
    keys = points[0] if points else {}
    return [key for key in keys if len({point[key] for point in points}) > 1]


def at_point(frame: pd.DataFrame, point: Point) -> pd.DataFrame:
    """The rows of a table at a point."""
    for key, value in point.items():
        frame = frame[frame[key] == value]
    return frame


def up_to_point(results: Results, point: Point) -> Results:
    """The results of the points before this one."""
    import pyarrow.compute as pc

    keys = results.runs.select(list(point)).to_pylist()
    runs = results.runs.slice(0, keys.index(point))
    ours = {"value_set": runs["run"].combine_chunks()}
    paths, flows = (table.filter(pc.is_in(table["run"], **ours)) for table in (results.paths, results.flows))
    return replace(results, runs=runs, paths=paths, flows=flows)


def chosen_point(choice: Choice, points: Sequence[Point]) -> Point:
    """The first point that has the values of a choice.

    Raises `ChoiceError` with what there is, for keys that were not swept and for values that no point has.
    """
    candidates = list(points)
    for key, text in choice.values:
        if key not in candidates[0]:
            swept = listed(candidates[0]) or "nothing"
            raise ChoiceError(f"`{key}` was not swept; swept were: {swept}")
        matching = [point for point in candidates if _same(key, point[key], text)]
        if not matching:
            values = listed(dict.fromkeys(value_text(point[key]) for point in candidates))
            raise ChoiceError(f"there is no `{key}` of {text}; there are: {values}")
        candidates = matching
    return candidates[0]


def _same(key: str, value: Any, text: str) -> bool:
    """Whether a value is what a command line says: the same words, or the same quantity."""
    if str(value) == text or str(value).lower() == text.lower():
        return True
    both = numbers_of(key, [value, text])
    return both is not None and both.values[0] == both.values[1]


def point_text(point: Point, keys: Sequence[str]) -> str:
    """The values of these keys, without their names."""
    return ", ".join(value_text(point[key]) for key in keys)


def value_text(value: Any) -> str:
    """A value as it would be given: a column of numbers has `0.0` where the sweep had `0`.

    >>> value_text(0.0), value_text(0.05), value_text("20 ms")
    ('0', '0.05', '20 ms')
    """
    return f"{value:.12g}" if isinstance(value, float) else str(value)
