"""Goodput over all paths, beside that of the best path alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def best_of(means: Mapping[str, float]) -> str:
    """Returns the name with the largest mean, the first one of equal means."""
    return max(means, key=means.__getitem__)


def ratios_left_out(together: Sequence[float], alone: Mapping[str, Sequence[float]]) -> list[float]:
    """Returns for each seed the goodput over all paths, divided by that of the path that is best for all other seeds.

    The maximum of several noisy means is biased upwards. A path chosen by other seeds avoids this bias. A single seed
    chooses its own path.

    >>> ratios_left_out([9, 10], {"path-1": [8, 9], "path-2": [10, 1]})
    [1.125, 10.0]
    """
    values = {name: np.asarray(sample, dtype=float) for name, sample in alone.items()}
    ratios = []
    for at, goodput in enumerate(together):
        others = [other for other in range(len(together)) if other != at] or [at]
        best = best_of({name: float(sample[others].mean()) for name, sample in values.items()})
        ratios.append(ratio(goodput, float(values[best][at])))
    return ratios


def ratio(goodput_kbps: float, of_kbps: float) -> float:
    """Returns one goodput over another, and 1 if both are zero.

    The ratio is at most `MAX_RATIO`, which is also the result if only `of_kbps` is zero, so that means stay finite.
    """
    if of_kbps > 0:
        return min(goodput_kbps / of_kbps, MAX_RATIO)
    return MAX_RATIO if goodput_kbps > 0 else 1.0


MAX_RATIO = 100.0
"""Bound of ratios, beyond which they have no further meaning."""
