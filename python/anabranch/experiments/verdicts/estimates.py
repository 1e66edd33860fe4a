"""Statistics of samples with their intervals.

A sample is an array whose last axis are the seeds. A statistic returns one number for such an array, usually by
averaging over seeds first. Its interval is that of the jackknife over seeds (Quenouille, Tukey). For a statistic that
is linear in the samples, such as a paired difference of means, this is Student's interval.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.estimate import Estimate, mean_interval

Sample: TypeAlias = NDArray[np.float64]
StatisticFunction: TypeAlias = Callable[[Sample], float]

CONFIDENCE = 0.95

ROUNDING = 1e-9
"""Relative size below which a difference of figures counts as a rounding error."""


def complete(*samples: Sample) -> tuple[Sample, ...]:
    """Returns the samples of the seeds for which every sample has every value."""
    known = np.logical_and.reduce([~np.isnan(each.reshape(-1, each.shape[-1])).any(axis=0) for each in samples])
    return tuple(each[..., known] for each in samples)


def estimate(statistic: StatisticFunction, sample: Sample, confidence: float = CONFIDENCE) -> Estimate:
    """Returns a statistic of a complete sample with its interval over seeds.

    The estimate is deterministic if omitting any seed does not change it.

    >>> print(estimate(lambda each: float(each.mean()), np.array([1180.0, 1234.0, 1288.0])))
    1234 ± 134 (n = 3)
    """
    n = sample.shape[-1]
    if n == 0:
        return mean_interval([])
    whole = statistic(sample)
    if n == 1 or math.isnan(whole):
        return mean_interval([whole])
    left_out = np.array([statistic(np.delete(sample, seed, axis=-1)) for seed in range(n)])
    pseudo = n * whole - (n - 1) * left_out
    # The pseudo-values are differences of numbers up to this size, which bounds their rounding errors.
    scale = (n - 1) * max(abs(whole), float(np.nanmax(np.abs(left_out))), _largest(sample) * 1e-3)
    if np.ptp(pseudo) <= ROUNDING * scale:
        exact = 0.0 if abs(whole) <= ROUNDING * _largest(sample) else whole
        return Estimate(n, exact, math.nan, 0.0, "deterministic", "t", confidence)
    return dataclasses.replace(mean_interval(pseudo, "t", confidence), mean=whole)


def mean_of(sample: Sample) -> Estimate:
    """Returns the mean of a complete sample."""
    return estimate(lambda each: float(each.mean()), sample)


def _largest(sample: Sample) -> float:
    return float(np.abs(sample).max(initial=0.0))


def sign(of: Estimate) -> int | None:
    """Returns 1 above zero, -1 below, 0 if the estimate is zero in every run, and `None` if undecided."""
    if of.kind == "deterministic":
        return int(np.sign(of.mean))
    if of.kind != "interval":
        return None
    if of.low > 0:
        return 1
    return -1 if of.high < 0 else None


def bounds(of: Estimate) -> tuple[float, float] | None:
    """Returns the ends of the interval, both the value itself if it is deterministic; `None` without an interval."""
    if of.kind == "deterministic":
        return of.mean, of.mean
    return (of.low, of.high) if of.kind == "interval" else None
