"""Claims of kind `gain-trend`: one quantity is above another, by a percentage or an amount that rises or falls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from anabranch.experiments.claims.context import Context
from anabranch.experiments.claims.quantity import At, PairedSamples, Quantity, shared
from anabranch.experiments.claims.statement import Statement
from anabranch.experiments.fields import Fields
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.model import Experiment
from anabranch.experiments.reading.measures import check_values, read_at
from anabranch.experiments.verdicts.estimates import Sample, complete, estimate
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.rules import gain_sign, percent_above, shape, worse_direction
from anabranch.experiments.verdicts.sizes import PERCENT, Size, Tolerance, size_of


@dataclass(frozen=True, slots=True)
class Point:
    """Point at which a gain is measured."""

    label: str
    at: At
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class GainTrend(Statement):
    """Claim that the gain of quantity `a` over quantity `b` rises or falls along points.

    The gain is in percent, or in the unit of the measure if `difference` is set. `gains` are the published gains, one
    for each point. If they are missing, the trend and the sign of the gain are judged, or only the trend if `sign` is
    "any".
    """

    a: Quantity
    b: Quantity
    points: tuple[Point, ...]
    direction: Literal["rising", "falling"]
    convention: Literal["of_b", "of_a", "difference"] = "of_b"
    gains: tuple[float, ...] = ()
    sign: Literal["claimed", "any"] = "claimed"

    @classmethod
    def read(cls, fields: Fields, context: Context) -> GainTrend:
        a, b = context.quantity(fields, "a"), context.quantity(fields, "b")
        if len(a.schemes) > 1 or len(b.schemes) > 1:
            raise fields.error("a", "and `b` have to name one scheme each")
        points = _read_points(fields, context)
        if len(points) < 2:
            raise fields.error("points", "has to have two points at least")
        gains = fields.numbers("gains") if "gains" in fields else ()
        statement = fields.fill(cls, a=a, b=b, points=points, gains=gains)
        if gains and len(gains) != len(points):
            raise fields.error("gains", f"has {len(gains)} numbers for {len(points)} points")
        if gains and statement.sign == "any":
            raise fields.error("sign", "is `any`, but `gains` have signs: omit one of them")
        return statement

    def quantities(self) -> Iterator[Quantity]:
        for side, point in itertools.product((self.a, self.b), self.points):
            experiment = point.experiment or side.experiment
            yield replace(side, at={**side.at, **point.at}, experiment=experiment)

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        """Judges the trend by `shape`, signs by `gain_sign`, and sizes as those of numbers.

        The figure is the gain at the last point minus that at the first, in percentage points.
        """
        grids = [(each, samples.grid(each)) for each in self.quantities()]
        aligned = shared([(grid.seeds, grid.sample(each.schemes[0], each.at)) for each, grid in grids])
        half = len(self.points)
        (both,) = complete(np.stack([np.stack(aligned[:half]), np.stack(aligned[half:])]))
        found = shape(both, self._positions(samples), self.direction, self._gains, relative=False)
        if both.shape[-1]:
            found = self._with_signs_and_sizes(found, both)
            unit = "" if self.convention == "difference" else " %"
            gains = f"gains {', '.join(f'{gain:+.{2 - len(unit) // 2}f}' for gain in self._gains(both))}{unit}"
            found = replace(found, detail=f"{gains}; {found.detail}" if found.detail else gains)
        if self.convention == "difference":
            found = replace(found, unit=MEASURES[self.a.measure.name].unit)
        yield Part("", found)

    def _with_signs_and_sizes(self, trend: Finding, both: Sample) -> Finding:
        if self.sign == "any":
            return trend
        largest = len(self.points) - 1 if self.direction == "rising" else 0
        signs = gain_sign(both, self._gains, self.gains or (1.0,) * len(self.points), largest)
        sizes = [self._size(both, point, gain) for point, gain in enumerate(self.gains)]
        detail = "; ".join(each.detail for each in (trend, signs) if each.detail)
        direction = worse_direction(trend.direction, signs.direction)
        return replace(trend, direction=direction, size=max(trend.size, signs.size, *sizes, Size.FITS), detail=detail)

    def _size(self, both: Sample, point: int, claimed: float) -> Size:
        ours = estimate(lambda each: self._gain(each[:, point]), both)
        if self.convention != "difference":
            return size_of(ours, claimed, claimed, Tolerance.of_unit(PERCENT))
        measure = MEASURES[self.a.measure.name]
        return size_of(ours, claimed, claimed, Tolerance.of_unit(measure.unit, resolution=measure.resolution))

    def _gains(self, both: Sample) -> Sample:
        return np.array([self._gain(both[:, point]) for point in range(len(self.points))])

    def _gain(self, pair: Sample) -> float:
        if self.convention == "difference":
            return float(pair[0].mean() - pair[1].mean())
        return percent_above(pair, self.convention)

    def _positions(self, samples: PairedSamples) -> list[float]:
        """Returns the positions of the points on their common axis, or their indices without one."""
        row = [float(index) for index in range(len(self.points))]
        names = {tuple(point.at) for point in self.points}
        if len(names) > 1 or any(point.experiment or len(point.at) != 1 for point in self.points):
            return row
        ((name,),) = names
        axis = samples.grid(self.a).axis(name)
        found = [axis.index(value) for point in self.points for value in point.at[name]]
        if len(found) != len(row):
            return row
        return [axis.positions[index] for index in found if index is not None]

    def claimed(self) -> str:
        if not self.gains:
            return f"gain {self.direction}"
        unit = MEASURES[self.a.measure.name].unit if self.convention == "difference" else PERCENT
        return f"gain {self.direction}: {', '.join(f'{gain:+g}' for gain in self.gains)} {unit}"

    def describe(self, experiment: Experiment) -> str:
        points = ", ".join(point.label for point in self.points)
        a, b = self.a.describe(experiment), self.b.describe(experiment)
        return f"gain of {a} over {b} {self.direction} from point to point: {points}"


def _read_points(fields: Fields, context: Context) -> tuple[Point, ...]:
    """Values of an axis (all values if none are named), or tables that name another experiment or several axes."""
    given = fields.raw("points")
    if isinstance(given, list) and all(isinstance(point, dict) for point in given):
        return fields.each("points", lambda inner: _read_point(inner, context))
    axis = context.axis(fields)
    values = axis.values if given is None else given
    if not isinstance(values, (list, tuple)):
        raise fields.error("points", "has to be a list")
    check_values(fields, "points", axis, tuple(values))
    return tuple(Point(axis.only((value,)).labels[0], {axis.name: (value,)}) for value in values)


def _read_point(fields: Fields, context: Context) -> Point:
    experiment, name = context.experiment_of(fields)
    at = read_at(fields, "at", experiment.axes)
    shown = ", ".join(str(value) for values in at.values() for value in values)
    return Point(fields.get("label", str, shown or name), at, name)
