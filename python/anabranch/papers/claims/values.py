"""Claims of kind `values`: a row of a table, in which several figures of the same runs are about so much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.papers.claims.context import Context
from anabranch.papers.claims.quantity import PairedSamples, Quantity
from anabranch.papers.claims.statement import Statement
from anabranch.papers.claims.value import Number
from anabranch.papers.fields import Fields
from anabranch.papers.model import Experiment
from anabranch.papers.verdicts.finding import Part


@dataclass(frozen=True, slots=True)
class Row(Statement):
    """Each of the figures is about so much; the verdict is that of the worst."""

    figures: tuple[Number, ...]

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Row:
        schemes = fields.texts("scheme")
        if len(schemes) != 1:
            raise fields.error("scheme", "has to name one scheme, that of the row")
        fields.check_known("scheme", schemes, context.experiment.schemes, "is `{}`")
        figures = fields.each("figures", lambda inner: Number.read_for(inner, context, schemes))
        if not figures:
            raise fields.error("figures", "is missing: tables with `measure`, `value` and `unit`")
        return cls(figures)

    def quantities(self) -> Iterator[Quantity]:
        for figure in self.figures:
            yield figure.a

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        for figure in self.figures:
            for part in figure.judge(samples):
                yield Part(str(figure.a.measure), part.finding)

    def claimed(self) -> str:
        return ", ".join(figure.claimed() for figure in self.figures)

    def describe(self, experiment: Experiment) -> str:
        return "; ".join(figure.describe(experiment) for figure in self.figures)
