"""Heat maps of the grid: a panel for each receive buffer and ratio of rates, in it the losses over the round trips."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from anabranch.figures.canvas import new_figure, package_style
from anabranch.figures.style import lightness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS_PT = 6.5
"""Smallest size of letters at page width."""

CELL_IN = 0.3
"""Height of a cell."""

Place = tuple[float, ...]


class Shade(NamedTuple):
    """Colour for values below `below`."""

    below: float
    color: str
    label: str


class Square(NamedTuple):
    """One cell of the figure: its text, and the value that determines its colour."""

    text: str
    value: float


NEITHER = "#ffffff"
"""Colour of values without gain or loss."""

# From white to dark blue in even steps of lightness, so that the order is seen in greyscale too.
_BLUES = (NEITHER, "#dbe9f6", "#b5d4ea", "#86b9de", "#5598c9", "#2f73ad")

GAIN_SHADES = tuple(
    Shade(below, color, label)
    for below, color, label in zip(
        (0.01, 0.1, 0.3, 1.0, 3.0, float("inf")),
        _BLUES,
        ("less than 1 %", "1 to 10 %", "10 to 30 %", "30 to 100 %", "100 to 300 %", "300 % and more"),
        strict=True,
    )
)

# Losses in orange and bold, gains in blue.
SIGNED_SHADES = (
    Shade(-0.3, "#d9822b", "less by 30 % and more"),
    Shade(-0.1, "#f0b878", "less by 10 to 30 %"),
    Shade(-0.01, "#fbe3c8", "less by 1 to 10 %"),
    Shade(0.01, NEITHER, "within 1 %"),
    Shade(0.1, "#dbe9f6", "more by 1 to 10 %"),
    Shade(0.3, "#b5d4ea", "by 10 to 30 %"),
    Shade(1.0, "#86b9de", "by 30 to 100 %"),
    Shade(float("inf"), "#4f93c6", "by 100 % and more"),
)

LIMIT_SHADES = tuple(
    Shade(below, color, label)
    for below, color, label in zip(
        (0.3, 0.5, 0.7, 0.8, 0.9, float("inf")),
        reversed(_BLUES),
        ("below 30 %", "30 to 50 %", "50 to 70 %", "70 to 80 %", "80 to 90 %", "90 % and more"),
        strict=True,
    )
)


def draw_grid(
    frame: pd.DataFrame,
    rows: str,
    columns: str,
    square: Callable[[Any], Square],
    shades: Sequence[Shade],
    names: Mapping[str, Callable[[Any], str]],
) -> Figure:
    """Draws a panel for each value of `rows` and `columns`, in which `loss_percent` is over `rtt_ratio`.

    `frame` has a row for each square. `names` are the labels of `rows` and `columns`.
    """
    down, across = (list(dict.fromkeys(frame[key])) for key in (rows, columns))
    losses, ratios = (sorted(set(frame[key])) for key in ("loss_percent", "rtt_ratio"))
    figure = new_figure("page", len(down) * (len(losses) * CELL_IN + 0.24) + 0.8)
    with package_style():
        places = figure.subplots(len(down), len(across), squeeze=False, sharex=True, sharey=True)
        for (row, column), own in frame.groupby([rows, columns], sort=False):
            axes = places[down.index(row)][across.index(column)]
            _panel(axes, own, losses, ratios, square, shades)
            axes.set_title(f"{names[rows](row)}, {names[columns](column)}", fontsize=7)
        for axes in places[-1]:
            axes.set_xlabel("round trip x (of path-1's)", fontsize=7)
        for axes in places[:, 0]:
            axes.set_ylabel("loss (%)", fontsize=7)
        _key(figure, shades)
    return figure


def _panel(
    axes: Axes,
    own: pd.DataFrame,
    losses: Sequence[float],
    ratios: Sequence[float],
    square: Callable[[Any], Square],
    shades: Sequence[Shade],
) -> None:
    from matplotlib.patches import Rectangle

    for row in own.itertuples():
        x, y = ratios.index(row.rtt_ratio), losses.index(row.loss_percent)
        text, value = square(row)
        color = next(shade.color for shade in shades if value < shade.below)
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=color, edgecolor="#8a8a8a", linewidth=0.4))
        ink = "black" if lightness(color) > 55 else "white"
        axes.text(
            *(x, y, text),
            ha="center",
            va="center",
            fontsize=LETTERS_PT,
            # Grey has no sign.
            fontweight="bold" if value < 0 and color != NEITHER else "normal",
            color=ink,
            linespacing=1.05,
        )
    axes.set_xlim(-0.5, len(ratios) - 0.5)
    axes.set_ylim(-0.5, len(losses) - 0.5)
    axes.set_xticks(range(len(ratios)), [f"{ratio:g}" for ratio in ratios])
    axes.set_yticks(range(len(losses)), [f"{loss:g}" for loss in losses])
    axes.tick_params(length=0, labelsize=7)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)


def _key(figure: Figure, shades: Sequence[Shade]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=color, edgecolor="#8a8a8a", linewidth=0.4, label=label) for _, color, label in shades]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), 4 if len(handles) > 6 else 6),
        fontsize=7,
        handlelength=1.4,
        columnspacing=1.0,
        frameon=False,
    )
