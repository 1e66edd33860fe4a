"""Draws figures from their frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anabranch.estimate import significant
from anabranch.experiments.drawing.data import lines
from anabranch.experiments.drawing.overlay import NEUTRAL, ON_BARS, Mark, name_published, overlay
from anabranch.experiments.drawing.published import Published
from anabranch.experiments.model import Figure
from anabranch.experiments.plan import Setting
from anabranch.figures.canvas import line_style, marker_style, new_figure, package_style
from anabranch.figures.decimate import decimate_line, decimate_points
from anabranch.figures.legend import legend
from anabranch.figures.style import Look, looks, path_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn

PANEL_HEIGHT_IN = 2.4

Draw = Callable[["Axes", pd.DataFrame, Figure, Setting], str]
"""Function that draws the rows of one panel and returns the note above the legend."""


def draw(frame: pd.DataFrame, figure: Figure, setting: Setting, published: Sequence[Published] = ()) -> Drawn | None:
    """Draws the figure of a frame with the published numbers. Returns `None` if the frame is empty."""
    if frame.empty or figure.kind not in _KINDS:
        return None
    drawer, by = _KINDS[figure.kind]
    groups = list(frame.groupby(by, sort=False))
    crowded = figure.kind == "bars" and len(frame) > MAX_BARS
    wide = len(groups) > 1 or figure.kind not in _NARROW or crowded
    drawn = new_figure("page" if wide else "column", PANEL_HEIGHT_IN * len(groups) + 0.6 if wide else None)
    with package_style():
        places = drawn.subplots(len(groups), 1, squeeze=False, sharex=True, sharey=figure.kind in _ONE_SCALE)[:, 0]
        for axes, (key, rows) in zip(places, groups, strict=True):
            note = drawer(axes, rows, figure, setting)
            _overlay(axes, [each for each in published if _in_panel(each, key)], rows, figure, setting)
            if axes is places[-1]:
                name_published(axes, published, ON_BARS if figure.kind == "bars" else NEUTRAL)
            names = [str(part) for part in key if part]
            if len(groups) == 1:
                axes.set_title(", ".join(names) or figure.title)
                legend(axes, note)
                continue
            # One legend, under the last panel, is enough for all of them.
            axes.set_title(", ".join([*names, note]))
            axes.set_xlabel(axes.get_xlabel() if axes is places[-1] else "")
            if axes is places[-1]:
                legend(axes)
        if figure.kind in _FROM_ZERO:
            # The limit is set once all panels are drawn, because it ends the automatic scaling of all panels that share
            # the axis.
            places[-1].set_ylim(bottom=0)
    return drawn


def scheme_looks(figure: Figure, setting: Setting) -> Mapping[str, Look]:
    """Returns the style of each scheme by its name: the style that its expression has in other figures."""
    expressions = {name: setting.schemes[name] for name in figure.schemes}
    found = looks(expressions.values())
    return {name: found[expression] for name, expression in expressions.items()}


def _in_panel(each: Published, key: tuple[str, ...]) -> bool:
    """Returns `True` if a number belongs to the panel of this key, which may contain the scheme."""
    return (each.panel, each.scheme)[: len(key)] == key


def _overlay(axes: Axes, published: Sequence[Published], rows: pd.DataFrame, figure: Figure, setting: Setting) -> None:
    """Draws the published numbers of one panel in the style of their scheme or path."""
    x = rows["x" if "x" in rows else "time_s"]
    span = float(x.min()), float(x.max())
    if figure.kind == "bars":
        place, width = _bar_places(rows, figure)
        shown = [each for each in published if each.extent == "point" and each.x in set(x)]
        # The mark is drawn beside the middle of the bar, which the bar's own interval occupies.
        overlay(axes, shown, lambda each: ON_BARS, lambda each: place(each.scheme, each.x) + width / 4, span)
        return
    schemes, paths = scheme_looks(figure, setting), path_looks(figure.paths)

    def mark(each: Published) -> Mark:
        found = paths.get(each.path) if figure.kind in _OF_PATHS else schemes[each.scheme]
        return Mark(found.color, found.marker) if found else NEUTRAL

    overlay(axes, published, mark, lambda each: each.x, span)


def _lines(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    for scheme, look in scheme_looks(figure, setting).items():
        own = rows[rows["scheme"] == scheme].dropna(subset=["mean"])
        x, mean, half = (own[column].to_numpy(dtype=float) for column in ("x", "mean", "half_width"))
        axes.plot(x, mean, label=scheme, **line_style(look))
        axes.fill_between(x, mean - half, mean + half, where=~np.isnan(half), color=look.color, alpha=0.2, linewidth=0)
    _name_axes(axes, figure)
    _ticks(axes, rows)
    if rows["mean"].min() >= 0:
        axes.set_ylim(bottom=0)
    return _note(rows)


def _bars(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    styles = scheme_looks(figure, setting)
    place, width = _bar_places(rows, figure)
    for scheme, look in styles.items():
        own = rows[rows["scheme"] == scheme]
        centre = np.array([place(scheme, x) for x in own["x"]])
        mean, half = own["mean"].to_numpy(dtype=float), own["half_width"].to_numpy(dtype=float)
        style: dict[str, Any] = {"color": look.color, "hatch": look.hatch or None, "edgecolor": "white", "linewidth": 0}
        axes.bar(centre, mean, width * 0.92, label=scheme, **style)
        known = ~np.isnan(half)
        axes.errorbar(centre[known], mean[known], half[known], fmt="none", ecolor="black", elinewidth=0.8, capsize=1.8)
    if figure.x is None:
        axes.set_xticks([])
    else:
        labels = list(dict.fromkeys(rows["label"]))
        axes.set_xticks(range(len(labels)), labels)
    axes.grid(visible=False, axis="x")
    _name_axes(axes, figure)
    if rows["mean"].min() >= 0:
        axes.set_ylim(bottom=0, top=None if rows["mean"].max() > 0 else 1)
    return _note(rows)


def _bar_places(rows: pd.DataFrame, figure: Figure) -> tuple[Callable[[str, float], float], float]:
    """Returns a function for the centre of a scheme's bar at a value of the axis, and the width of bars."""
    groups = {x: place for place, x in enumerate(dict.fromkeys(rows["x"]))}
    width = 0.8 / len(figure.schemes)
    first = -(len(figure.schemes) - 1) / 2
    return lambda scheme, x: groups[x] + (first + figure.schemes.index(scheme)) * width, width


def _regression(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    fits = lines(rows)
    for scheme, look in scheme_looks(figure, setting).items():
        own = rows[rows["scheme"] == scheme].dropna(subset=["mean"])
        found = fits[fits["scheme"] == scheme]
        name = None if len(found) else f"{scheme}: too few points for a line"
        axes.plot(own["x"], own["mean"], linestyle="none", label=name, **marker_style(look))
        for fit in found.itertuples():
            ends = np.array([own["x"].min(), own["x"].max()])
            sign = "-" if fit.intercept < 0 else "+"
            equation = f"{significant(fit.slope, 4)}x {sign} {abs(fit.intercept):.5g}"
            text = f"{scheme}: {equation}, R² = {fit.r2:.2f}"
            axes.plot(ends, fit.slope * ends + fit.intercept, label=text, **line_style(look, markers=False))
    _name_axes(axes, figure)
    return "lines through the means over seeds"


def _cwnd(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    for path, look in path_looks(figure.paths).items():
        own = rows[rows["path"] == path]
        values = own["cwnd_bytes"].to_numpy(dtype=float)
        places = decimate_line(values)
        style = line_style(look, markers=False)
        axes.plot(own["time_s"].to_numpy()[places], values[places], drawstyle="steps-post", label=path, **style)
    _name_axes(axes, figure, "cwnd (bytes)")
    return _seed(rows)


def _throughput(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    for scheme, look in scheme_looks(figure, setting).items():
        own = rows[rows["scheme"] == scheme]
        style = line_style(look, markers=False)
        axes.plot(own["time_s"], own["throughput_kbps"], drawstyle="steps-post", label=scheme, **style)
    _name_axes(axes, figure, "Throughput (kbit/s)")
    axes.set_ylim(bottom=0)
    return f"mean over {int(rows['n'].max())} seeds, in steps of {figure.bin_s:g} s"


def _tsn(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    for path, look in path_looks(figure.paths).items():
        for event, style in _MARKS.items():
            own = rows[(rows["path"] == path) & (rows["event"] == event)]
            times, values = own["time_s"].to_numpy(dtype=float), own["tsn"].to_numpy(dtype=float)
            places = decimate_points(times, values)
            style = {**style, "color": look.color, "linestyle": "none"}
            axes.plot(times[places], values[places], label=f"{path}, {event}", **style)
    _name_axes(axes, figure, "TSN")
    return _seed(rows)


_MARKS: Mapping[str, dict[str, Any]] = {
    "sent": {"marker": "o", "markersize": 2.6, "markerfacecolor": "none", "markeredgewidth": 0.6},
    "received": {"marker": "o", "markersize": 2.2, "markeredgewidth": 0},
}


def _out_of_order(axes: Axes, rows: pd.DataFrame, figure: Figure, setting: Setting) -> str:
    axes.axhline(0, color="black", linewidth=0.6)
    for path, look in path_looks(figure.paths).items():
        own = rows[rows["path"] == path]
        times, values = own["time_s"].to_numpy(dtype=float), own["offset"].to_numpy(dtype=float)
        places = decimate_points(times, values)
        style = {**marker_style(look), "markersize": 2.6, "markeredgewidth": 0.6, "linestyle": "none"}
        axes.plot(times[places], values[places], label=path, **style)
    _name_axes(axes, figure, "Out-of-order TSN offset")
    return f"{_seed(rows)}, largest {int(rows['offset'].max())}"


def _name_axes(axes: Axes, figure: Figure, over_time: str = "") -> None:
    """Sets the labels of the figure. `over_time` is the default label of the y axis."""
    axes.set_xlabel(figure.x_label or ("Time (s)" if over_time else ""))
    axes.set_ylabel(figure.y_label or over_time)


def _ticks(axes: Axes, rows: pd.DataFrame) -> None:
    """Sets a tick with its label for every value of the axis that has room."""
    places = dict(zip(rows["x"], rows["label"], strict=True))
    if len(places) <= MAX_TICKS:
        axes.set_xticks(list(places), list(places.values()))


MAX_TICKS = 12

MAX_BARS = 24
"""Maximum number of bars in a column's width."""


def _note(rows: pd.DataFrame) -> str:
    counts = sorted(set(rows["n"]))
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    return f"mean and 95 % interval, {n}"


def _seed(rows: pd.DataFrame) -> str:
    return f"seed {int(rows['seed'].iloc[0])}"


_KINDS: Mapping[str, tuple[Draw, list[str]]] = {
    "lines": (_lines, ["panel"]),
    "transfer-time": (_lines, ["panel"]),
    "bars": (_bars, ["panel"]),
    "regression": (_regression, ["panel"]),
    "cwnd": (_cwnd, ["panel", "scheme"]),
    "throughput-time": (_throughput, ["panel"]),
    "tsn": (_tsn, ["panel", "scheme"]),
    "out-of-order": (_out_of_order, ["panel", "scheme"]),
}
"""Drawing function and panels of each kind. A table is not drawn."""

_OF_PATHS = ("cwnd", "tsn", "out-of-order")
"""Kinds whose colours are those of paths."""

_ONE_SCALE = ("cwnd", "out-of-order")
"""Kinds with a panel for each scheme and a common y axis, so that heights can be compared."""

_FROM_ZERO = ("cwnd",)
"""Kinds of one scale that begins at zero."""

_NARROW = ("lines", "transfer-time", "bars")
"""Kinds that fit a column if there is one panel."""
