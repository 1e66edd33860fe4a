"""Bars that compare schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anabranch.errors import FigureError
from anabranch.estimate import Interval
from anabranch.figures.canvas import drawing
from anabranch.figures.from_results import View, axis_key, need_one_part, need_one_point, positions, view
from anabranch.figures.labels import MetricLabel, key_label, metric_label
from anabranch.figures.legend import legend
from anabranch.figures.notes import name_of, note_of
from anabranch.figures.style import looks
from anabranch.statistics import paired_difference, summary
from anabranch.statistics.samples import ResultsLike, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_bars(
    results: ResultsLike,
    metric: str = "goodput_kbps",
    x: str | None = None,
    *,
    baseline: str | None = None,
    relative: bool = True,
    schemes: str | Sequence[str] | None = None,
    at: Mapping[str, object] | None = None,
    interval: Interval = "t",
    confidence: float = 0.95,
    table: Table | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the mean of `metric` as bars with confidence intervals: a bar for each scheme, or one in each group of `x`.

    With `baseline`, bars are paired differences to that scheme under the same seeds
    (`anabranch.statistics.paired_difference`), in per cent of its value or, without `relative`, in the metric's unit.
    Whiskers are intervals. A bar has no whisker if its runs are identical or it has a single run; the legend explains
    this.

    `x` may be omitted if at most one key is swept. Other arguments and errors are those of `plot_metric`.
    """
    if baseline is not None and schemes is not None:
        schemes = [baseline, *([schemes] if isinstance(schemes, str) else schemes)]
    chosen = view(results, schemes, at)
    key = axis_key(chosen, x) if x or chosen.varied else None
    along = [key] if key else []
    need_one_point(chosen, along)
    need_one_part(chosen, metric, table)
    by = [*along, "scheme"]
    measure, note = metric_label(metric), ("mean", "run")
    if baseline is None:
        means = summary(chosen, metric, by, interval, confidence, table=table)
    else:
        means = paired_difference(chosen, baseline, metric, relative, by=by, confidence=confidence, table=table)
        measure, note = _gain(measure, baseline, relative), ("mean of pairs", "pair")
    means = means.dropna(subset="mean")
    if means.empty:
        raise FigureError(f"no run has a value of `{metric}`")
    with drawing(ax, title=title) as axes:
        _draw(axes, chosen, means, key, measure)
        legend(axes, note_of(means, "whisker", *note))
    return axes


def _gain(measure: MetricLabel, baseline: str, relative: bool) -> MetricLabel:
    if relative:
        return MetricLabel(f"{measure.name} over {baseline}", "%", 100.0)
    return MetricLabel(f"{measure.name} minus that of {baseline}", measure.unit, measure.factor)


def _draw(axes: Axes, chosen: View, means: pd.DataFrame, key: str | None, measure: MetricLabel) -> None:
    schemes = [scheme for scheme in chosen.schemes if scheme in set(means["scheme"])]
    styles = looks(schemes)
    groups = list(dict.fromkeys(means[key])) if key else [None]
    width = 0.8 / len(schemes)
    for place, scheme in enumerate(schemes):
        rows = means[means["scheme"] == scheme]
        at = np.array([groups.index(value) for value in rows[key]] if key else [0] * len(rows))
        center = at + (place - (len(schemes) - 1) / 2) * width
        height = rows["mean"].to_numpy() * measure.factor
        look = styles[scheme]
        axes.bar(
            center,
            height,
            width * 0.92,
            color=look.color,
            hatch=look.hatch or None,
            edgecolor="white",
            linewidth=0,
            label=name_of(scheme, rows),
        )
        half = rows["half_width"].to_numpy() * measure.factor
        has = ~np.isnan(half)
        _draw_whiskers(axes, center[has], height[has], half[has])
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_ylabel(measure.label)
    axes.grid(visible=False, axis="x")
    _name_groups(axes, key, groups)


def _draw_whiskers(axes: Axes, center: np.ndarray, height: np.ndarray, half: np.ndarray) -> None:
    """Draws black whiskers with a white rim, which are visible on dark bars."""
    for color, width_pt in (("white", 2.4), ("black", 0.8)):
        axes.errorbar(
            center,
            height,
            half,
            fmt="none",
            ecolor=color,
            elinewidth=width_pt,
            capsize=1.8 + width_pt / 3,
            capthick=width_pt,
        )


def _name_groups(axes: Axes, key: str | None, groups: list[Any]) -> None:
    if key is None:
        axes.set_xticks([])
        return
    numbers = positions(key, groups)
    names = [f"{numbers[0][value]:g}" if numbers else str(value) for value in groups]
    axes.set_xticks(range(len(groups)), names)
    axes.set_xlabel(numbers[1] if numbers else key_label(key))
