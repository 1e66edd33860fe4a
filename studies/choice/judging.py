"""Goodput of each cell and scheme, its gain over CMT, the winner, and the schemes that are as good."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anabranch import Results
from studies.choice.cells import cells
from studies.choice.samples import Floats, Samples, interval, samples

BASELINE = "cmt"

OUTSIDE = ("mptcp-ns2",)
"""Measured schemes that cannot win: the model has no receive window, so that no receiver could run it."""

ALIKE = 0.01
"""Relative difference below which a scheme is as good as the best, even if the difference is significant."""

METRIC = "goodput_kbps"


def judge(results: Results) -> pd.DataFrame:
    """Returns a row for each cell and scheme, in the order of the grid.

    Columns: those of `cells`, `cell` (its number), `scheme`, `n`, `goodput_kbps` with `half_width_kbps`; `gain`, the
    mean over seeds of the difference to `cmt` relative to it, with `gain_half_width`; `of_limit` and `of_shared_limit`;
    `of_best`, the mean goodput relative to the winner's; `winner`, and `tied` for the winner and all that are as good.
    Half-widths are of 95 % intervals over seeds, NaN without an interval.
    """
    taken = samples(results.to_pandas(), results.over, METRIC)
    mean, half_width = interval(taken.values)
    gain, gain_half_width = interval(gains(taken))
    tied = ties(taken)
    winner = np.zeros_like(tied)
    best = winners(mean, taken.schemes)
    winner[np.arange(len(best)), best] = True
    judged = taken.cells.merge(cells(results), on=results.over).loc[np.repeat(np.arange(len(mean)), mean.shape[1])]
    judged = judged.reset_index(drop=True).assign(
        cell=np.repeat(np.arange(len(mean)), mean.shape[1]),
        scheme=list(taken.schemes) * len(mean),
        n=len(taken.seeds),
        goodput_kbps=mean.ravel(),
        half_width_kbps=half_width.ravel(),
        gain=gain.ravel(),
        gain_half_width=gain_half_width.ravel(),
        of_best=(mean / np.take_along_axis(mean, best[:, None], axis=1)).ravel(),
        winner=winner.ravel(),
        tied=tied.ravel(),
    )
    judged["of_limit"] = judged[METRIC] / judged["limit_kbps"]
    judged["of_shared_limit"] = judged[METRIC] / judged["shared_limit_kbps"]
    return judged


def gains(taken: Samples) -> Floats:
    """Returns the difference of each run to `cmt`'s with the same seed, relative to it: `[cell, scheme, seed]`."""
    return taken.values / taken.of(BASELINE)[:, None] - 1


def winners(mean: Floats, schemes: Collection[str]) -> NDArray[np.intp]:
    """Returns for each cell the index of the scheme with the highest mean of those that can win."""
    outside = np.array([scheme in OUTSIDE for scheme in schemes])
    places: NDArray[np.intp] = np.where(outside, -np.inf, mean).argmax(axis=1)
    return places


def ties(taken: Samples) -> NDArray[np.bool_]:
    """Returns for each cell and scheme `True` if it is the best or as good.

    A scheme is as good if the 95 % interval of its paired difference to the best contains zero, or if the difference is
    less than `ALIKE` of the best.
    """
    best = winners(taken.values.mean(axis=-1), taken.schemes)
    of_best = np.take_along_axis(taken.values, best[:, None, None], axis=1)
    behind, half_width = interval(1 - taken.values / of_best)
    outside = np.array([scheme in OUTSIDE for scheme in taken.schemes])
    tied: NDArray[np.bool_] = ((behind < ALIKE) | (behind - half_width <= 0)) & ~outside
    return tied


def exceeding(judged: pd.DataFrame, limit: str = "of_limit") -> pd.DataFrame:
    """Returns the rows whose goodput is above the limit of their cell."""
    return judged[judged[limit] > 1]
