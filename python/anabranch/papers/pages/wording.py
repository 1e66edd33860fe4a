"""Claims and quantities in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from anabranch.papers.claim import (
    Claim,
    Compare,
    Deferred,
    GainTrend,
    Number,
    Order,
    Quantity,
    Regression,
    Statement,
    Trend,
)
from anabranch.papers.model import Experiment, Value

RANKS = {"H": "headline", "S": "secondary", "W": "weak", "X": "inconsistent or impossible"}

_RELATIONS = {
    "higher": "above",
    "lower": "below",
    "about": "about as",
    "not-lower": "not below",
    "not-higher": "not above",
}
_STATISTICS = {"slope": "slope", "intercept": "intercept", "r2": "R²", "multiple_r": "multiple R"}


def number(value: float) -> str:
    """A number with the digits that a paper would print."""
    return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.6g}"


def claimed(claim: Claim) -> str:
    """What the paper has, as short as a cell of a table."""
    return claimed_by(claim.statement)


def claimed_by(statement: Statement) -> str:
    """See `claimed`."""
    if isinstance(statement, Compare):
        return _compare(statement)
    if isinstance(statement, Number):
        return f"{_range(statement.low, statement.high)} {statement.unit}{_interval(statement.ci95)}"
    if isinstance(statement, Trend):
        return statement.direction if statement.direction != "flat" else "stays about the same"
    if isinstance(statement, Order):
        return " > ".join(statement.a.schemes)
    if isinstance(statement, GainTrend):
        return f"gain {statement.direction}"
    if isinstance(statement, Regression):
        shown = _range(statement.low, statement.high)
        return f"{_STATISTICS[statement.statistic]} {shown} {statement.unit}".rstrip()
    return "open"


def _compare(statement: Compare) -> str:
    if statement.percent is None:
        return _RELATIONS[statement.relation]
    if statement.convention == "drop":
        return f"falls by {statement.percent:g} %"
    divisor = f" of {statement.a.schemes[0]}'s" if statement.convention == "of_a" else ""
    return f"{'+' if statement.relation == 'higher' else '-'}{statement.percent:g} %{divisor}"


def _range(low: float, high: float) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _interval(ci95: tuple[float, float] | None) -> str:
    return f" ({number(ci95[0])} to {number(ci95[1])})" if ci95 else ""


def described(claim: Claim, experiment: Experiment) -> str:
    """The claim as it is checked, in a sentence of the engine's own: what is compared with what, where."""
    statement = claim.statement
    if isinstance(statement, Deferred):
        return f"open: {statement.reason}"
    cells = _cells(statement)
    if isinstance(statement, Compare):
        a, b = quantity(statement.a, experiment), quantity(statement.b, experiment)
        return f"{a} {_RELATIONS[statement.relation]} {b}{_by(statement)}{cells}"
    if isinstance(statement, Order):
        return f"{quantity(statement.a, experiment, ' > ')}{cells}"
    if isinstance(statement, Trend):
        return f"{quantity(statement.a, experiment)} {claimed(claim)} along {statement.axis}{cells}"
    if isinstance(statement, GainTrend):
        points = ", ".join(point.label for point in statement.points)
        a, b = quantity(statement.a, experiment), quantity(statement.b, experiment)
        return f"gain of {a} over {b} {statement.direction} from point to point: {points}"
    if isinstance(statement, Regression):
        return f"{claimed(claim)}, of {quantity(statement.a, experiment)} along {statement.axis}"
    return f"{quantity(statement.a, experiment)} about {claimed(claim)}"


def _by(statement: Compare) -> str:
    return f", {claimed_by(statement)}" if statement.percent is not None else ""


def _cells(statement: Statement) -> str:
    if not isinstance(statement, (Compare, Order, Trend)) or not statement.at_each:
        return ""
    where = " and ".join(statement.at_each)
    share = f" in {statement.share:.0%} of the cells" if statement.share < 1 else ""
    return f", at each {where}{share}"


def quantity(of: Quantity, experiment: Experiment, between: str = ", ") -> str:
    """A quantity: `CMT (cwnd_mean_bytes(path-1), plr2 = 10)`."""
    qualified = []
    if of.measure != experiment.measure:
        qualified.append(str(of.measure))
    if of.experiment and of.experiment != experiment.id:
        qualified.append(of.experiment)
    else:
        qualified += [place(experiment, name, values) for name, values in of.at.items()]
    schemes = between.join(of.schemes)
    return f"{schemes} ({', '.join(qualified)})" if qualified else schemes


def place(experiment: Experiment, name: str, values: tuple[Value, ...]) -> str:
    """Where on an axis: `plr2 = 10`."""
    axis = experiment.axis(name)
    indices = [axis.index(value) for value in values]
    labels = [axis.labels[index] for index in indices if index is not None]
    return f"{name} = {_listed(labels)}"


def _listed(labels: list[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}" if len(labels) > 3 else ", ".join(labels)


def settings(values: Mapping[str, object]) -> str:
    """Values put into a scenario: `path.*.delay = 30 ms`."""
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def estimate_text(mean: float, half_width: float, normal: float) -> str:
    """A mean with Student's interval and, in parentheses, the one that the papers print."""
    if math.isnan(mean):
        return "no value"
    if math.isnan(half_width):
        return f"{mean:.5g}"
    return f"{mean:.5g} ± {half_width:.3g} (± {normal:.3g})"
