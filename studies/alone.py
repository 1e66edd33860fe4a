"""Goodput over all paths, beside that of the best path alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def best_of(means: Mapping[str, float]) -> str:
    """The name with the largest mean; the first of those that are alike."""
    return max(means, key=means.__getitem__)


def ratios_left_out(together: Sequence[float], alone: Mapping[str, Sequence[float]]) -> list[float]:
    """For each seed: goodput over all paths, over that of the path which is best by the mean of all other seeds.

    The largest of several noisy means is too large in the mean. A path that is chosen on other seeds is not. With one
    seed there are no others, and the path is chosen on it.

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
    """One over the other. Where neither path nor scheme gets anything through they are equal.

    Without a goodput to compare with there is no ratio: it is bounded, so that means stay finite.
    """
    if of_kbps > 0:
        return min(goodput_kbps / of_kbps, MAX_RATIO)
    return MAX_RATIO if goodput_kbps > 0 else 1.0


MAX_RATIO = 100.0
"""Ratios above this say nothing more."""
