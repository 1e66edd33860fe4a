"""Claims as data: what a paper says about quantities that its experiments measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from anabranch.papers.model import Measure, Value

Rank = Literal["H", "S", "W", "X"]
"""How much depends on it: headline, secondary, weak (reported only), and what is inconsistent or impossible."""

Status = Literal["ok", "derived", "suspect", "inconsistent", "misprint"]
"""Whether the paper prints it and agrees with itself about it. Derived: computed from figures that it prints."""

Relation = Literal["higher", "lower", "about", "not-lower", "not-higher"]

Convention = Literal["of_b", "of_a", "drop"]
"""What a percentage divides by: 100 |a - b| / b, 100 |a - b| / a, or 100 (first - last) / first with b as the first."""

Slope = Literal["rising", "falling"]

Statistic = Literal["slope", "intercept", "r2", "multiple_r"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is measured of which runs.

    `schemes` are the paper's names, several for a quantity that stands for each of them. `at` narrows axes down to some
    of their values; over axes and values that it leaves open the quantity is the mean. `experiment` is another than
    the claim's own, if not empty.
    """

    schemes: tuple[str, ...]
    measure: Measure
    at: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class Compare:
    """a is higher or lower than b, or about the same, if need be by so many percent.

    With `each`, a and b are of the same scheme, and the claim holds for each of them. With `at_each`, it is made at
    each value of these axes; it holds if it does at the `share` of them.
    """

    a: Quantity
    b: Quantity
    relation: Relation
    percent: float | None = None
    convention: Convention = "of_b"
    within_percent: float = 5.0
    each: bool = False
    at_each: tuple[str, ...] = ()
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Number:
    """a is about so much: from `low` to `high`, which are the same for a single number."""

    a: Quantity
    low: float
    high: float
    unit: str
    ci95: tuple[float, float] | None = None
    within_percent: float = 25.0


@dataclass(frozen=True, slots=True)
class Trend:
    """The quantity of each scheme rises or falls along an axis, or stays about the same (`flat`)."""

    a: Quantity
    axis: str
    direction: Literal["rising", "falling", "flat"]
    within_percent: float = 5.0
    at_each: tuple[str, ...] = ()
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Order:
    """Schemes from the highest to the lowest, on average or at each value of the axes in `at_each`."""

    a: Quantity
    at_each: tuple[str, ...] = ()
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class GainTrend:
    """By how many percent a is above b rises or falls from each point to the next."""

    a: Quantity
    b: Quantity
    points: tuple[Point, ...]
    direction: Slope
    convention: Convention = "of_b"


@dataclass(frozen=True, slots=True)
class Point:
    """Where a gain is measured."""

    label: str
    at: Mapping[str, tuple[Value, ...]]
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class Regression:
    """A figure of the least-squares line through the means at the positions of an axis."""

    a: Quantity
    axis: str
    statistic: Statistic
    low: float
    high: float
    unit: str = ""
    within_percent: float = 25.0


@dataclass(frozen=True, slots=True)
class Deferred:
    """Nothing here can judge it yet."""

    reason: str


Statement: TypeAlias = "Compare | Number | Trend | Order | GainTrend | Regression | Deferred"

KINDS: dict[str, type] = {
    "compare": Compare,
    "value": Number,
    "trend": Trend,
    "order": Order,
    "gain-trend": GainTrend,
    "regression": Regression,
    "deferred": Deferred,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a paper. `contradiction` names the contradiction inside the paper that it is part of, as `I2`."""

    id: str
    experiment: str
    rank: Rank
    status: Status
    says: str
    kind: str
    statement: Statement
    contradiction: str = ""
    note: str = ""

    @property
    def contradictory(self) -> bool:
        """Whether the paper contradicts itself so that nothing can be held against it."""
        return self.status in ("inconsistent", "misprint") or (self.status == "suspect" and self.rank == "X")

    def quantities(self) -> Iterator[tuple[str, Quantity]]:
        """Every quantity that it needs, with the id of the experiment that measures it."""
        statement = self.statement
        if isinstance(statement, Deferred):
            return
        sides = [statement.a, statement.b] if isinstance(statement, (Compare, GainTrend)) else [statement.a]
        for side in sides:
            if isinstance(statement, GainTrend):
                for point in statement.points:
                    at = {**side.at, **point.at}
                    experiment = point.experiment or side.experiment or self.experiment
                    yield experiment, Quantity(side.schemes, side.measure, at, experiment)
            else:
                yield side.experiment or self.experiment, side
