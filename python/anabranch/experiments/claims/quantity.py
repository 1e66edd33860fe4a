"""Quantities that claims are about, and their samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from anabranch.experiments.model import Experiment, Measure
from anabranch.experiments.samples import SampleGrid
from anabranch.values import Value

if TYPE_CHECKING:
    from anabranch.experiments.verdicts.estimates import Sample

At: TypeAlias = Mapping[str, tuple[Value, ...]]
"""Values of axes by the names of the axes."""

Grids: TypeAlias = Callable[[str, Measure], SampleGrid]
"""Function that returns the samples of a measure in an experiment, by its id."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Quantity: a measure of selected runs.

    A quantity with several `schemes` has a value for each of them. `at` restricts axes to some of their values. The
    quantity is the mean over all other values. `experiment` is the id of another experiment than the claim's own, or
    empty.
    """

    schemes: tuple[str, ...]
    measure: Measure
    at: At = field(default_factory=dict)
    experiment: str = ""

    def label(self, scheme: str) -> str:
        """Returns the name of a finding about one of the schemes, empty if there is only one."""
        return scheme if len(self.schemes) > 1 else ""

    def describe(self, experiment: Experiment, separator: str = ", ") -> str:
        """Returns the quantity in words, for a claim of this experiment: `CMT (cwnd_mean_bytes(path-1), plr2 = 10)`."""
        qualified = [] if self.measure == experiment.measure else [str(self.measure)]
        if self.experiment and self.experiment != experiment.id:
            qualified.append(self.experiment)
        else:
            for name, values in self.at.items():
                labels = experiment.axis(name).only(values).labels
                shown = f"{labels[0]} to {labels[-1]}" if len(labels) > 3 else ", ".join(labels)
                qualified.append(f"{name} = {shown}")
        schemes = separator.join(self.schemes)
        return f"{schemes} ({', '.join(qualified)})" if qualified else schemes


class PairedSamples:
    """Samples of the quantities of a claim, paired by seed."""

    def __init__(self, experiment: str, grids: Grids) -> None:
        self._experiment = experiment
        self._grids = grids

    def grid(self, quantity: Quantity, experiment: str = "") -> SampleGrid:
        """Returns the samples of the quantity's measure in its experiment, or in this one."""
        return self._grids(experiment or quantity.experiment or self._experiment, quantity.measure)

    def pair(self, a: Quantity, b: Quantity, schemes: tuple[str, str], at: At) -> list[Sample]:
        """Returns both quantities under their common seeds. `at` restricts both further."""
        grids = [self.grid(a), self.grid(b)]
        return shared(
            [
                (grid.seeds, grid.sample(scheme, {**quantity.at, **at}))
                for grid, scheme, quantity in zip(grids, schemes, (a, b), strict=True)
            ]
        )


def shared(samples: Sequence[tuple[tuple[int, ...], Sample]]) -> list[Sample]:
    """Returns the samples, each given with its seeds, reduced to the seeds that all of them share."""
    seeds = [seed for seed in samples[0][0] if all(seed in own for own, _ in samples)]
    return [sample[..., [own.index(seed) for seed in seeds]] for own, sample in samples]
