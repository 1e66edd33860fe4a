"""Reader of the axes of experiments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from anabranch.experiments.fields import Fields
from anabranch.experiments.model import Axis, Settings
from anabranch.values import Value

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%/]+)")


def read_axis(fields: Fields) -> Axis:
    """Reads one `[[experiment.axis]]`."""
    name = fields.need("name", str)
    values = fields.raw("values")
    if not isinstance(values, list):
        raise fields.error("values", "has to be a list")
    if not values:
        raise fields.error("values", "is empty")
    positions, labels = _positions_and_labels(fields, values, fields.get("scale", float, 1.0))
    return Axis(name, fields.get("label", str, name), tuple(values), _settings(fields, values), positions, labels)


def _settings(fields: Fields, values: list[Value]) -> tuple[Settings, ...]:
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


def _positions_and_labels(
    fields: Fields, values: list[Value], scale: float
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Returns the positions of values on the axis, and their labels.

    Labels that are numbers are also the positions. Otherwise numbers are scaled, quantities with one unit have their
    number as position, and all other values are numbered from 0.
    """
    row = tuple(float(index) for index in range(len(values)))
    given = fields.raw("labels")
    if given is not None:
        if not isinstance(given, list) or len(given) != len(values):
            raise fields.error("labels", f"has to be a list of {len(values)}, one for each value")
        return _scaled(given, 1.0) or row, tuple(str(label) for label in given)
    if scaled := _scaled(values, scale):
        return scaled, tuple(f"{position:g}" for position in scaled)
    found = [_QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None for value in values]
    numbers = [(float(match[1]), match[2]) for match in found if match]
    one_unit = len(numbers) == len(values) and len({unit for _, unit in numbers}) == 1
    positions = _scaled([number for number, _ in numbers], scale) if one_unit else row
    return positions, tuple(str(value) for value in values)


def _scaled(values: Sequence[Any], scale: float) -> tuple[float, ...]:
    """Returns the values multiplied by a factor, or an empty tuple if one of them is not a number."""
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return ()
    # The product is rounded, since 0.07 * 100 is 7.000000000000001 in binary fractions.
    return tuple(float(f"{value * scale:.12g}") for value in values)
