"""A metric over a swept parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anabranch.errors import FigureError
from anabranch.estimate import Interval
from anabranch.figures.canvas import drawing, line_style
from anabranch.figures.from_results import axis_key, need_one_part, need_one_point, numeric_positions, view
from anabranch.figures.labels import MetricLabel, metric_label
from anabranch.figures.legend import legend
from anabranch.figures.notes import name_of, note_of
from anabranch.figures.style import Look, looks
from anabranch.statistics import summary
from anabranch.statistics.samples import ResultsLike, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_metric(
    results: ResultsLike,
    metric: str = "goodput_kbps",
    x: str | None = None,
    *,
    schemes: str | Sequence[str] | None = None,
    at: Mapping[str, object] | None = None,
    interval: Interval = "t",
    confidence: float = 0.95,
    table: Table | None = None,
    y_from_zero: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the mean of `metric` over the swept key `x`: a line for each scheme, with its interval as a band.

    `x` may be omitted if one key is swept. Other swept keys need a value in `at`, which may also choose a `flow` or
    `path` for metrics of flows or paths. Points of identical runs, or of a single run, have no band. The legend says
    so, and names n and the level of confidence. `interval`, `confidence` and `table` are those of
    `anabranch.statistics.summary`. Metrics in bytes are drawn in KiB, losses in per cent. The y axis begins at zero, so
    that heights can be compared; with `y_from_zero=False`, below the least value.

    `results` are `Results` or a pandas frame of their runs. By default the function creates a new pyplot figure. Raises
    `FigureError` for unknown schemes and keys and for values of `x` that are no numbers, and `StatisticsError` for
    unknown metrics.

        ax = plot_metric(results, "goodput_kbps", x="path.path-2.loss")
        anabranch.figures.save(ax, "goodput.svg")
    """
    chosen = view(results, schemes, at)
    key = axis_key(chosen, x)
    need_one_point(chosen, [key])
    need_one_part(chosen, metric, table)
    means = summary(chosen, metric, [key, "scheme"], interval, confidence, table=table)
    places, label = numeric_positions(key, means[key])
    means = means.assign(x=[places[value] for value in means[key]]).dropna(subset="mean")
    if means.empty:
        raise FigureError(f"no run has a value of `{metric}`")
    with drawing(ax, title=title) as axes:
        _draw_lines(axes, means, metric_label(metric))
        if y_from_zero:
            from_zero(axes)
        axes.set_xlabel(label)
        legend(axes, note_of(means))
    return axes


def _draw_lines(axes: Axes, means: pd.DataFrame, measure: MetricLabel) -> None:
    """Draws a line for each scheme of a table of means with a column `x`, with bands where there are intervals."""
    styles = looks(dict.fromkeys(means["scheme"]))
    for scheme, rows in means.groupby("scheme", sort=False, observed=True):
        _draw_line(axes, rows.sort_values("x"), measure, styles[str(scheme)], name_of(str(scheme), rows))
    axes.set_ylabel(measure.label)


def _draw_line(axes: Axes, rows: pd.DataFrame, measure: MetricLabel, look: Look, name: str) -> None:
    x, mean = rows["x"].to_numpy(), rows["mean"].to_numpy() * measure.factor
    half = rows["half_width"].to_numpy() * measure.factor
    axes.plot(x, mean, label=name, **line_style(look))
    has = ~np.isnan(half)
    axes.fill_between(x, mean - half, mean + half, where=has, color=look.color, alpha=0.2, linewidth=0)
    # A band needs two points side by side.
    beside = np.concatenate([[False], has[:-1]]) | np.concatenate([has[1:], [False]])
    alone = has & ~beside
    if alone.any():
        axes.errorbar(x[alone], mean[alone], half[alone], fmt="none", ecolor=look.color, elinewidth=0.9, capsize=2)


def from_zero(axes: Axes) -> None:
    """Extends the y axis to zero."""
    low, high = axes.get_ylim()
    if low > 0:
        axes.set_ylim(bottom=0)
    elif high < 0:
        axes.set_ylim(top=0)
