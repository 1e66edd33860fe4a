"""Measured values of an experiment: an array over schemes, axes and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.experiments.model import Axis
from anabranch.values import Value


class LeftOutError(Exception):
    """A value of an axis, or a scheme, is not among those that were run, as with `--quick`."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleGrid:
    """The values of one measure under one setting of an experiment.

    `values` has the shape (schemes, values of the first axis, ..., seeds). NaN stands for runs that have none. `whole`
    are the axes with all values that the experiment has; `shortened` says that runs were made otherwise than it has
    them, as `--quick` does.
    """

    schemes: tuple[str, ...]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    whole: tuple[Axis, ...]
    shortened: bool = False

    def sample(self, scheme: str, at: Mapping[str, tuple[Value, ...]]) -> NDArray[np.float64]:
        """A value for each seed: the mean over what `at` leaves open. NaN if one of them is missing.

        Raises `LeftOutError` if none of the values that `at` names for an axis was run.
        """
        narrowed = self._narrowed(scheme, at)
        return np.asarray(narrowed.reshape(-1, len(self.seeds)).mean(axis=0))

    def check_whole(self, at: Mapping[str, tuple[Value, ...]]) -> None:
        """Raises `LeftOutError` unless all was run that `at` leaves open or names.

        A comparison of means over fewer points says something about that over all of them; the mean itself does not.
        """
        for own, whole in zip(self.axes, self.whole, strict=True):
            meant = at.get(own.name, whole.values)
            missing = sum(own.index(value) is None for value in meant)
            if missing:
                raise LeftOutError(f"of {own.name}, {missing} of {len(meant)} values were left out")

    def curve(self, scheme: str, axis: str, at: Mapping[str, tuple[Value, ...]]) -> NDArray[np.float64]:
        """A row for each value of an axis, or of those that `at` names for it, and a column for each seed."""
        return np.stack([self.sample(scheme, {**at, axis: (value,)}) for value in self.values_of(axis, at)])

    def axis(self, name: str) -> Axis:
        """The axis of this name, with the values that were run."""
        return next(axis for axis in self.axes if axis.name == name)

    def values_of(self, axis: str, at: Mapping[str, tuple[Value, ...]]) -> tuple[Value, ...]:
        """The values of an axis that were run, and are among those that `at` names for it."""
        return self._narrowed_axis(axis, at).values

    def positions_of(self, axis: str, at: Mapping[str, tuple[Value, ...]]) -> tuple[float, ...]:
        """Where these values stand in the figure."""
        return self._narrowed_axis(axis, at).positions

    def _narrowed_axis(self, name: str, at: Mapping[str, tuple[Value, ...]]) -> Axis:
        axis = self.axis(name)
        return axis.only(at[name]) if name in at else axis

    def _narrowed(self, scheme: str, at: Mapping[str, tuple[Value, ...]]) -> NDArray[np.float64]:
        if scheme not in self.schemes:
            raise LeftOutError(f"{scheme} was left out")
        narrowed: NDArray[np.float64] = self.values[self.schemes.index(scheme)]
        for dimension, axis in enumerate(self.axes):
            if axis.name not in at:
                continue
            kept = [index for value in at[axis.name] if (index := axis.index(value)) is not None]
            if not kept:
                named = ", ".join(str(value) for value in at[axis.name])
                raise LeftOutError(f"{axis.name} = {named} was left out")
            narrowed = narrowed.take(kept, axis=dimension)
        return narrowed
