"""How many of many intervals miss by chance."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.experiments.verdicts.estimates import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Misses:
    """Of so many intervals, how many miss the true value: on average, and from `low` to `high` with 95 %.

    The average needs each interval to cover the true value as often as its confidence says. The range needs them to be
    independent of each other as well.
    """

    expected: float
    low: int
    high: int


def misses(intervals: int) -> Misses:
    """What is to be expected of so many intervals of the confidence that verdicts have.

    >>> misses(100)
    Misses(expected=5.0, low=1, high=10)
    """
    from scipy import stats

    chance = 1 - CONFIDENCE
    low, high = (int(stats.binom.ppf(part, intervals, chance)) for part in (0.025, 0.975))
    return Misses(round(chance * intervals, 9), low, high)
