"""Legends outside the axes, where they cover no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams
from matplotlib.transforms import ScaledTranslation

from anabranch.figures.canvas import GrowingFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Height of a line of a legend, in inches.
_LINE_IN = 0.14


def legend(axes: Axes, note: str = "") -> None:
    """Adds a legend with a note above its entries.

    The legend is below the axes if the figure has a layout engine, which makes room for it, and inside the axes
    otherwise.
    """
    handles, names = axes.get_legend_handles_labels()
    if not handles and not note:
        return
    place: dict[str, Any] = {"loc": "best"}
    figure = axes.figure.figure
    if figure.get_layout_engine() is not None:
        drop = ScaledTranslation(0, -_below_axes_pt(axes) / 72, axes.figure.dpi_scale_trans)
        columns = _columns(axes, names)
        place = {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0.0),
            "bbox_transform": axes.transAxes + drop,
            "borderaxespad": 0.0,
            "ncols": columns,
        }
        if isinstance(figure, GrowingFigure) and len(figure.axes) == 1:
            lines = math.ceil(len(names) / columns) + note.count("\n")
            figure.grow(max(0, lines - 1) * _LINE_IN)
    made = axes.legend(handles, names, title=note or None, alignment="left", **place)
    made.set_zorder(5)


def _below_axes_pt(axes: Axes) -> float:
    """Returns the distance of the legend from the axes in points: below the labels of ticks and axis."""
    size = float(rcParams["font.size"])
    has_ticks, has_label = bool(len(axes.get_xticks())), bool(axes.get_xlabel())
    return 0.6 * size + 1.6 * size * has_ticks + 1.6 * size * has_label


def _columns(axes: Axes, names: Sequence[str]) -> int:
    """Returns the number of columns that fit the width of the figure."""
    # The layout will widen the axes.
    wide_pt = 1.15 * axes.get_position().width * axes.figure.bbox.width * 72 / axes.figure.dpi
    size = float(rcParams["font.size"])
    # The handle, the gaps around it, and letters of half the font size.
    entries_pt = [3.8 * size + 0.52 * size * len(name) for name in names]
    for columns in range(len(names), 1, -1):
        if sum(max(column) for column in np.array_split(entries_pt, columns)) <= wide_pt:
            # The same number of rows may need fewer columns.
            rows = math.ceil(len(names) / columns)
            return math.ceil(len(names) / rows)
    return 1
