"""Claims of kind `value`: a quantity is about a number, or between two numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.experiments.claims.context import Context, read_range
from anabranch.experiments.claims.quantity import PairedSamples, Quantity
from anabranch.experiments.claims.statement import Statement, range_text
from anabranch.experiments.fields import Fields
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.model import Experiment
from anabranch.experiments.samples import LeftOutError
from anabranch.experiments.verdicts.estimates import Sample, complete, mean_of
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.rules import number
from anabranch.experiments.verdicts.sizes import NEAR_PERCENT, Tolerance


@dataclass(frozen=True, slots=True)
class Number(Statement):
    """Claim that quantity `a` is about a number, or between two: from `low` to `high`, which are equal for a single
    number.

    `ci95` is the interval that the source prints. It is shown, but does not affect the verdict: the intervals of the
    sources describe the scatter over the points of a figure, such as its loss rates, and not the uncertainty of the
    mean.
    """

    a: Quantity
    low: float
    high: float
    unit: str
    ci95: tuple[float, float] | None = None
    within_percent: float = NEAR_PERCENT

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Number:
        low, high = read_range(fields)
        within_percent = fields.positive("within_percent", NEAR_PERCENT)
        a = context.quantity(fields, "a")
        return fields.fill(cls, a=a, low=low, high=high, within_percent=within_percent)

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        grid = samples.grid(self.a)
        grid.check_whole(self.a.at)
        if grid.shortened and MEASURES[self.a.measure.name].grows:
            raise LeftOutError("runs were too short to be compared with the claimed figure")
        for scheme in self.a.schemes:
            yield Part(self.a.label(scheme), self._check(grid.sample(scheme, self.a.at)))

    def _check(self, sample: Sample) -> Finding:
        ours = mean_of(*complete(sample))
        resolution = MEASURES[self.a.measure.name].resolution
        return number(
            ours, self.low, self.high, self.unit, Tolerance.of_unit(self.unit, self.within_percent, resolution)
        )

    def claimed(self) -> str:
        interval = f" ({range_text(*self.ci95)})" if self.ci95 else ""
        return f"{range_text(self.low, self.high)} {self.unit}{interval}"

    def describe(self, experiment: Experiment) -> str:
        return f"{self.a.describe(experiment)} about {self.claimed()}"
