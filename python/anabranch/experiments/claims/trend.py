"""Claims of kind `trend`: a quantity rises, falls or stays about the same along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from anabranch.experiments.claims.context import Context, read_schemes
from anabranch.experiments.claims.quantity import At, PairedSamples, Quantity
from anabranch.experiments.claims.statement import CellStatement
from anabranch.experiments.fields import Fields
from anabranch.experiments.model import Experiment
from anabranch.experiments.samples import LeftOutError, SampleGrid
from anabranch.experiments.verdicts.estimates import Sample, complete
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.grades import Direction
from anabranch.experiments.verdicts.rules import change, compare, no_value, shape, widest


@dataclass(frozen=True, slots=True)
class Trend(CellStatement):
    """Claim that the quantity of each scheme rises, falls or stays about the same (`flat`) along an axis."""

    a: Quantity
    axis: str
    direction: Literal["rising", "falling", "flat"]
    within_percent: float = 5.0

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Trend:
        axis = context.axis(fields)
        schemes = read_schemes(fields, "schemes", context.experiment, tuple(context.experiment.schemes))
        statement = fields.fill(
            cls,
            a=context.own_quantity(fields, schemes),
            within_percent=fields.positive("within_percent", 5.0),
            **cls.read_cells(fields, context.experiment),
        )
        if axis.name in statement.at_each:
            raise fields.error("at_each", f"has `{axis.name}`, along which the trend goes")
        if len(context.at.get(axis.name, axis.values)) < 2:
            raise fields.error("at", f"leaves one value of axis `{axis.name}`, along which there is no trend")
        return statement

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        grid = samples.grid(self.a)
        if len(grid.values_of(self.axis, self.a.at)) < 2:
            raise LeftOutError(f"all but one value of {self.axis} was omitted")
        for scheme in self.a.schemes:
            yield Part(self.a.label(scheme), self.in_cells(grid, self.a.at, partial(self._check, grid, scheme)))

    def _check(self, grid: SampleGrid, scheme: str, cell: At, _family: int) -> Finding:
        """Judges a curve. `shape` decides about rising and falling.

        The figure is the change from the first to the last value in percent, or the change itself if the first is
        always zero.
        """
        at = {**self.a.at, **cell}
        (curve,) = complete(grid.curve(scheme, self.axis, at))
        if self.direction == "flat":
            return _flat(curve, self.within_percent)
        return shape(curve, grid.positions_of(self.axis, at), self.direction, _means, relative=True)

    def claimed(self) -> str:
        return "stays about the same" if self.direction == "flat" else self.direction

    def describe(self, experiment: Experiment) -> str:
        return f"{self.a.describe(experiment)} {self.claimed()} along {self.axis}{self.where()}"


def _means(curve: Sample) -> Sample:
    return np.asarray(curve.mean(axis=-1))


def _flat(curve: Sample, within_percent: float) -> Finding:
    """Judges whether each point of a curve is within `within_percent` of the mean of all.

    The figure is the change from the first to the last point in percent.
    """
    if curve.shape[-1] == 0:
        return no_value("%")
    mean = curve.mean(axis=0)
    each = [compare(point, mean, "about", within_percent=within_percent) for point in curve]
    directions = {found.direction for found in each}
    if Direction.AGAINST in directions:
        direction = Direction.AGAINST
    else:
        direction = Direction.HOLDS if directions == {Direction.HOLDS} else Direction.UNCLEAR
    return Finding(direction, change(curve, _means, relative=True), "%", undecided=widest(each))
