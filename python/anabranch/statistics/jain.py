"""Jain's fairness index."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.statistics.samples import ResultsLike, samples_of


def jain_index(values: Iterable[float]) -> float:
    """Returns (Σx)² / (n Σx²): 1 if all values are equal, 1/n if only one is positive; NaN if all are zero.

    Jain, Chiu, Hawe 1984. Raises `StatisticsError` for no values, and for values that are negative, NaN or infinite.

    >>> jain_index([2, 1])
    0.9
    """
    shares = np.asarray(list(values), dtype=float)
    if len(shares) == 0:
        raise StatisticsError("Jain's index of no values is not defined")
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise StatisticsError("Jain's index is of finite values that are not negative")
    largest = shares.max()
    if largest == 0:
        return math.nan
    # Dividing first keeps squares of very large or small values within the range of a float.
    shares = shares / largest
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))


def jain_indices(results: ResultsLike, metric: str = "goodput_kbps") -> pd.DataFrame:
    """Returns Jain's index over the flows of each run.

    One row per run; columns: the swept keys, `scheme`, `seed`, `flows` (their number) and `jain_index`. `summary`
    accepts it. `results` may be a frame of the flows. Raises the errors of `jain_index`.
    """
    samples = samples_of(results, metric, "flows")
    if "flow" not in samples.parts:
        raise StatisticsError("Jain's index is over flows: give Results, or a frame of their flows")
    run = [*samples.over, "scheme", "seed"]
    groups = samples.frame.groupby(run, sort=False, dropna=False, observed=True)["value"]
    return groups.agg(flows="size", jain_index=jain_index).reset_index()
