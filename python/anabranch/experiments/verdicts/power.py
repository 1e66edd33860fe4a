"""Detectable difference for a number of seeds, by the power of the paired t test.

Cohen, Statistical Power Analysis for the Behavioral Sciences, chapter 2: the test finds a true mean difference d, of n
pairs whose differences have the standard deviation s, with the probability that the noncentral t distribution with the
noncentrality d·√n/s gives. Its square has the noncentral F distribution, whose functions SciPy can invert.
"""

from __future__ import annotations

import math

POWER = 0.8
LEVEL = 0.05
MAX_SEEDS = 1000


def detectable(std: float, seeds: int) -> float:
    """Returns the smallest difference that this number of pairs detects, in the unit of their standard deviation.

    >>> round(detectable(1.0, 34), 2)
    0.5
    """
    from scipy import special, stats

    if seeds < 2:
        raise ValueError(f"{seeds} pairs have no scatter; there have to be two at least")
    critical = stats.f.isf(LEVEL, 1, seeds - 1)
    return std * math.sqrt(float(special.ncfdtrinc(1, seeds - 1, 1 - POWER, critical)) / seeds)


def seeds_needed(std: float, difference: float) -> int | None:
    """Returns the smallest number of pairs that detects a difference, or `None` if `MAX_SEEDS` do not.

    >>> seeds_needed(1.0, 0.5)
    34
    """
    if difference <= 0:
        raise ValueError(f"a difference of {difference:g} is none; it has to be above 0")
    few, many = 2, MAX_SEEDS
    if detectable(std, many) > difference:
        return None
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if detectable(std, middle) <= difference else (middle + 1, many)
    return many
