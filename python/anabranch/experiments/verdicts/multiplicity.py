"""Expected number of intervals that miss the true value by chance."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.experiments.verdicts.estimates import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Misses:
    """Number of intervals that miss the true value: its mean, and the range from `low` to `high` with 95 %.

    The mean assumes that each interval has its nominal coverage. The range also assumes independent intervals.
    """

    expected: float
    low: int
    high: int


def misses(intervals: int) -> Misses:
    """Returns the expected misses of this number of intervals with the confidence of verdicts.

    >>> misses(100)
    Misses(expected=5.0, low=1, high=10)
    """
    from scipy import stats

    chance = 1 - CONFIDENCE
    low, high = (int(stats.binom.ppf(part, intervals, chance)) for part in (0.025, 0.975))
    return Misses(round(chance * intervals, 9), low, high)
