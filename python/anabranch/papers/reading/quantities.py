"""Measures and what they are asked of, as they stand in tables of experiments and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.papers.measures import MEASURES
from anabranch.papers.model import Axis, Measure, Value
from anabranch.papers.reading.fields import Fields, hint

PARAMETERS = ("path", "flow", "window_s", "time_s")


def read_measure(fields: Fields, default: Measure | None) -> Measure:
    """The measure that a table names, with its parameters; what it does not say is as in `default`.

    The parameters of `default` hold only for the measure that it names.
    """
    name = fields.maybe("measure", str)
    if name is None and default is None:
        raise fields.error("measure", "is missing")
    if name is not None and name not in MEASURES:
        raise fields.error("measure", f"is `{name}`; {hint(name, MEASURES)}")
    base = default if default is not None and name in (None, default.name) else Measure(name or "")
    return Measure(
        name=base.name,
        path=fields.maybe("path", str) or base.path,
        flow=fields.maybe("flow", str) or base.flow,
        window_s=fields.pair("window_s") or base.window_s,
        time_s=base.time_s if "time_s" not in fields else fields.need("time_s", float),
    )


def check_measure(fields: Fields, measure: Measure, paths: tuple[str, ...], flows: tuple[str, ...]) -> None:
    """Raises an error for a measure that lacks a parameter, has one that it knows nothing of, or an unknown path."""
    definition = MEASURES[measure.name]
    for parameter in PARAMETERS:
        given = getattr(measure, parameter) is not None
        if parameter in definition.needs and not given:
            raise fields.error(parameter, f"is missing: measure `{measure.name}` needs it")
        if given and parameter not in definition.needs | definition.allows:
            raise fields.error(parameter, f"says nothing to measure `{measure.name}`")
    if measure.path is not None and measure.path not in paths:
        raise fields.error("path", f"is `{measure.path}`; {hint(measure.path, paths)}")
    if measure.flow is not None and measure.flow not in flows:
        raise fields.error("flow", f"is `{measure.flow}`; {hint(measure.flow, flows)}")


def read_at(fields: Fields, key: str, axes: tuple[Axis, ...]) -> dict[str, tuple[Value, ...]]:
    """Values of axes, each of which there is."""
    table: Mapping[str, Any] = fields.get(key, dict, {})
    known = {axis.name: axis for axis in axes}
    found: dict[str, tuple[Value, ...]] = {}
    for name, given in table.items():
        if name not in known:
            raise fields.error(key, f"names the axis `{name}`; {hint(name, known)}")
        values = tuple(given) if isinstance(given, list) else (given,)
        for value in values:
            if known[name].index(value) is None:
                shown = ", ".join(repr(own) for own in known[name].values)
                raise fields.error(key, f"has {value!r} for axis `{name}`, which has: {shown}")
        found[name] = values
    return found
