"""Claims of kind `gain-trend`: the percentage, or the amount, by which one quantity is above another rises or falls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from anabranch.papers.claims.context import Context
from anabranch.papers.claims.quantity import At, PairedSamples, Quantity, shared
from anabranch.papers.claims.statement import Statement
from anabranch.papers.fields import Fields
from anabranch.papers.measures import MEASURES
from anabranch.papers.model import Experiment
from anabranch.papers.reading.measures import check_values, read_at
from anabranch.papers.verdicts.estimates import Sample, complete
from anabranch.papers.verdicts.finding import Part
from anabranch.papers.verdicts.rules import percent_above, shape


@dataclass(frozen=True, slots=True)
class Point:
    """Where a gain is measured."""

    label: str
    at: At
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class GainTrend(Statement):
    """By how many percent, or with `difference` by how much, a is above b rises or falls from point to point."""

    a: Quantity
    b: Quantity
    points: tuple[Point, ...]
    direction: Literal["rising", "falling"]
    convention: Literal["of_b", "of_a", "difference"] = "of_b"

    @classmethod
    def read(cls, fields: Fields, context: Context) -> GainTrend:
        a, b = context.quantity(fields, "a"), context.quantity(fields, "b")
        if len(a.schemes) > 1 or len(b.schemes) > 1:
            raise fields.error("a", "and `b` have to name one scheme each")
        points = _read_points(fields, context)
        if len(points) < 2:
            raise fields.error("points", "has to have two points at least")
        return fields.fill(cls, a=a, b=b, points=points)

    def quantities(self) -> Iterator[Quantity]:
        for side, point in itertools.product((self.a, self.b), self.points):
            experiment = point.experiment or side.experiment
            yield replace(side, at={**side.at, **point.at}, experiment=experiment)

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        """As by `shape`. The figure is the gain at the last point minus that at the first, in percentage points."""
        grids = [(each, samples.grid(each)) for each in self.quantities()]
        aligned = shared([(grid.seeds, grid.sample(each.schemes[0], each.at)) for each, grid in grids])
        half = len(self.points)
        (both,) = complete(np.stack([np.stack(aligned[:half]), np.stack(aligned[half:])]))
        found = shape(both, self._positions(samples), self.direction, self._gains, relative=False)
        if both.shape[-1]:
            unit = "" if self.convention == "difference" else " %"
            gains = f"gains {', '.join(f'{gain:+.{2 - len(unit) // 2}f}' for gain in self._gains(both))}{unit}"
            found = replace(found, detail=f"{gains}; {found.detail}" if found.detail else gains)
        if self.convention == "difference":
            found = replace(found, unit=MEASURES[self.a.measure.name].unit)
        yield Part("", found)

    def _gains(self, both: Sample) -> Sample:
        return np.array([self._gain(both[:, point]) for point in range(len(self.points))])

    def _gain(self, pair: Sample) -> float:
        if self.convention == "difference":
            return float(pair[0].mean() - pair[1].mean())
        return percent_above(pair, self.convention)

    def _positions(self, samples: PairedSamples) -> list[float]:
        """Where the points stand, if they are values of one axis; in a row if they are not."""
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
        return f"gain {self.direction}"

    def describe(self, experiment: Experiment) -> str:
        points = ", ".join(point.label for point in self.points)
        a, b = self.a.describe(experiment), self.b.describe(experiment)
        return f"gain of {a} over {b} {self.direction} from point to point: {points}"


def _read_points(fields: Fields, context: Context) -> tuple[Point, ...]:
    """Values of an axis, all of it if none are named, or tables that name another experiment or several axes."""
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
