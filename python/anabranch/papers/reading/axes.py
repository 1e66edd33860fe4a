"""Axes of experiments, as they stand in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from anabranch.papers.model import Axis, Settings, Value
from anabranch.papers.reading.fields import Fields

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%/]+)")


def read_axis(fields: Fields) -> Axis:
    """One `[[experiment.axis]]`."""
    name = fields.need("name", str)
    values = tuple(_list(fields, "values"))
    if not values:
        raise fields.error("values", "is empty")
    settings = _settings(fields, values)
    scale = fields.get("scale", float, 1.0)
    positions, labels = _positions(fields, values, scale)
    return Axis(
        name=name,
        label=fields.get("label", str, name),
        values=values,
        settings=settings,
        positions=positions,
        labels=labels,
    )


def _list(fields: Fields, key: str) -> list[Any]:
    value = fields.raw(key)
    if not isinstance(value, list):
        raise fields.error(key, "has to be a list")
    return value


def _settings(fields: Fields, values: tuple[Value, ...]) -> tuple[Settings, ...]:
    keys = fields.texts("key")
    sets = fields.tables("sets")
    if bool(keys) == bool(sets):
        raise fields.error("key", "or `sets` has to be there, and not both: what a value puts into the scenario")
    if keys:
        return tuple(dict.fromkeys(keys, value) for value in values)
    if len(sets) != len(values):
        raise fields.error("sets", f"has {len(sets)} tables for {len(values)} values")
    if any(list(each) != list(sets[0]) for each in sets):
        raise fields.error("sets", "has tables with different keys: each has to have the same, in the same order")
    return tuple(sets)


def _positions(fields: Fields, values: tuple[Value, ...], scale: float) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Where values stand on the axis, and what is written there.

    Labels that are numbers are positions as well. Numbers are scaled, quantities of one unit stand at their number, and
    anything else stands in a row.
    """
    given = fields.raw("labels")
    if given is not None:
        if not isinstance(given, list) or len(given) != len(values):
            raise fields.error("labels", f"has to be a list of {len(values)}, one for each value")
        numbers = _numbers(given, 1.0)
        return numbers or _row(values), tuple(str(label) for label in given)
    scaled = _numbers(values, scale)
    if scaled:
        return scaled, tuple(f"{position:g}" for position in scaled)
    return _quantities(values, scale) or _row(values), tuple(str(value) for value in values)


def _numbers(values: Sequence[Any], scale: float) -> tuple[float, ...]:
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        # What binary fractions make of 0.07 * 100 is not what anybody means.
        return tuple(float(f"{value * scale:.12g}") for value in values)
    return ()


def _quantities(values: Sequence[Any], scale: float) -> tuple[float, ...]:
    found = [_QUANTITY.fullmatch(value.strip()) for value in values if isinstance(value, str)]
    units = {match.group(2) for match in found if match}
    if len(found) == len(values) and None not in found and len(units) == 1:
        return tuple(float(f"{float(match.group(1)) * scale:.12g}") for match in found if match)
    return ()


def _row(values: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(index) for index in range(len(values)))
