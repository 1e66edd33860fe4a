"""Axes to draw on, and what all figures have in common: sizes, legend, note."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from matplotlib import rcParams, style
from matplotlib.transforms import ScaledTranslation

from anabranch.errors import FigureError
from anabranch.figures.style import DASH_PATTERNS, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Width = Literal["column", "page"]

# Inches: a column and the text width of the usual two-column page, so that letters keep their size in print.
SIZES: dict[Width, tuple[float, float]] = {"column": (3.5, 2.9), "page": (7.16, 3.0)}

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.xmargin": 0.02,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.title_fontsize": 6.5,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.borderpad": 0.3,
    "legend.labelspacing": 0.3,
    "legend.handlelength": 2.8,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
    "hatch.linewidth": 0.6,
    "figure.dpi": 150,
}


def our_style() -> AbstractContextManager[None]:
    """In which figures are the same whatever people have set for themselves."""
    return style.context(["default", STYLE])


def new_figure(width: Width = "column", height_in: float | None = None) -> Figure:
    """An empty figure in the style of this package, which no pyplot knows of. `height_in` is in inches."""
    from matplotlib.figure import Figure

    if width not in SIZES:
        raise FigureError(f"width={width!r}: expected one of {', '.join(map(repr, SIZES))}")
    wide, high = SIZES[width]
    with our_style():
        return Figure(figsize=(wide, height_in or high), layout="constrained")


@contextmanager
def drawing(ax: Axes | None, width: Width = "column", title: str | None = None) -> Iterator[Axes]:
    """The Axes to draw on. Without any, those of a new pyplot figure in our style, which notebooks show by themselves.

    Given Axes keep the style and the sizes that their owner chose.
    """
    if ax is not None:
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes):
            raise FigureError(f"ax= expects matplotlib Axes, not {type(ax).__name__}")
        yield ax
        _set_title(ax, title)
        return
    from matplotlib import pyplot

    with our_style():
        figure, made = pyplot.subplots(figsize=SIZES[width], layout="constrained")
        try:
            yield made
        except BaseException:
            pyplot.close(figure)
            raise
        _set_title(made, title)


@contextmanager
def own_axes(width: Width = "column", height_in: float | None = None) -> Iterator[Axes]:
    """Axes of a figure of our own in our style, for what writes files: pyplot does not hear of it."""
    figure = new_figure(width, height_in)
    with our_style():
        yield figure.subplots()


def line_style(look: Look, markers: bool = True) -> dict[str, Any]:
    """Keyword arguments of `Axes.plot`."""
    pattern = DASH_PATTERNS[look.dash]
    style: dict[str, Any] = {
        "color": look.color,
        "linestyle": (0, pattern) if pattern else "-",
        "linewidth": 1.2,
    }
    if markers:
        style |= marker_style(look)
    return style


def marker_style(look: Look) -> dict[str, Any]:
    """Keyword arguments of `Axes.plot` for the markers alone."""
    return {
        "marker": look.marker,
        "markersize": 4,
        "markeredgewidth": 0.9,
        "markeredgecolor": look.color,
        "markerfacecolor": look.color if look.filled else "white",
    }


def legend(axes: Axes, note: str = "") -> None:
    """A legend with a note above its entries: below the axes where the layout makes room for it, and inside them if
    not."""
    handles, names = axes.get_legend_handles_labels()
    if not handles and not note:
        return
    place: dict[str, Any] = {"loc": "best"}
    if axes.figure.figure.get_layout_engine() is not None:
        drop = ScaledTranslation(0, -_below_axes_pt(axes) / 72, axes.figure.dpi_scale_trans)
        place = {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0.0),
            "bbox_transform": axes.transAxes + drop,
            "borderaxespad": 0.0,
            "ncols": _columns(axes, names),
        }
    made = axes.legend(handles, names, title=note or None, alignment="left", **place)
    made.set_zorder(5)


def _below_axes_pt(axes: Axes) -> float:
    """Where a legend below the axes begins, in points under them: after the names of ticks and axis."""
    size = float(rcParams["font.size"])
    has_ticks, has_label = bool(len(axes.get_xticks())), bool(axes.get_xlabel())
    return 0.6 * size + 1.6 * size * has_ticks + 1.6 * size * has_label


def _columns(axes: Axes, names: Sequence[str]) -> int:
    """As many columns as the figure is wide enough for."""
    wide_pt = axes.get_position().width * axes.figure.bbox.width * 72 / axes.figure.dpi
    size = float(rcParams["font.size"])
    # The handle, the gaps around it, and letters of half the size.
    entry_pt = 3.8 * size + 0.52 * size * max(len(name) for name in names)
    return max(1, min(len(names), int(wide_pt / entry_pt)))


def _set_title(ax: Axes, title: str | None) -> None:
    if title:
        ax.set_title(title)
