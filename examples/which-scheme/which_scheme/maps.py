"""The figures: who wins, what is gained over CMT, how near the limit that is, and what it costs others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from anabranch.figures.canvas import marker_style, new_figure, our_style
from anabranch.figures.style import looks
from which_scheme.choosing import named
from which_scheme.heat import GAIN_SHADES, LETTERS_PT, LIMIT_SHADES, SIGNED_SHADES, Square, draw_grid
from which_scheme.judging import BASELINE
from which_scheme.wording import buffer_text, ratio_text, short, signed_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES: Mapping[str, Callable[[Any], str]] = {
    "buffer_kib": lambda value: f"buffer {buffer_text(value)}",
    "rate_ratio": lambda value: f"rate x {ratio_text(value)}",
    "scheme": str,
}


def winner_map(judged: pd.DataFrame) -> Figure:
    """The scheme that is best in each cell, with the number of others that are as good, and its gain over `cmt`."""
    first = named(judged)
    others = judged.groupby("cell")["tied"].sum() - 1
    shown = judged[judged["scheme"] == judged["cell"].map(first)]

    def square(row: Any) -> Square:
        more = f" &{others[row.cell]}" if others[row.cell] else ""
        return Square(f"{short(row.scheme)}{more}\n{signed_percent(row.gain)}", row.gain)

    return draw_grid(shown, "buffer_kib", "rate_ratio", square, GAIN_SHADES, _NAMES)


def limit_map(judged: pd.DataFrame) -> Figure:
    """The goodput of the best scheme as a part of the limit, and below it `cmt`'s."""
    baseline = judged[judged["scheme"] == BASELINE].set_index("cell")["of_limit"]

    def square(row: Any) -> Square:
        return Square(f"{100 * row.of_limit:.0f} %\n{100 * baseline[row.cell]:.0f} %", row.of_limit)

    return draw_grid(judged[judged["winner"]], "buffer_kib", "rate_ratio", square, LIMIT_SHADES, _NAMES)


def gain_map(judged: pd.DataFrame, scheme: str) -> Figure:
    """The gain of a scheme over `cmt` in every cell."""

    def square(row: Any) -> Square:
        return Square(signed_percent(row.gain), row.gain)

    return draw_grid(judged[judged["scheme"] == scheme], "buffer_kib", "rate_ratio", square, SIGNED_SHADES, _NAMES)


def gains_map(judged: pd.DataFrame, schemes: Sequence[str]) -> Figure:
    """The gains of several schemes over `cmt`, each the mean over the ratios of rates."""
    keys = ["scheme", "buffer_kib", "rtt_ratio", "loss_percent"]
    shown = judged[judged["scheme"].isin(schemes)].groupby(keys, sort=False)["gain"].mean().reset_index()
    shown["scheme"] = pd.Categorical(shown["scheme"], list(schemes), ordered=True)
    shown = shown.sort_values("scheme", kind="stable").astype({"scheme": str})

    def square(row: Any) -> Square:
        return Square(signed_percent(row.gain), row.gain)

    return draw_grid(shown, "scheme", "buffer_kib", square, SIGNED_SHADES, _NAMES)


def trade_off(ranked: pd.DataFrame, kept: pd.DataFrame) -> Figure:
    """Goodput on links of one's own against what a flow with one path keeps where a link is shared."""
    points = ranked.merge(kept, on="scheme")
    figure = new_figure("page", 4.2)
    with our_style():
        axes = figure.subplots()
        for scheme, look in looks(points["scheme"]).items():
            point = points[points["scheme"] == scheme].iloc[0]
            x, y = 100 * point["kept"], 100 * point["of_best"]
            axes.errorbar(x, y, xerr=100 * point["half_width"], fmt="none", ecolor="#9a9a9a", elinewidth=0.7)
            axes.plot([x], [y], linestyle="none", **marker_style(look))
        _label(axes, points)
        axes.axvline(50, color="#555555", linewidth=0.7, linestyle=(0, (3, 2)))
        axes.set_xlabel("what the flow with one path keeps of a shared link (%); 50 is half")
        axes.set_ylabel("goodput on own links,\nmean part of the best (%)")
    return figure


def _label(axes: Any, points: pd.DataFrame) -> None:
    """Names beside the markers, moved up or down until none covers another."""
    taken: list[tuple[float, float]] = []
    for row in points.sort_values("of_best").itertuples():
        x, y = 100 * row.kept, 100 * row.of_best
        lifted = y
        while any(abs(lifted - other_y) < 1.9 and abs(x - other_x) < 9 for other_x, other_y in taken):
            lifted += 0.4
        taken.append((x, lifted))
        axes.annotate(
            short(row.scheme),
            (x, y),
            (x + 0.9, lifted),
            fontsize=LETTERS_PT,
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": "#9a9a9a"} if lifted - y > 0.5 else None,
        )
