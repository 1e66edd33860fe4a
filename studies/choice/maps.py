"""Figures: winners, gains over CMT, distance to the limit, and cost for other flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from anabranch.figures.canvas import marker_style, new_figure, package_style
from anabranch.figures.style import looks
from studies.choice.choosing import named
from studies.choice.heat import GAIN_SHADES, LETTERS_PT, LIMIT_SHADES, SIGNED_SHADES, Square, draw_grid
from studies.choice.judging import BASELINE
from studies.choice.naming import LETTER_IN, Box, places
from studies.choice.samples import Floats
from studies.choice.wording import buffer_text, ratio_text, short, signed_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES: Mapping[str, Callable[[Any], str]] = {
    "buffer_kib": lambda value: f"buffer {buffer_text(value)}",
    "rate_ratio": lambda value: f"rate x {ratio_text(value)}",
    "scheme": str,
}


def winner_map(judged: pd.DataFrame) -> Figure:
    """Draws the best scheme of each cell with the number of others that are as good, and its gain over `cmt`."""
    first = named(judged)
    others = judged.groupby("cell")["tied"].sum() - 1
    shown = judged[judged["scheme"] == judged["cell"].map(first)]

    def square(row: Any) -> Square:
        more = f" &{others[row.cell]}" if others[row.cell] else ""
        return Square(f"{short(row.scheme)}\n{signed_percent(row.gain)}{more}", row.gain)

    return draw_grid(shown, "buffer_kib", "rate_ratio", square, GAIN_SHADES, _NAMES)


def limit_map(judged: pd.DataFrame, limit: str = "of_limit") -> Figure:
    """Draws the goodput of the best scheme relative to a limit, and below it `cmt`'s."""
    baseline = judged[judged["scheme"] == BASELINE].set_index("cell")[limit]

    def square(row: Any) -> Square:
        part = getattr(row, limit)
        return Square(f"{100 * part:.0f} %\n{100 * baseline[row.cell]:.0f} %", part)

    return draw_grid(judged[judged["winner"]], "buffer_kib", "rate_ratio", square, LIMIT_SHADES, _NAMES)


def gain_map(judged: pd.DataFrame, scheme: str) -> Figure:
    """Draws the gain of a scheme over `cmt` in every cell."""

    def square(row: Any) -> Square:
        return Square(signed_percent(row.gain), row.gain)

    return draw_grid(judged[judged["scheme"] == scheme], "buffer_kib", "rate_ratio", square, SIGNED_SHADES, _NAMES)


def gains_map(judged: pd.DataFrame, schemes: Sequence[str]) -> Figure:
    """Draws the gains of several schemes over `cmt`, as means over the ratios of rates."""
    keys = ["scheme", "buffer_kib", "rtt_ratio", "loss_percent"]
    shown = judged[judged["scheme"].isin(schemes)].groupby(keys, sort=False)["gain"].mean().reset_index()
    shown["scheme"] = pd.Categorical(shown["scheme"], list(schemes), ordered=True)
    shown = shown.sort_values("scheme", kind="stable").astype({"scheme": str})

    def square(row: Any) -> Square:
        return Square(signed_percent(row.gain), row.gain)

    return draw_grid(shown, "scheme", "buffer_kib", square, SIGNED_SHADES, _NAMES)


def trade_off(ranked: pd.DataFrame, kept: pd.DataFrame) -> Figure:
    """Draws goodput on unshared links over the share of a flow with one path on a shared link."""
    points = ranked[~ranked["outside"]].merge(kept, on="scheme")
    x, y = 100 * points["kept"].to_numpy(), 100 * points["of_best"].to_numpy()
    figure = new_figure("page", TRADE_OFF_IN[1] + 0.6)
    with package_style():
        axes = figure.subplots()
        axes.errorbar(x, y, xerr=100 * points["half_width"], fmt="none", ecolor="#9a9a9a", elinewidth=0.7)
        for at, up, look in zip(x, y, looks(points["scheme"]).values(), strict=True):
            axes.plot([at], [up], linestyle="none", **marker_style(look))
        axes.margins(0.08)
        _name_points(axes, x, y, [short(scheme) for scheme in points["scheme"]])
        axes.axvline(50, color="#555555", linewidth=0.7, linestyle=(0, (3, 2)))
        axes.set_xlabel("what the flow with one path keeps of a shared link (%); 50 is half")
        axes.set_ylabel("goodput on own links,\nmean part of the best (%)")
    return figure


TRADE_OFF_IN = (6.4, 4.2)
"""Roughly the inside of the axes."""


def _name_points(axes: Axes, x: Floats, y: Floats, names: Sequence[str]) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    wide, high = TRADE_OFF_IN
    inches = list(zip((x - left) / (right - left) * wide, (y - bottom) / (top - bottom) * high, strict=True))
    for point, (at, up), name in zip(inches, places(inches, names, Box(0, 0, wide, high)), names, strict=True):
        far = abs(up - point[1]) > 0.2 or abs(at - point[0]) > 0.1 + LETTER_IN * len(name) / 2
        axes.annotate(
            name,
            (point[0] / wide, point[1] / high),
            (at / wide, up / high),
            xycoords="axes fraction",
            fontsize=LETTERS_PT,
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "#9a9a9a", "shrinkA": 0} if far else None,
        )
