"""Claims of kind `regression`: a figure of the least-squares line through means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from anabranch.experiments.claims.context import Context, read_range
from anabranch.experiments.claims.quantity import PairedSamples, Quantity
from anabranch.experiments.claims.statement import Statement, range_text
from anabranch.experiments.fields import Fields
from anabranch.experiments.model import Experiment
from anabranch.experiments.verdicts.estimates import Sample, complete, estimate, sign
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.grades import Direction
from anabranch.experiments.verdicts.rules import no_value, number
from anabranch.experiments.verdicts.sizes import NEAR_CORRELATION_PERCENT, NEAR_PERCENT, Size, Tolerance

Statistic = Literal["slope", "intercept", "r2", "multiple_r"]

_NAMES: dict[Statistic, str] = {"slope": "slope", "intercept": "intercept", "r2": "R²", "multiple_r": "multiple R"}

_CORRELATIONS = ("r2", "multiple_r")


@dataclass(frozen=True, slots=True)
class Regression(Statement):
    """Claim about a statistic of the least-squares line through the means at the positions of an axis."""

    a: Quantity
    axis: str
    statistic: Statistic
    low: float
    high: float
    unit: str = ""
    within_percent: float = NEAR_PERCENT

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Regression:
        low, high = read_range(fields)
        axis = context.axis(fields)
        a = context.quantity(fields, "a")
        if len(a.at.get(axis.name, axis.values)) < 3:
            raise fields.error("at", f"leaves fewer than three values of axis `{axis.name}` for a line")
        correlation = fields.get("statistic", str, "") in _CORRELATIONS
        default = NEAR_CORRELATION_PERCENT if correlation else NEAR_PERCENT
        within_percent = fields.positive("within_percent", default)
        return fields.fill(cls, a=a, axis=axis.name, low=low, high=high, within_percent=within_percent)

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        grid, at = samples.grid(self.a), self.a.at
        grid.check_whole(at)
        positions = grid.positions_of(self.axis, at)
        for scheme in self.a.schemes:
            (curve,) = complete(grid.curve(scheme, self.axis, at))
            yield Part(self.a.label(scheme), self._check(curve, positions))

    def _check(self, curve: Sample, positions: Sequence[float]) -> Finding:
        """Judges the statistic as a number. A slope of another size with the claimed sign has the claimed direction."""
        if curve.shape[-1] == 0:
            return no_value(self.unit)
        ours = estimate(lambda each: _statistic(self.statistic, positions, each.mean(axis=-1)), curve)
        found = number(ours, self.low, self.high, self.unit, self._tolerance)
        claimed = 1 if self.low + self.high > 0 else -1
        if self.statistic == "slope" and found.size is Size.OFF and sign(ours) == claimed:
            return replace(found, direction=Direction.HOLDS)
        return found

    @property
    def _tolerance(self) -> Tolerance:
        if self.statistic in _CORRELATIONS:
            return Tolerance.of_correlation(self.within_percent)
        return Tolerance.of_unit(self.unit, self.within_percent)

    def claimed(self) -> str:
        return f"{_NAMES[self.statistic]} {range_text(self.low, self.high)} {self.unit}".rstrip()

    def describe(self, experiment: Experiment) -> str:
        return f"{self.claimed()}, of {self.a.describe(experiment)} along {self.axis}"


def _statistic(name: Statistic, positions: Sequence[float], means: Sample) -> float:
    """Returns a statistic of the line, by SciPy. Multiple R is the root of R² and has no sign."""
    from scipy import stats

    fit = stats.linregress(np.asarray(positions, dtype=float), means)
    match name:
        case "r2":
            return float(fit.rvalue) ** 2
        case "multiple_r":
            return abs(float(fit.rvalue))
        case _:
            return float(getattr(fit, name))
