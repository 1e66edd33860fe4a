"""Verdicts of samples on a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

MIN_SEEDS = 20
"""Minimum number of seeds for the verdict `KEPT`."""

CONFIDENCE = 0.95
"""Confidence of one-sided bounds of a mean."""


class Verdict(Enum):
    """Verdict on a limit."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """Mean over seeds with one-sided bounds, and the verdict on its limit. Bounds are NaN for one value."""

    verdict: Verdict
    n: int
    mean: float
    lower: float
    upper: float


def at_least(values: Sequence[float], limit: float, least_seeds: int = MIN_SEEDS) -> Judged:
    """Judges a lower limit: broken if even the upper bound of the mean is below it.

    >>> at_least([0.8, 0.82, 0.84], 0.97).verdict, at_least([0.99, 1.0], 0.97).verdict
    (<Verdict.BROKEN: 'broken'>, <Verdict.UNDECIDED: 'undecided'>)
    """
    return within(values, limit, math.inf, least_seeds)


def at_most(values: Sequence[float], limit: float, least_seeds: int = MIN_SEEDS) -> Judged:
    """Judges an upper limit: broken if even the lower bound of the mean is above it."""
    return within(values, -math.inf, limit, least_seeds)


def within(values: Sequence[float], low: float, high: float, least_seeds: int = MIN_SEEDS) -> Judged:
    """Judges a lower and an upper limit of the mean."""
    n, mean, half_width = _mean(values)
    if mean + half_width < low or mean - half_width > high:
        verdict = Verdict.BROKEN
    elif n >= least_seeds:
        verdict = Verdict.KEPT
    else:
        verdict = Verdict.UNDECIDED
    return Judged(verdict, n, mean, mean - half_width, mean + half_width)


def share_kept(judged: Sequence[Judged], limit: float, share: float) -> Verdict:
    """Judges a lower limit that this share of the settings has to respect.

    The limit is broken if the upper bound is below it in too many settings. It is respected if the mean reaches it in
    enough settings, and all settings have enough seeds. Otherwise the verdict is undecided.
    """
    if not judged:
        return Verdict.UNDECIDED
    below = sum(each.verdict is Verdict.BROKEN for each in judged)
    if below > (1 - share) * len(judged) + 1e-9:
        return Verdict.BROKEN
    enough = all(each.verdict is not Verdict.UNDECIDED for each in judged)
    reached = sum(each.mean >= limit for each in judged)
    return Verdict.KEPT if enough and reached >= share * len(judged) - 1e-9 else Verdict.UNDECIDED


def median_above(judged: Sequence[Judged], limit: float) -> Verdict:
    """Judges the median of the means, which has to be above the limit. All settings need enough seeds."""
    if not judged:
        return Verdict.UNDECIDED
    if float(np.median([each.mean for each in judged])) <= limit:
        return Verdict.BROKEN
    enough = all(each.verdict is not Verdict.UNDECIDED for each in judged)
    return Verdict.KEPT if enough else Verdict.UNDECIDED


def worst_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns the worst verdict; `UNDECIDED` if there is none."""
    for verdict in (Verdict.BROKEN, Verdict.UNDECIDED):
        if verdict in verdicts:
            return verdict
    return Verdict.KEPT if verdicts else Verdict.UNDECIDED


def _mean(values: Sequence[float]) -> tuple[int, float, float]:
    """Returns number and mean of values, and the distance of a one-sided bound from the mean (NaN for one value)."""
    from scipy import stats

    sample = np.asarray(values, dtype=float)
    if len(sample) == 0 or not np.isfinite(sample).all():
        raise ValueError("a sample needs at least one value, and finite ones only")
    n, mean = len(sample), float(sample.mean())
    if n == 1:
        return 1, mean, math.nan
    error = float(sample.std(ddof=1)) / math.sqrt(n)
    return n, mean, float(stats.t.ppf(CONFIDENCE, n - 1)) * error
