"""Tables of the study."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from anabranch.experiments.pages.document import Table
from studies.choice.judging import BASELINE, OUTSIDE
from studies.choice.wording import buffer_text, percent, ratio_text, signed_percent, with_half_width


def advice_table(advised: pd.DataFrame) -> Table:
    """Returns the advice for each kind of links."""
    rows = [
        [
            buffer_text(row.buffer_kib),
            row.round_trips,
            row.loss,
            f"`{row.use}`",
            _names(row.as_good),
            percent(row.of_best),
            percent(row.worst),
            percent(row.of_limit),
            percent(row.kept),
            f"`{row.fair}`",
            percent(row.fair_of_best),
            percent(row.cmt_of_best),
        ]
        for row in advised.itertuples()
    ]
    header = ["receive buffer", "round trips", "loss on path-2", "use", "or, as good on average"]
    header += [
        "of the best",
        "at worst",
        "of the limit",
        "one-path flow keeps",
        "where links are shared",
        "of the best",
    ]
    return Table([*header, "`cmt`, of the best"], rows, frozenset({5, 6, 7, 8, 10, 11}))


def ranking_table(ranked: pd.DataFrame, kept: pd.DataFrame) -> Table:
    """Returns the results of every scheme over all cells, and the share of other flows."""
    rows = [
        [
            _name(row.scheme),
            str(row.as_good),
            str(row.alone),
            percent(row.of_best),
            percent(row.worst),
            with_half_width(row.gain, row.gain_half_width),
            signed_percent(row.least_gain),
            signed_percent(row.most_gain),
            percent(row.of_limit),
            percent(row.of_shared_limit),
            f"{100 * row.kept:.1f} ± {100 * row.half_width:.1f} %",
        ]
        for row in ranked.merge(kept, on="scheme").itertuples()
    ]
    header = ["scheme", "cells in which it is as good as the best", "alone", "of the best", "at worst"]
    header += ["gain over `cmt`", "least", "most", "of the limit", "of the shared limit", "one-path flow keeps"]
    return Table(header, rows, frozenset(range(1, 11)))


def sharing_table(shares: pd.DataFrame) -> Table:
    """Returns the share of the flow with one path beside each scheme in each condition."""
    conditions = shares[["buffer_kib", "rtt_ratio"]].drop_duplicates()
    header = ["beside"]
    header += [f"{buffer_text(row.buffer_kib)}, round trips 1:{row.rtt_ratio:g}" for row in conditions.itertuples()]
    rows = [
        [f"`{scheme}`", *(f"{100 * row.kept:.1f} ± {100 * row.half_width:.1f} %" for row in own.itertuples())]
        for scheme, own in shares.groupby("scheme", sort=False)
    ]
    return Table(header, rows, frozenset(range(1, len(header))))


def room_table(judged: pd.DataFrame) -> Table:
    """Returns the distances of the best scheme and of `cmt` from the limits, by receive buffer and round trips."""
    keys = ["buffer_kib", "rtt_ratio"]
    measures = ["of_limit", "of_shared_limit"]
    best = judged[judged["winner"]].groupby(keys, sort=False)[measures].mean()
    baseline = judged[judged["scheme"] == BASELINE].groupby(keys, sort=False)[measures].mean()
    rows = [
        [
            buffer_text(buffer_kib),
            f"1:{ratio:g}",
            *(percent(part) for frame in (best, baseline) for part in frame.loc[key]),
        ]
        for key in best.index
        for buffer_kib, ratio in [key]
    ]
    header = ["receive buffer", "round trips", "best, of the limit", "of the shared limit", "`cmt`, of the limit"]
    return Table([*header, "of the shared limit"], rows, frozenset({2, 3, 4, 5}))


def explained_table(explained: pd.DataFrame) -> Table:
    """Returns single runs of some cells with their limits."""
    rows = [
        [
            f"{buffer_text(row.buffer_kib)}, rate x {ratio_text(row.rate_ratio)}, round trip x {row.rtt_ratio:g}, "
            f"loss {row.loss_percent:g} %",
            f"`{row.scheme}`",
            f"{row.goodput_kbps:.0f}",
            percent(row.closed),
            f"{percent(row.used_1)}, {percent(row.used_2)}",
            f"{row.cwnd_1_kib:.0f}, {row.cwnd_2_kib:.0f}",
            str(row.cuts),
            str(row.timeouts),
            f"{row.retransmitted}, {row.spurious}",
        ]
        for row in explained.itertuples()
    ]
    header = ["cell", "scheme", "kbit/s", "peer's window closed", "rates used", "mean cwnd, KiB", "cuts", "T3"]
    return Table([*header, "sent again, needlessly"], rows, frozenset(range(2, 9)))


def winners_table(judged: pd.DataFrame) -> Table:
    """Returns every cell: the winner with its goodput, its gain over `cmt`, and all that are as good."""
    rows = []
    for _, own in judged.groupby("cell", sort=False):
        baseline = own[own["scheme"] == BASELINE].iloc[0]
        row = own[own["winner"]].iloc[0]
        tied = own[own["tied"] & ~own["winner"]].sort_values("goodput_kbps", ascending=False)
        goodput = f"{row['goodput_kbps']:.0f} ± {row['half_width_kbps']:.0f}"
        rows.append(
            [
                buffer_text(row["buffer_kib"]),
                ratio_text(row["rate_ratio"]),
                f"{row['rtt_ratio']:g}",
                f"{row['loss_percent']:g} %",
                f"`{row['scheme']}`",
                goodput.replace(" ± nan", ""),
                f"{baseline['goodput_kbps']:.0f}",
                with_half_width(row["gain"], row["gain_half_width"]),
                percent(row["of_limit"]),
                _names(list(tied["scheme"])),
            ]
        )
    header = ["receive buffer", "rate x", "round trip x", "loss", "best", "kbit/s", "`cmt`, kbit/s", "over `cmt`"]
    return Table([*header, "of the limit", "as good"], rows, frozenset({1, 2, 3, 5, 6, 7, 8}))


def _name(scheme: str) -> str:
    return f"`{scheme}` (cannot win)" if scheme in OUTSIDE else f"`{scheme}`"


def _names(schemes: Sequence[str]) -> str:
    return ", ".join(f"`{scheme}`" for scheme in schemes) or "none"
