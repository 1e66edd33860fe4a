"""Axes to draw on, and the common style and sizes of all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from matplotlib import style
from matplotlib.figure import Figure

from anabranch.errors import FigureError
from anabranch.figures.style import DASH_PATTERNS, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Width = Literal["column", "page"]

# Inches: a column and the text width of a common two-column page, so that letters keep their size in print.
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


def package_style() -> AbstractContextManager[None]:
    """Returns a context in which the user's settings of matplotlib do not apply."""
    return style.context(["default", STYLE])


class GrowingFigure(Figure):
    """Figure that grows to make room for a legend below its axes."""

    def grow(self, by_in: float) -> None:
        """Makes the figure `by_in` inches higher than its original height."""
        if not hasattr(self, "_made_in"):
            self._made_in = self.get_figheight()
        self.set_figheight(self._made_in + by_in)


def new_figure(width: Width = "column", height_in: float | None = None) -> Figure:
    """Returns an empty figure in the style of this package, unknown to pyplot. `height_in` is in inches."""
    if width not in SIZES:
        raise FigureError(f"width={width!r}: expected one of {', '.join(map(repr, SIZES))}")
    wide, high = SIZES[width]
    with package_style():
        return GrowingFigure(figsize=(wide, height_in or high), layout="constrained")


@contextmanager
def drawing(ax: Axes | None, width: Width = "column", title: str | None = None) -> Iterator[Axes]:
    """Yields the Axes to draw on: by default those of a new pyplot figure in our style, which notebooks show.

    Given Axes keep their style and sizes.
    """
    if ax is not None:
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes):
            raise FigureError(f"ax= expects matplotlib Axes, not {type(ax).__name__}")
        yield ax
        _set_title(ax, title)
        return
    from matplotlib import pyplot

    # The first figure starts the backend, whose settings must persist, so it is created outside the package's style.
    figure = pyplot.figure(
        figsize=SIZES[width],
        dpi=STYLE["figure.dpi"],
        facecolor="white",
        layout="constrained",
        FigureClass=GrowingFigure,
    )
    with package_style():
        made = figure.subplots()
        _settle_ticks(made)
        try:
            yield made
        except BaseException:
            pyplot.close(figure)
            raise
        _set_title(made, title)


@contextmanager
def styled_axes(width: Width = "column", height_in: float | None = None) -> Iterator[Axes]:
    """Yields Axes of a figure in our style that is unknown to pyplot, for code that writes files."""
    figure = new_figure(width, height_in)
    with package_style():
        axes = figure.subplots()
        _settle_ticks(axes)
        yield axes


@contextmanager
def styled_pair(widths: tuple[int, int]) -> Iterator[tuple[Axes, Axes]]:
    """Yields two Axes beside each other with one y axis, in a figure as wide as a page; see `styled_axes`."""
    figure = new_figure("page")
    with package_style():
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=widths)
        for axes in (left, right):
            _settle_ticks(axes)
        yield left, right


def line_style(look: Look, markers: bool = True) -> dict[str, Any]:
    """Returns keyword arguments of `Axes.plot`."""
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
    """Returns keyword arguments of `Axes.plot` for the markers alone."""
    return {
        "marker": look.marker,
        "markersize": 4,
        "markeredgewidth": 0.9,
        "markeredgecolor": look.color,
        "markerfacecolor": look.color if look.filled else "white",
    }


def _settle_ticks(axes: Axes) -> None:
    """Sets the style of ticks at once, because matplotlib may create them later, outside the package's style."""
    axes.tick_params(labelsize=STYLE["xtick.labelsize"], width=STYLE["axes.linewidth"], labelfontfamily="DejaVu Sans")
    axes.tick_params(grid_color=STYLE["grid.color"], grid_linewidth=STYLE["grid.linewidth"])


def _set_title(ax: Axes, title: str | None) -> None:
    if title:
        ax.set_title(title)
