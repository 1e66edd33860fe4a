"""Claims of kind `value`: a quantity is about so much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.papers.claims.context import Context, read_range
from anabranch.papers.claims.quantity import PairedSamples, Quantity
from anabranch.papers.claims.statement import Statement, range_text
from anabranch.papers.fields import Fields
from anabranch.papers.measures import MEASURES
from anabranch.papers.model import Experiment
from anabranch.papers.samples import LeftOutError
from anabranch.papers.verdicts.estimates import Sample, complete, mean_of
from anabranch.papers.verdicts.finding import Finding, Part
from anabranch.papers.verdicts.rules import band, inside, ratio


@dataclass(frozen=True, slots=True)
class Number(Statement):
    """a is about so much: from `low` to `high`, which are the same for a single number."""

    a: Quantity
    low: float
    high: float
    unit: str
    ci95: tuple[float, float] | None = None
    within_percent: float = 25.0

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Number:
        low, high = read_range(fields)
        within_percent = fields.positive("within_percent", 25.0)
        a = context.quantity(fields, "a")
        return fields.fill(cls, a=a, low=low, high=high, within_percent=within_percent)

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        grid = samples.grid(self.a)
        grid.check_whole(self.a.at)
        if grid.shortened and MEASURES[self.a.measure.name].grows:
            raise LeftOutError("runs were too short to be compared with the paper's figure")
        for scheme in self.a.schemes:
            yield Part(self.a.label(scheme), self._check(grid.sample(scheme, self.a.at)))

    def _check(self, sample: Sample) -> Finding:
        """It holds within `within_percent`, or within the interval that the paper prints.

        It does not hold if its whole interval is outside, and cannot be told if that straddles an edge.
        """
        ours = mean_of(*complete(sample))
        low, high = band(self.low, self.high, self.within_percent)
        if self.ci95 is not None:
            low, high = min(low, self.ci95[0]), max(high, self.ci95[1])
        return Finding(inside(ours, low, high), ours, self.unit, True, ratio(ours.mean, (self.low + self.high) / 2))

    def claimed(self) -> str:
        interval = f" ({range_text(*self.ci95)})" if self.ci95 else ""
        return f"{range_text(self.low, self.high)} {self.unit}{interval}"

    def describe(self, experiment: Experiment) -> str:
        return f"{self.a.describe(experiment)} about {self.claimed()}"
