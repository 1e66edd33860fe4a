"""Interface of all kinds of claims."""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from anabranch.estimate import significant
from anabranch.experiments.claims.context import Context
from anabranch.experiments.claims.quantity import At, PairedSamples, Quantity
from anabranch.experiments.fields import Fields
from anabranch.experiments.model import Experiment
from anabranch.experiments.samples import LeftOutError, SampleGrid
from anabranch.experiments.verdicts.finding import Finding, Part
from anabranch.experiments.verdicts.rules import cells


class Statement(ABC):
    """Content of a claim. Each kind of claim is a subclass."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, context: Context) -> Statement:
        """Reads the statement from the table of a claim. Raises `ExperimentError` if the table is invalid."""

    def quantities(self) -> Iterator[Quantity]:
        """Yields all quantities of the statement. The default implementation yields the fields of type `Quantity`."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Quantity):
                yield value

    @abstractmethod
    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        """Yields the findings that decide the verdict. Raises `LeftOutError` if a necessary run is missing."""

    @abstractmethod
    def claimed(self) -> str:
        """Returns the claimed figure or relation, as short as a cell of a table."""

    @abstractmethod
    def describe(self, experiment: Experiment) -> str:
        """Returns the check in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStatement(Statement):
    """Statement about each value of some axes, which has to be true in the `share` of them."""

    at_each: tuple[str, ...] = ()
    share: float = 1.0

    @staticmethod
    def read_cells(fields: Fields, experiment: Experiment) -> dict[str, Any]:
        """Reads `at_each` and `share`."""
        axes = fields.texts("at_each")
        fields.check_known("at_each", axes, [axis.name for axis in experiment.axes])
        share = fields.get("share", float, 1.0)
        if not 0.5 < share <= 1 or (share < 1 and not axes):
            raise fields.error("share", f"is {share:g}; it goes with `at_each` and lies above 0.5, up to 1")
        return {"at_each": axes, "share": share}

    def in_cells(self, grid: SampleGrid, at: At, check: Callable[[At, int], Finding]) -> Finding:
        """Returns the finding of `check` on average, or with `at_each` that of all cells together.

        `check` gets the cell and the number of cells.
        """
        average = check({}, 1)
        if not self.at_each:
            return average
        values = [[(value,) for value in grid.values_of(axis, at)] for axis in self.at_each]
        found = [dict(zip(self.at_each, cell, strict=True)) for cell in itertools.product(*values)]
        if not found:
            raise LeftOutError(f"all of {', '.join(self.at_each)} was omitted")
        return cells([check(cell, len(found)) for cell in found], average, self.share)

    def where(self) -> str:
        """Returns the cells in words, as the end of a description."""
        if not self.at_each:
            return ""
        share = f" in {self.share:.0%} of the cells" if self.share < 1 else ""
        return f", at each {' and '.join(self.at_each)}{share}"


def number_text(value: float) -> str:
    """Returns a number with the digits of a publication."""
    return f"{value:.0f}" if abs(value) >= 10000 else significant(value, 6)


def range_text(low: float, high: float) -> str:
    """Returns a number, or two numbers with `to` between them."""
    return number_text(low) if low == high else f"{number_text(low)} to {number_text(high)}"
