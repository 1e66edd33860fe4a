"""Points of results: combinations of values of the swept keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anabranch.quantity import numbers_of
from anabranch.reporting.choice import Choice, ChoiceError, listed

if TYPE_CHECKING:
    import pandas as pd

    from anabranch.results import Results

# A value for each swept key, in their order. Empty if nothing was swept.
Point = dict[str, Any]


def points_of(results: Results) -> list[Point]:
    """Returns the points that have runs, in the order of the results."""
    keys = list(results.over)
    if not keys:
        return [{}] if results.runs.num_rows else []
    rows = results.runs.select(keys).to_pylist()
    return list({tuple(row.values()): row for row in rows}.values())


def varied_keys(points: Sequence[Point]) -> list[str]:
    """Returns the keys that have more than one value."""
    keys = points[0] if points else {}
    return [key for key in keys if len({point[key] for point in points}) > 1]


def at_point(frame: pd.DataFrame, point: Point) -> pd.DataFrame:
    """Returns the rows of a table at a point."""
    for key, value in point.items():
        frame = frame[frame[key] == value]
    return frame


def up_to_point(results: Results, point: Point) -> Results:
    """Returns the results of the points before this one."""
    import pyarrow.compute as pc

    keys = results.runs.select(list(point)).to_pylist()
    runs = results.runs.slice(0, keys.index(point))
    ours = {"value_set": runs["run"].combine_chunks()}
    paths, flows = (table.filter(pc.is_in(table["run"], **ours)) for table in (results.paths, results.flows))
    return replace(results, runs=runs, paths=paths, flows=flows)


def chosen_point(choice: Choice, points: Sequence[Point]) -> Point:
    """Returns the first point that has the values of a choice.

    Raises `ChoiceError` with the alternatives, for keys that were not swept and for values that no point has.
    """
    candidates = list(points)
    for key, text in choice.values:
        if key not in candidates[0]:
            swept = listed(candidates[0]) or "nothing"
            raise ChoiceError(f"`{key}` was not swept; swept were: {swept}")
        matching = [point for point in candidates if _same(key, point[key], text)]
        if not matching:
            values = listed(dict.fromkeys(value_text(point[key]) for point in candidates))
            raise ChoiceError(f"no `{key}` of {text}; choose one of: {values}")
        candidates = matching
    return candidates[0]


def _same(key: str, value: Any, text: str) -> bool:
    """Returns `True` if a value equals the text of a command line: as text, or as a quantity."""
    if str(value) == text or str(value).lower() == text.lower():
        return True
    both = numbers_of(key, [value, text])
    return both is not None and both.values[0] == both.values[1]


def point_text(point: Point, keys: Sequence[str]) -> str:
    """Returns the values of these keys, without their names."""
    return ", ".join(value_text(point[key]) for key in keys)


def value_text(value: Any) -> str:
    """Returns a value as a user would write it: a column of numbers has `0.0` where the sweep had `0`.

    >>> value_text(0.0), value_text(0.05), value_text("20 ms")
    ('0', '0.05', '20 ms')
    """
    return f"{value:.12g}" if isinstance(value, float) else str(value)
