"""Who wins where: goodput of each cell and scheme, its gain over CMT, and who is as good as the best."""

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
"""What is measured and cannot win: its model has no receive window, so no receiver could run it."""

ALIKE = 0.01
"""A scheme that is less than this part behind the best is as good, however sure the difference is."""

METRIC = "goodput_kbps"


def judge(results: Results) -> pd.DataFrame:
    """One row per cell and scheme, in the order of the grid.

    Columns: those of `cells`, `cell` (its number), `scheme`, `n`, `goodput_kbps` with `half_width_kbps`; `gain`, the
    mean over seeds of the difference to `cmt` as a part of it, with `gain_half_width`; `of_limit` and
    `of_shared_limit`; `of_best`, the mean goodput as a part of the winner's; `winner`, and `tied` for the winner and
    all that are as good. Half-widths are of 95 % intervals over seeds, NaN where there is none.
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
    """The difference of each run to `cmt`'s with the same seed, as a part of that: `[cell, scheme, seed]`."""
    return taken.values / taken.of(BASELINE)[:, None] - 1


def winners(mean: Floats, schemes: Collection[str]) -> NDArray[np.intp]:
    """For each cell the scheme with the highest mean, by its place in the list, of those that can win."""
    outside = np.array([scheme in OUTSIDE for scheme in schemes])
    places: NDArray[np.intp] = np.where(outside, -np.inf, mean).argmax(axis=1)
    return places


def ties(taken: Samples) -> NDArray[np.bool_]:
    """For each cell and scheme, whether it is the best or as good as that.

    As good is a scheme whose paired difference from the best is not significant, which is to say that its 95 % interval
    has zero in it, or less than `ALIKE` of the best.
    """
    best = winners(taken.values.mean(axis=-1), taken.schemes)
    of_best = np.take_along_axis(taken.values, best[:, None, None], axis=1)
    behind, half_width = interval(1 - taken.values / of_best)
    outside = np.array([scheme in OUTSIDE for scheme in taken.schemes])
    tied: NDArray[np.bool_] = ((behind < ALIKE) | (behind - half_width <= 0)) & ~outside
    return tied


def exceeding(judged: pd.DataFrame, limit: str = "of_limit") -> pd.DataFrame:
    """The rows whose goodput is above the limit of their cell."""
    return judged[judged[limit] > 1]
