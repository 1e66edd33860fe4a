"""Draws the claimed numbers over a figure: large hollow marks and dashed lines, named as claimed in the legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.experiments.drawing.published import Extent, Published

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOM_ABOVE = 1.05


@dataclass(frozen=True, slots=True)
class Mark:
    """Style of the published numbers of a scheme or path. `face` fills a hollow mark."""

    color: str
    marker: str
    face: str = "none"


NEUTRAL = Mark("#5f6b76", "o")
"""Mark of numbers about all schemes."""

ON_BARS = Mark("#000000", "D", "#ffffff")
"""Mark on bars, whose colours identify the scheme."""

_EXTENTS: Mapping[Extent, str] = {
    "point": "value",
    "mean": "mean",
    "largest": "largest",
}


def overlay(
    axes: Axes,
    published: Iterable[Published],
    mark: Callable[[Published], Mark],
    place: Callable[[Published], float],
    span: tuple[float, float],
) -> None:
    """Draws published numbers into a panel.

    `place` returns the position of a point, and `span` the range of the panel's data.
    """
    top = axes.get_ylim()[1]
    for each in published:
        if each.extent == "point":
            _point(axes, each, place(each), mark(each))
        else:
            _line(axes, each, mark(each), span)
        top = max(top, ROOM_ABOVE * each.high, ROOM_ABOVE * _or_nothing(each.ci_high))
    if not axes.get_autoscaley_on():
        axes.set_ylim(top=top)


def name_published(axes: Axes, published: Iterable[Published], mark: Mark) -> None:
    """Adds entries to the legend, one for each kind of number."""
    entries: dict[str, dict[str, Any]] = {}
    for each in published:
        point = each.extent == "point"
        style = _point_style(each, mark) if point else _line_style(each, mark)
        suffix = "" if each.status == "ok" else f" ({each.status})"
        if point and each.low < each.high:
            entries[f"claimed: from, to{suffix}"] = {**style, "marker": "_"}
        else:
            entries[f"claimed: {_EXTENTS[each.extent]}{suffix}"] = style
    for name, style in entries.items():
        # Containers come after everything else in a legend, and bars are containers as well.
        axes.errorbar([], [], label=name, **style)


def _point(axes: Axes, each: Published, x: float, mark: Mark) -> None:
    """Draws a hollow mark with the published interval, or both ends of a range."""
    style = _point_style(each, mark)
    bar = {"fmt": "none", "ecolor": mark.color, "elinewidth": 0.9, "capsize": 4, "zorder": style["zorder"]}
    if not math.isnan(each.ci_low):
        middle, half = (each.ci_low + each.ci_high) / 2, (each.ci_high - each.ci_low) / 2
        for line in axes.errorbar([x], [middle], [half], **bar)[2]:
            line.set_linestyle("--")
    if each.low < each.high:
        axes.errorbar([x], [(each.low + each.high) / 2], [(each.high - each.low) / 2], **bar)
    else:
        axes.plot([x], [each.low], **style)


def _line(axes: Axes, each: Published, mark: Mark, span: tuple[float, float]) -> None:
    """Draws a dashed line over the range of the number."""
    start = span[0] if math.isnan(each.x) else each.x
    end = span[1] if math.isnan(each.x_end) else each.x_end
    for height in sorted({each.low, each.high}):
        axes.plot([start, end], [height, height], **_line_style(each, mark))


def _point_style(each: Published, mark: Mark) -> dict[str, Any]:
    """Returns a finer style for figures that are derived or contradicted than for plainly printed ones."""
    plain = each.status == "ok"
    return {
        "marker": mark.marker,
        "markersize": 8 if plain else 6.5,
        "markerfacecolor": mark.face,
        "markeredgecolor": mark.color,
        "markeredgewidth": 1.4 if plain else 0.8,
        "linestyle": "none",
        "zorder": 4,
    }


def _line_style(each: Published, mark: Mark) -> dict[str, Any]:
    plain = each.status == "ok"
    return {"color": mark.color, "linestyle": "--" if plain else ":", "linewidth": 0.9, "zorder": 1.8}


def _or_nothing(value: float) -> float:
    return 0.0 if math.isnan(value) else value
