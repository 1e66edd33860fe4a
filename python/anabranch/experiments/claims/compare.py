"""Claims of kind `compare`: one quantity is above, below or about another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from anabranch.experiments.claims.context import Context, read_schemes
from anabranch.experiments.claims.quantity import At, PairedSamples, Quantity
from anabranch.experiments.claims.statement import CellStatement
from anabranch.experiments.fields import Fields
from anabranch.experiments.model import Experiment
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.rules import Convention, Relation, compare

_RELATIONS = {
    "higher": "above",
    "lower": "below",
    "about": "about as",
    "not-lower": "not below",
    "not-higher": "not above",
}


@dataclass(frozen=True, slots=True)
class Compare(CellStatement):
    """Claim that quantity `a` is higher or lower than `b`, or about the same. `percent` is the claimed difference.

    If `each` is set, `a` and `b` have the same scheme, and the claim is about each scheme.
    """

    a: Quantity
    b: Quantity
    relation: Relation
    percent: float | None = None
    convention: Convention = "of_b"
    within_percent: float = 5.0
    each: bool = False

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Compare:
        each = "schemes" in fields
        schemes = read_schemes(fields, "schemes", context.experiment) if each else ()
        statement = fields.fill(
            cls,
            a=context.quantity(fields, "a", schemes),
            b=context.quantity(fields, "b", schemes),
            percent=fields.maybe("percent", float),
            within_percent=fields.positive("within_percent", 5.0),
            each=each,
            **cls.read_cells(fields, context.experiment),
        )
        if statement.relation not in ("higher", "lower") and statement.percent is not None:
            raise fields.error("percent", f"does not go with relation `{statement.relation}`; use `within_percent`")
        if statement.percent is not None and statement.percent <= 0:
            raise fields.error(
                "percent", "has to be above 0; the relation gives the sign, and `about` is for no difference"
            )
        if statement.convention == "drop" and statement.relation != "lower":
            raise fields.error("convention", "is `drop`, so the relation has to be `lower`: a is the last, b the first")
        return statement

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        schemes = self.a.schemes
        if self.each:
            pairs = {scheme: (scheme, scheme) for scheme in schemes}
        else:
            pairs = {f"{a} to {b}": (a, b) for a, b in itertools.product(schemes, self.b.schemes)}
        for label, pair in pairs.items():
            finding = self.in_cells(samples.grid(self.a), self.a.at, partial(self._check, samples, pair))
            yield Part(label if len(pairs) > 1 else "", finding)

    def _check(self, samples: PairedSamples, schemes: tuple[str, str], at: At, family: int) -> Finding:
        a, b = samples.pair(self.a, self.b, schemes, at)
        # A claim about several cells has its size from their average.
        percent = self.percent if family == 1 else None
        return compare(a, b, self.relation, percent, self.convention, self.within_percent, family)

    def claimed(self) -> str:
        if self.percent is None:
            return _RELATIONS[self.relation]
        if self.convention == "drop":
            return f"falls by {self.percent:g} %"
        divisor = f" of {self.a.schemes[0]}'s" if self.convention == "of_a" else ""
        return f"{'+' if self.relation == 'higher' else '-'}{self.percent:g} %{divisor}"

    def describe(self, experiment: Experiment) -> str:
        by = "" if self.percent is None else f", {self.claimed()}"
        a, b = self.a.describe(experiment), self.b.describe(experiment)
        return f"{a} {_RELATIONS[self.relation]} {b}{by}{self.where()}"
