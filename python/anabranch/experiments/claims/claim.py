"""Claim of a source: its form in `claims.toml`, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from anabranch.experiments.claims.compare import Compare
from anabranch.experiments.claims.context import Context
from anabranch.experiments.claims.deferred import Deferred
from anabranch.experiments.claims.gain_trend import GainTrend
from anabranch.experiments.claims.order import Order
from anabranch.experiments.claims.quantity import Grids, PairedSamples, Quantity
from anabranch.experiments.claims.regression import Regression
from anabranch.experiments.claims.statement import Statement
from anabranch.experiments.claims.trend import Trend
from anabranch.experiments.claims.value import Number
from anabranch.experiments.fields import Fields, check_unique, read_each
from anabranch.experiments.model import Experiment
from anabranch.experiments.reading.measures import read_at, read_measure
from anabranch.experiments.samples import LeftOutError
from anabranch.experiments.verdicts.finding import Judgement, Part, worst
from anabranch.experiments.verdicts.grades import Verdict

KINDS: dict[str, type[Statement]] = {
    "compare": Compare,
    "value": Number,
    "trend": Trend,
    "order": Order,
    "gain-trend": GainTrend,
    "regression": Regression,
    "deferred": Deferred,
}

RANKS = {"H": "headline", "S": "secondary", "W": "weak", "X": "inconsistent or impossible"}

Rank = Literal["H", "S", "W", "X"]
"""Rank of a claim: headline, secondary, weak (reported only), and inconsistent or impossible."""

Status = Literal["ok", "derived", "suspect", "inconsistent", "misprint"]
"""Reliability of the printed claim. Derived: computed from figures that the source prints."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a source.

    `contradiction` names the contradiction inside the source to which the claim belongs, such as `I2`.
    """

    id: str
    experiment: str
    rank: Rank
    says: str
    kind: str
    statement: Statement
    status: Status = "ok"
    contradiction: str = ""
    note: str = ""

    @property
    def contradictory(self) -> bool:
        """Returns `True` if the source contradicts itself about this claim."""
        return self.status in ("inconsistent", "misprint") or (self.status == "suspect" and self.rank == "X")

    def quantities(self) -> Iterator[Quantity]:
        """Yields the quantities of the claim with the experiments that measure them."""
        for quantity in self.statement.quantities():
            yield replace(quantity, experiment=quantity.experiment or self.experiment)

    def judge(self, grids: Grids) -> Judgement:
        """Returns the verdict under one setting."""
        if isinstance(self.statement, Deferred):
            return Judgement(Verdict.OPEN, detail=self.statement.reason)
        parts: tuple[Part, ...] = ()
        detail = ""
        try:
            parts = tuple(self.statement.judge(PairedSamples(self.experiment, grids)))
        except LeftOutError as error:
            detail = str(error)
        if self.contradictory:
            return Judgement(Verdict.CONTRADICTORY, parts, detail)
        return Judgement(worst(part.finding.verdict for part in parts), parts, detail)


def read_claims(path: Path, experiments: tuple[Experiment, ...]) -> tuple[Claim, ...]:
    """Reads the claims of a file about these experiments."""
    known = {experiment.id: experiment for experiment in experiments}
    claims = read_each(path, "claim", lambda fields: _read(fields, known))
    check_unique((claim.id for claim in claims), path, "the claims")
    return claims


def _read(fields: Fields, known: Mapping[str, Experiment]) -> Claim:
    experiment = known[fields.choice("experiment", known)]
    kind = fields.choice("kind", KINDS)
    if experiment.deferred and kind != "deferred":
        raise fields.error("kind", f"is `{kind}`, but experiment `{experiment.id}` is deferred: {experiment.deferred}")
    if kind == "deferred":
        context = Context(experiment, known, experiment.measure, {})
    else:
        measure, at = read_measure(fields, experiment.measure), read_at(fields, "at", experiment.axes)
        context = Context(experiment, known, measure, at)
    claim = fields.fill(Claim, experiment=experiment.id, kind=kind, statement=KINDS[kind].read(fields, context))
    if claim.status != "ok" and not (claim.contradiction or claim.note):
        raise fields.error(
            "note", f"is missing: status `{claim.status}` needs `contradiction` or `note` with the reason"
        )
    return claim
