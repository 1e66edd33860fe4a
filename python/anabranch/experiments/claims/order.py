"""Claims of kind `order`: schemes from the highest to the lowest."""

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
from anabranch.experiments.samples import SampleGrid
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.rules import compare, together, widest


@dataclass(frozen=True, slots=True)
class Order(CellStatement):
    """Schemes from the highest to the lowest, on average or at each value of the axes in `at_each`."""

    a: Quantity

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Order:
        schemes = read_schemes(fields, "schemes", context.experiment)
        if len(schemes) < 2 or len(set(schemes)) < len(schemes):
            raise fields.error("schemes", "has to have two different schemes at least, the highest first")
        return cls(context.own_quantity(fields, schemes), **cls.read_cells(fields, context.experiment))

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        grid = samples.grid(self.a)
        yield Part("", self.in_cells(grid, self.a.at, partial(self._check, grid)))

    def _check(self, grid: SampleGrid, cell: At, family: int) -> Finding:
        """Judges neighbours by `together`, with the two ends as the overall direction."""
        each = [grid.sample(scheme, {**self.a.at, **cell}) for scheme in self.a.schemes]
        pairs = [compare(high, low, "higher", family=family) for high, low in itertools.pairwise(each)]
        ends = compare(each[0], each[-1], "higher", family=family)
        direction, size = together([pair.direction for pair in pairs], len(pairs), ends.direction)
        return Finding(direction, ends.ours, ends.unit, size, ends.detail, widest(pairs))

    def claimed(self) -> str:
        return " > ".join(self.a.schemes)

    def describe(self, experiment: Experiment) -> str:
        return f"{self.a.describe(experiment, ' > ')}{self.where()}"
