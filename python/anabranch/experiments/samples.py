"""Measured values of an experiment: an array over schemes, axes and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.experiments.model import Axis
from anabranch.values import Value


class LeftOutError(Exception):
    """Error for an axis value or a scheme that has no runs, for example because of `--quick`."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleGrid:
    """Values of one measure under one setting of an experiment.

    `values` has the shape (schemes, values of the first axis, ..., seeds). A run without a value has NaN. `whole`
    contains the axes that have all values of the experiment. `shortened` marks runs whose scenario `--quick` changed.
    """

    schemes: tuple[str, ...]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    whole: tuple[Axis, ...]
    shortened: bool = False

    def sample(self, scheme: str, at: Mapping[str, tuple[Value, ...]]) -> NDArray[np.float64]:
        """Returns a value for each seed: the mean over the axes that `at` does not fix. NaN if a value is missing.

        Raises `LeftOutError` if `at` names only values of an axis that were not run.
        """
        narrowed = self._narrowed(scheme, at)
        return np.asarray(narrowed.reshape(-1, len(self.seeds)).mean(axis=0))

    def check_whole(self, at: Mapping[str, tuple[Value, ...]]) -> None:
        """Raises `LeftOutError` unless all values were run that `at` names, or that it does not fix.

        A comparison of means is meaningful over fewer points too, but a single mean is not.
        """
        for own, whole in zip(self.axes, self.whole, strict=True):
            meant = at.get(own.name, whole.values)
            missing = sum(own.index(value) is None for value in meant)
            if missing:
                raise LeftOutError(f"of {own.name}, {missing} of {len(meant)} values were omitted")

    def curve(self, scheme: str, axis: str, at: Mapping[str, tuple[Value, ...]]) -> NDArray[np.float64]:
        """Returns a row for each value of an axis that `at` allows, and a column for each seed."""
        return np.stack([self.sample(scheme, {**at, axis: (value,)}) for value in self.values_of(axis, at)])

    def axis(self, name: str) -> Axis:
        """Returns the axis of this name with the values that were run."""
        return next(axis for axis in self.axes if axis.name == name)

    def values_of(self, axis: str, at: Mapping[str, tuple[Value, ...]]) -> tuple[Value, ...]:
        """Returns the values of an axis that were run and that `at` allows."""
        return self._narrowed_axis(axis, at).values

    def positions_of(self, axis: str, at: Mapping[str, tuple[Value, ...]]) -> tuple[float, ...]:
        """Returns the positions of these values in figures."""
        return self._narrowed_axis(axis, at).positions

    def _narrowed_axis(self, name: str, at: Mapping[str, tuple[Value, ...]]) -> Axis:
        axis = self.axis(name)
        return axis.only(at[name]) if name in at else axis

    def _narrowed(self, scheme: str, at: Mapping[str, tuple[Value, ...]]) -> NDArray[np.float64]:
        if scheme not in self.schemes:
            raise LeftOutError(f"{scheme} was omitted")
        narrowed: NDArray[np.float64] = self.values[self.schemes.index(scheme)]
        for dimension, axis in enumerate(self.axes):
            if axis.name not in at:
                continue
            indices = [index for value in at[axis.name] if (index := axis.index(value)) is not None]
            if not indices:
                named = ", ".join(str(value) for value in at[axis.name])
                raise LeftOutError(f"{axis.name} = {named} was omitted")
            narrowed = narrowed.take(indices, axis=dimension)
        return narrowed
