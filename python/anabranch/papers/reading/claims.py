"""`claims.toml`: what a paper says about what its experiments measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from anabranch.papers.claim import (
    KINDS,
    Claim,
    Compare,
    Convention,
    Deferred,
    GainTrend,
    Number,
    Order,
    Point,
    Quantity,
    Rank,
    Regression,
    Relation,
    Slope,
    Statement,
    Statistic,
    Status,
    Trend,
)
from anabranch.papers.model import Axis, Experiment, Measure, Value
from anabranch.papers.reading.fields import Fields, each, hint, read_toml, unique
from anabranch.papers.reading.quantities import check_measure, read_at, read_measure
from anabranch.papers.resolving import Names, names_in, resolved

ALL = "all"


@dataclass(frozen=True, slots=True)
class _Context:
    """What a claim is read against: its experiment, all of the paper's, and what holds for all of its quantities."""

    experiment: Experiment
    experiments: Mapping[str, Experiment]
    names: Mapping[str, Names]
    measure: Measure
    at: Mapping[str, tuple[Value, ...]]


def read_claims(path: Path, experiments: tuple[Experiment, ...]) -> tuple[Claim, ...]:
    """All claims of a file about these experiments."""
    top = Fields(read_toml(path), path, "")
    tables = top.tables("claim")
    top.done()
    known = {experiment.id: experiment for experiment in experiments}
    names = {identity: _names(experiment) for identity, experiment in known.items()}
    claims = each(tables, path, "claim", lambda fields: _claim(fields, known, names))
    unique((claim.id for claim in claims), path, "the claims")
    return claims


def _names(experiment: Experiment) -> Names:
    if not experiment.scenario.name:
        return Names((), ())
    return names_in(resolved(experiment.scenario, experiment.set))


def _claim(fields: Fields, known: Mapping[str, Experiment], names: Mapping[str, Names]) -> Claim:
    identity = fields.need("id", str)
    experiment = known[fields.choice("experiment", known)]
    kind = fields.choice("kind", KINDS)
    rank: Any = fields.choice("rank", get_args(Rank))
    status: Any = fields.choice("status", get_args(Status), "ok")
    contradiction = fields.get("contradiction", str, "")
    note = fields.get("note", str, "")
    says = fields.need("says", str)
    if status != "ok" and not (contradiction or note):
        raise fields.error("note", f"is missing: status `{status}` needs `contradiction` or `note` to say why")
    if experiment.deferred and kind != "deferred":
        raise fields.error("kind", f"is `{kind}`, but experiment `{experiment.id}` is deferred: {experiment.deferred}")
    statement = _statement(fields, kind, _context(fields, kind, experiment, known, names))
    return Claim(identity, experiment.id, rank, status, says, kind, statement, contradiction, note)


def _context(
    fields: Fields, kind: str, experiment: Experiment, known: Mapping[str, Experiment], names: Mapping[str, Names]
) -> _Context:
    if kind == "deferred":
        return _Context(experiment, known, names, experiment.measure, {})
    return _Context(
        experiment, known, names, read_measure(fields, experiment.measure), read_at(fields, "at", experiment.axes)
    )


def _statement(fields: Fields, kind: str, context: _Context) -> Statement:
    readers: dict[str, Callable[[Fields, _Context], Statement]] = {
        "compare": _compare,
        "value": _number,
        "trend": _trend,
        "order": _order,
        "gain-trend": _gain_trend,
        "regression": _regression,
        "deferred": lambda inner, _: Deferred(inner.need("reason", str)),
    }
    return readers[kind](fields, context)


def _quantity(fields: Fields, key: str, context: _Context, schemes: tuple[str, ...] = ()) -> Quantity:
    """The quantity in the table `key`; `schemes` are those of a claim that is made for each of them."""
    inner = fields.inner(key)
    if inner is None:
        raise fields.error(key, 'is missing; it has to be a table such as { scheme = "CMT" }')
    other = inner.maybe("experiment", str)
    if other is not None and other not in context.experiments:
        raise inner.error("experiment", f"is `{other}`; {hint(other, context.experiments)}")
    experiment = context.experiments[other] if other else context.experiment
    if schemes and "scheme" in inner:
        raise inner.error("scheme", "is there, and so is `schemes` of the claim: leave one of them out")
    chosen = schemes or _schemes(inner, "scheme", experiment)
    measure = read_measure(inner, context.measure)
    names = context.names[experiment.id]
    check_measure(inner, measure, names.paths, names.flows)
    at = {name: values for name, values in context.at.items() if name in {axis.name for axis in experiment.axes}}
    quantity = Quantity(chosen, measure, {**at, **read_at(inner, "at", experiment.axes)}, other or "")
    inner.done()
    return quantity


def _schemes(fields: Fields, key: str, experiment: Experiment, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    names = fields.texts(key) or default
    if not names:
        raise fields.error(key, f"is missing; {hint('', experiment.schemes)}")
    if names == (ALL,):
        return tuple(experiment.schemes)
    for name in names:
        if name not in experiment.schemes:
            raise fields.error(key, f"is `{name}`; {hint(name, experiment.schemes)}")
    return names


def _own(fields: Fields, context: _Context, schemes: tuple[str, ...]) -> Quantity:
    """The quantity that measure, parameters and `at` of the claim itself describe."""
    names = context.names[context.experiment.id]
    check_measure(fields, context.measure, names.paths, names.flows)
    return Quantity(schemes, context.measure, context.at)


def _axis(fields: Fields, context: _Context) -> Axis:
    name = fields.choice("axis", [axis.name for axis in context.experiment.axes])
    return context.experiment.axis(name)


def _cells(fields: Fields, context: _Context) -> tuple[tuple[str, ...], float]:
    """The axes at each of whose values a claim is made, and at what share of them it has to hold."""
    axes = fields.texts("at_each")
    known = [axis.name for axis in context.experiment.axes]
    for name in axes:
        if name not in known:
            raise fields.error("at_each", f"has `{name}`; {hint(name, known)}")
    share = fields.get("share", float, 1.0)
    if not 0.5 < share <= 1 or (share < 1 and not axes):
        raise fields.error("share", f"is {share:g}; it goes with `at_each` and lies above 0.5, up to 1")
    return axes, share


def _compare(fields: Fields, context: _Context) -> Compare:
    each_scheme = "schemes" in fields
    schemes = _schemes(fields, "schemes", context.experiment) if each_scheme else ()
    relation: Any = fields.choice("relation", get_args(Relation))
    percent = fields.maybe("percent", float)
    convention: Any = fields.choice("convention", get_args(Convention), "of_b")
    if relation not in ("higher", "lower") and percent:
        raise fields.error("percent", f"does not go with relation `{relation}`; use `within_percent`")
    if percent is not None and percent < 0:
        raise fields.error("percent", "is negative; the relation says the sign")
    if convention == "drop" and relation != "lower":
        raise fields.error("convention", "is `drop`, so the relation has to be `lower`: a is the last, b the first")
    axes, share = _cells(fields, context)
    return Compare(
        a=_quantity(fields, "a", context, schemes),
        b=_quantity(fields, "b", context, schemes),
        relation=relation,
        percent=percent or None,
        convention=convention,
        within_percent=_within(fields, 5.0),
        each=each_scheme,
        at_each=axes,
        share=share,
    )


def _within(fields: Fields, default: float) -> float:
    within = fields.get("within_percent", float, default)
    if within <= 0:
        raise fields.error("within_percent", f"is {within:g}; it has to be above 0")
    return within


def _value(fields: Fields) -> tuple[float, float]:
    numbers = fields.numbers("value")
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise fields.error("value", "has to be a number, or two of which the smaller comes first")
    return numbers[0], numbers[-1]


def _number(fields: Fields, context: _Context) -> Number:
    low, high = _value(fields)
    return Number(
        a=_quantity(fields, "a", context),
        low=low,
        high=high,
        unit=fields.need("unit", str),
        ci95=fields.pair("ci95"),
        within_percent=_within(fields, 25.0),
    )


def _trend(fields: Fields, context: _Context) -> Trend:
    direction: Any = fields.choice("direction", ["rising", "falling", "flat"])
    axis = _axis(fields, context)
    every = tuple(context.experiment.schemes)
    axes, share = _cells(fields, context)
    if axis.name in axes:
        raise fields.error("at_each", f"has `{axis.name}`, along which the trend goes")
    if len(context.at.get(axis.name, axis.values)) < 2:
        raise fields.error("at", f"leaves one value of axis `{axis.name}`, along which there is no trend")
    return Trend(
        a=_own(fields, context, _schemes(fields, "schemes", context.experiment, every)),
        axis=axis.name,
        direction=direction,
        within_percent=_within(fields, 5.0),
        at_each=axes,
        share=share,
    )


def _order(fields: Fields, context: _Context) -> Order:
    schemes = _schemes(fields, "schemes", context.experiment)
    if len(schemes) < 2 or len(set(schemes)) < len(schemes):
        raise fields.error("schemes", "has to have two different schemes at least, the highest first")
    axes, share = _cells(fields, context)
    return Order(a=_own(fields, context, schemes), at_each=axes, share=share)


def _gain_trend(fields: Fields, context: _Context) -> GainTrend:
    direction: Any = fields.choice("direction", get_args(Slope))
    convention: Any = fields.choice("convention", ["of_b", "of_a"], "of_b")
    a, b = _quantity(fields, "a", context), _quantity(fields, "b", context)
    if len(a.schemes) > 1 or len(b.schemes) > 1:
        raise fields.error("a", "and `b` have to name one scheme each")
    points = _points(fields, context)
    if len(points) < 2:
        raise fields.error("points", "has to have two points at least")
    return GainTrend(a=a, b=b, points=points, direction=direction, convention=convention)


def _points(fields: Fields, context: _Context) -> tuple[Point, ...]:
    """Values of an axis, all of it if none are named, or tables that name another experiment or several axes."""
    given = fields.raw("points")
    if isinstance(given, list) and all(isinstance(point, dict) for point in given):
        return tuple(_point(fields, table, context) for table in given)
    axis = _axis(fields, context)
    values = axis.values if given is None else given
    if not isinstance(values, (list, tuple)):
        raise fields.error("points", "has to be a list")
    points = []
    for value in values:
        index = axis.index(value)
        if index is None:
            shown = ", ".join(repr(own) for own in axis.values)
            raise fields.error("points", f"has {value!r}; axis `{axis.name}` has: {shown}")
        points.append(Point(axis.labels[index], {axis.name: (value,)}))
    return tuple(points)


def _point(fields: Fields, table: dict[str, Any], context: _Context) -> Point:
    inner = Fields(table, fields.file, f"{fields.where}, points")
    name = inner.get("experiment", str, "")
    if name and name not in context.experiments:
        raise inner.error("experiment", f"is `{name}`; {hint(name, context.experiments)}")
    experiment = context.experiments[name] if name else context.experiment
    at = read_at(inner, "at", experiment.axes)
    shown = ", ".join(str(value) for values in at.values() for value in values)
    point = Point(inner.get("label", str, shown or name), at, name)
    inner.done()
    return point


def _regression(fields: Fields, context: _Context) -> Regression:
    statistic: Any = fields.choice("statistic", get_args(Statistic))
    low, high = _value(fields)
    axis = _axis(fields, context)
    a = _quantity(fields, "a", context)
    if len(a.at.get(axis.name, axis.values)) < 3:
        raise fields.error("at", f"leaves fewer than three values of axis `{axis.name}` for a line")
    return Regression(
        a=a,
        axis=axis.name,
        statistic=statistic,
        low=low,
        high=high,
        unit=fields.get("unit", str, ""),
        within_percent=_within(fields, 25.0),
    )
