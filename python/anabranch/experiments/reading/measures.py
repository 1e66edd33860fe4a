"""Reader of measures and values of axes in tables of experiments and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from anabranch.experiments.fields import Fields
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.measures.definition import Parameter
from anabranch.experiments.model import Axis, Measure, Names
from anabranch.values import Value


def read_measure(fields: Fields, default: Measure) -> Measure:
    """Reads the measure of a table with its parameters.

    Omitted keys have the values of `default`, whose parameters apply to the same measure only.
    """
    name = fields.choice("measure", MEASURES, default.name)
    base = default if name == default.name else Measure(name)
    time_s = fields.maybe("time_s", float)
    return Measure(
        name=name,
        path=fields.maybe("path", str) or base.path,
        flow=fields.maybe("flow", str) or base.flow,
        window_s=fields.pair("window_s") or base.window_s,
        time_s=base.time_s if time_s is None else time_s,
    )


def check_measure(fields: Fields, measure: Measure, names: Names) -> None:
    """Raises an error if a measure lacks a required parameter, or has an unknown one."""
    definition = MEASURES[measure.name]
    for parameter in get_args(Parameter):
        given = getattr(measure, parameter) is not None
        if parameter in definition.needs and not given:
            raise fields.error(parameter, f"is missing: measure `{measure.name}` needs it")
        if given and parameter not in definition.needs | definition.allows:
            raise fields.error(parameter, f"has no meaning for measure `{measure.name}`")
    fields.check_known("path", [measure.path] if measure.path else [], names.paths, "is `{}`")
    fields.check_known("flow", [measure.flow] if measure.flow else [], names.flows, "is `{}`")


def read_at(fields: Fields, key: str, axes: tuple[Axis, ...]) -> dict[str, tuple[Value, ...]]:
    """Reads values of axes. Raises an error for an unknown axis or value."""
    table: Mapping[str, Any] = fields.get(key, dict, {})
    known = {axis.name: axis for axis in axes}
    fields.check_known(key, table, known, "names the axis `{}`")
    found = {name: tuple(given) if isinstance(given, list) else (given,) for name, given in table.items()}
    for name, values in found.items():
        check_values(fields, key, known[name], values)
    return found


def check_values(fields: Fields, key: str, axis: Axis, values: tuple[Value, ...]) -> None:
    """Raises an error for a value that an axis does not have."""
    for value in values:
        if axis.index(value) is None:
            shown = ", ".join(repr(own) for own in axis.values)
            raise fields.error(key, f"has {value!r} for axis `{axis.name}`, which has: {shown}")
