"""Regression lines through results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from anabranch.figures.canvas import drawing, line_style, marker_style
from anabranch.figures.from_results import axis_key, need_one_part, need_one_point, numeric_positions, view
from anabranch.figures.labels import MetricLabel, metric_label
from anabranch.figures.legend import legend
from anabranch.figures.metric import from_zero
from anabranch.figures.style import Look, looks
from anabranch.statistics import Regression, regressions, summary
from anabranch.statistics.samples import ResultsLike, Table
from anabranch.statistics.scheme_regressions import PointsOf

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_regression(
    results: ResultsLike,
    metric: str = "goodput_kbps",
    x: str | None = None,
    *,
    schemes: str | Sequence[str] | None = None,
    at: Mapping[str, object] | None = None,
    points: PointsOf = "points",
    confidence: float = 0.95,
    table: Table | None = None,
    y_from_zero: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws `metric` over the swept key `x` with the regression line of each scheme, as in Figure 20 of DB-CMT.

    The figure has the points of the regression (`points` as in `anabranch.statistics.regressions`: means over seeds, or
    runs), the line, and the confidence band of the mean, if the mean is linear in x. The legend contains R² and the
    p-value of the slope. Other arguments and errors are those of `plot_metric`. Also raises `StatisticsError` for fewer
    than three points.
    """
    chosen = view(results, schemes, at)
    key = axis_key(chosen, x)
    need_one_point(chosen, [key])
    need_one_part(chosen, metric, table)
    places, label = numeric_positions(key, chosen.rows[key])
    lines = regressions(chosen, key, metric, points=points, confidence=confidence, table=table)
    measure = metric_label(metric)
    styles = looks(lines)
    values = _values(chosen, metric, key, points, table)
    with drawing(ax, title=title) as axes:
        for scheme, line in lines.items():
            at_x = np.array([places[value] for value in values[scheme][key]])
            axes.plot(at_x, values[scheme]["value"] * measure.factor, linestyle="none", **marker_style(styles[scheme]))
            _draw_line(axes, line, (min(places.values()), max(places.values())), measure, scheme, styles[scheme])
        axes.set_xlabel(label)
        axes.set_ylabel(measure.label)
        if y_from_zero:
            from_zero(axes)
        legend(axes, _note(lines, points, confidence))
    return axes


def _values(
    chosen: ResultsLike, metric: str, key: str, points: PointsOf, table: Table | None
) -> dict[str, pd.DataFrame]:
    """Returns the points of each regression, by scheme."""
    by = [key, "scheme"] if points == "points" else [key, "scheme", "seed"]
    means = summary(chosen, metric, by, table=table).rename(columns={"mean": "value"})
    return {str(scheme): rows for scheme, rows in means.groupby("scheme", sort=False, observed=True)}


def _draw_line(
    axes: Axes, line: Regression, span: tuple[float, float], measure: MetricLabel, scheme: str, look: Look
) -> None:
    x = np.linspace(*span, 50)
    band = line.predict(x) * measure.factor
    fit = f"R² = {line.r_squared:.2f}, {p_value_text(line.p_value)}"
    text = f"{scheme}: {'the same everywhere' if math.isnan(line.r_squared) else fit}"
    axes.plot(x, band["mean"], label=text, **line_style(look, markers=False))
    axes.fill_between(x, band["low"], band["high"], color=look.color, alpha=0.15, linewidth=0)


def _note(lines: Mapping[str, Regression], points: PointsOf, confidence: float) -> str:
    counts = sorted({line.n for line in lines.values()})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    of = "means over seeds" if points == "points" else "runs"
    return f"line and {100 * confidence:g} % band of its mean, {n} {of}"


def p_value_text(p_value: float) -> str:
    """Returns `p = 0.012`, or `p < 0.001`."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
