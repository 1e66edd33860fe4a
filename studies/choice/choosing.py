"""Summary of the cells: the best scheme for each kind of links, and the results of schemes over all cells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.choice.judging import BASELINE, METRIC, OUTSIDE, gains, ties
from studies.choice.samples import Floats, Samples, interval

NEAR_RATIO = 2.0
"""Round trips that differ by no more than this factor are called alike."""

LITTLE_PERCENT = 0.1
"""Up to here a loss is called little."""


FAIR = 0.45
"""Minimum share of a link for the flow with one path, beside which a scheme is fair. Half is even."""

CLOSE = 0.05
"""Maximum relative distance to the best at which a scheme may represent a cell, even if the difference may be chance.
"""


def advice(taken: Samples, judged: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each kind of links: the scheme with the smallest average distance to the best of each cell.

    Columns: `buffer_kib`, `round_trips` and `loss` in words, `cells`, `use`, `as_good` (schemes that are equally good
    on average, by the rule of `ties`), `of_best` and `worst` (mean and minimum relative to the best goodput),
    `of_limit` (mean) and `cmt_of_best`. `fair` is the closest of the schemes beside which a flow with one path has
    `FAIR` of a link, with `fair_of_best`. `kept` is the share of that flow beside `use`, as in `taken` of `sharing`.
    """
    keeps = kept.set_index("scheme")["kept"]
    relative = relative_to_best(taken, judged)
    rows = []
    for kind, places in kinds(judged):
        together = Samples(relative[places].mean(axis=0)[None], pd.DataFrame(index=[0]), taken.schemes, taken.seeds)
        as_good = ties(together)[0]
        means = np.where(as_good, together.values[0].mean(axis=-1), -np.inf)
        order = [taken.schemes[place] for place in np.argsort(-means, kind="stable") if as_good[place]]
        own = judged[judged["cell"].isin(places)]
        of_best = own.groupby("scheme")["of_best"].mean()
        leaves_enough = [scheme for scheme in of_best.index if keeps[scheme] >= FAIR and scheme not in OUTSIDE]
        fair = order[0] if order[0] in leaves_enough else str(of_best[leaves_enough].idxmax())
        chosen = own[own["scheme"] == order[0]]
        rows.append(
            kind
            | {
                "cells": len(places),
                "use": order[0],
                "as_good": order[1:],
                "of_best": chosen["of_best"].mean(),
                "worst": chosen["of_best"].min(),
                "of_limit": chosen["of_limit"].mean(),
                "kept": keeps[order[0]],
                "fair": fair,
                "fair_of_best": of_best[fair],
                "cmt_of_best": of_best[BASELINE],
            }
        )
    return pd.DataFrame(rows)


def kinds(judged: pd.DataFrame) -> Iterator[tuple[dict[str, object], NDArray[np.intp]]]:
    """Yields the kinds of links with advice, each with the numbers of its cells."""
    cells = judged.drop_duplicates("cell").assign(
        round_trips=lambda frame: np.where(frame["rtt_ratio"] <= NEAR_RATIO, "alike", "unlike"),
        loss=lambda frame: np.where(frame["loss_percent"] <= LITTLE_PERCENT, "little", "much"),
    )
    columns = ["buffer_kib", "round_trips", "loss"]
    for key, own in cells.groupby(columns, sort=False):
        yield dict(zip(columns, key, strict=True)), own["cell"].to_numpy()


def relative_to_best(taken: Samples, judged: pd.DataFrame) -> Floats:
    """Returns each run relative to the mean of its cell's winner: `[cell, scheme, seed]`."""
    best = judged[judged["winner"]].sort_values("cell")[METRIC].to_numpy()
    relative: Floats = taken.values / best[:, None, None]
    return relative


def ranking(taken: Samples, judged: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each scheme, sorted by the average distance to the best of each cell.

    Schemes that cannot win are last. Columns: `scheme`, `outside` (cannot win); `as_good` and `alone`, the numbers of
    cells in which it is as good as the best, and the only such scheme; `of_best` and `worst`; `gain` over `cmt`,
    geometric mean over the cells with `gain_half_width` over seeds, and `least_gain` and `most_gain` of a cell;
    `of_limit` and `of_shared_limit`, means.
    """
    over_cells, half_width = interval(np.exp(np.log1p(gains(taken)).mean(axis=0)) - 1)
    tied_in_cell = judged.groupby("cell")["tied"].transform("sum")
    groups = judged.assign(alone=judged["tied"] & (tied_in_cell == 1)).groupby("scheme", sort=False)
    found = groups.agg(
        as_good=("tied", "sum"),
        alone=("alone", "sum"),
        of_best=("of_best", "mean"),
        worst=("of_best", "min"),
        least_gain=("gain", "min"),
        most_gain=("gain", "max"),
        of_limit=("of_limit", "mean"),
        of_shared_limit=("of_shared_limit", "mean"),
    )
    found = found.loc[list(taken.schemes)].assign(gain=over_cells, gain_half_width=half_width)
    found["outside"] = found.index.isin(OUTSIDE)
    return found.sort_values(["outside", "of_best"], ascending=[True, False], kind="stable").reset_index()


def named(judged: pd.DataFrame) -> pd.Series:
    """Returns for each cell the scheme that represents all that are as good as the best.

    The choice is `sctp` or `cmt` if they are as good, and otherwise the scheme that is as good as the best one in the
    most cells. A scheme whose mean is more than `CLOSE` behind never represents a cell.
    """
    often = judged.groupby("scheme")["tied"].sum()
    rank = judged["scheme"].map(often) + judged["scheme"].map({"sctp": 2e6, BASELINE: 1e6}).fillna(0)
    tied = judged.assign(rank=rank)[judged["tied"] & (judged["of_best"] >= 1 - CLOSE)]
    first = tied.sort_values("rank", ascending=False, kind="stable").drop_duplicates("cell")
    return first.set_index("cell")["scheme"].sort_index()
