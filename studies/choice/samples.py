"""Goodputs as one array, so that NumPy computes thousands of means and intervals together.

The results equal those of `anabranch.statistics` for single groups; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anabranch.estimate import quantile

Floats: TypeAlias = NDArray[np.float64]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Samples:
    """`values[cell, scheme, seed]` of one metric; `cells` has a row of swept keys for each of the cells."""

    values: Floats
    cells: pd.DataFrame
    schemes: tuple[str, ...]
    seeds: tuple[int, ...]

    def of(self, scheme: str) -> Floats:
        """Returns the values of one scheme, `[cell, seed]`."""
        chosen: Floats = self.values[:, self.schemes.index(scheme)]
        return chosen


def samples(runs: pd.DataFrame, keys: Sequence[str], metric: str) -> Samples:
    """Returns the values of a metric with cells, schemes and seeds in the order of the runs.

    Raises `ValueError` if a cell and scheme lacks a seed that others have, which does not occur in a complete sweep.
    """
    wide = runs.pivot_table(index=[*keys, "scheme"], columns="seed", values=metric, sort=False)
    cells = runs[list(keys)].drop_duplicates().reset_index(drop=True)
    schemes = tuple(dict.fromkeys(runs["scheme"]))
    if len(wide) != len(cells) * len(schemes) or wide.isna().to_numpy().any():
        raise ValueError(f"not every cell and scheme has a `{metric}` for every seed: was the sweep stopped?")
    shape = (len(cells), len(schemes), len(wide.columns))
    return Samples(wide.to_numpy(dtype=float).reshape(shape), cells, schemes, tuple(map(int, wide.columns)))


def interval(values: Floats) -> tuple[Floats, Floats]:
    """Returns the mean over the last axis, and the half-width of its 95 % interval by Student's t.

    The half-width is NaN for a single value, or if all values are equal.
    """
    from scipy import stats

    n = values.shape[-1]
    mean: Floats = values.mean(axis=-1)
    if n == 1:
        return mean, np.full_like(mean, np.nan)
    half_width = quantile("t", CONFIDENCE, n) * stats.sem(values, axis=-1)
    # Equal values may differ by what a division before has rounded off.
    alike = np.ptp(values, axis=-1) <= 4 * np.finfo(float).eps * np.abs(values).max(axis=-1)
    return mean, np.where(alike, np.nan, half_width)
