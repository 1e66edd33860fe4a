"""Data of figures as tidy frames with a row for each drawn point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from anabranch.estimate import quantile
from anabranch.experiments.claims.quantity import At
from anabranch.experiments.jobs import Measurements
from anabranch.experiments.model import TRACED_FIGURES, Axis, Experiment, Figure
from anabranch.experiments.outcome import DIGITS
from anabranch.experiments.plan import RunIndex, Setting, curve_of, figure_runs
from anabranch.experiments.samples import SampleGrid
from anabranch.experiments.tracing import Extracted
from anabranch.experiments.verdicts.estimates import CONFIDENCE, complete
from anabranch.statistics import linear_regression, mean_interval
from anabranch.values import Value

MIN_FOR_LINE = 3

_LINE_FIGURES = {
    "n": "n",
    "slope": "slope",
    "intercept": "intercept",
    "r2": "r_squared",
    "multiple_r": "multiple_r",
    "standard_error": "standard_error",
    "f": "f",
    "p_value": "p_value",
}
"""Columns of `lines` with their attributes of a `Regression`."""


def figure_data(figure: Figure, measurements: Measurements) -> pd.DataFrame:
    """Returns the data of a figure with nine significant digits."""
    if figure.kind in TRACED_FIGURES:
        found = _over_time(figure, measurements.setting, measurements.traced[curve_of(figure)])
    else:
        found = _means(figure, measurements.setting, measurements.grids[figure.measure])
    for column in found.select_dtypes("float"):
        found[column] = [float(f"{value:.{DIGITS}g}") for value in found[column]]
    return found


def _means(figure: Figure, setting: Setting, grid: SampleGrid) -> pd.DataFrame:
    """Returns the mean over seeds at each point of the axis, for each panel and scheme.

    Columns: `panel`, `scheme`, `x` (position), `label` (of the position), `n`, `mean`, `half_width` (Student's 95 %
    interval), `half_width_normal` (1.96 s / √n, as in the sources) and `kind`. Axes that are neither shown nor
    restricted by the figure are averaged first.
    """
    rows = []
    for panel, at in panels_of(figure, setting):
        for scheme, (x, label, value) in itertools.product(figure.schemes, _points(figure, setting)):
            place = {**at, figure.x: (value,)} if figure.x else at
            (sample,) = complete(grid.sample(scheme, place))
            student, normal = mean_interval(sample), mean_interval(sample, "normal")
            rows.append(
                {
                    "panel": panel,
                    "scheme": scheme,
                    "x": x,
                    "label": label,
                    "n": student.n,
                    "mean": student.mean,
                    "half_width": student.half_width,
                    "half_width_normal": normal.half_width,
                    "kind": student.kind,
                }
            )
    return pd.DataFrame(rows)


def _points(figure: Figure, setting: Setting) -> list[tuple[float, str, Value]]:
    """Returns the positions of the points of the axis. A figure without an axis has one point."""
    if figure.x is None:
        return [(0.0, "", 0)]
    axis = shown_axis(figure, setting, figure.x)
    return list(zip(axis.positions, axis.labels, axis.values, strict=True))


def shown_axis(figure: Figure, of: Setting | Experiment, name: str) -> Axis:
    """Returns an axis with the values that the figure shows."""
    axis = of.axis(name)
    return axis.only(figure.at[name]) if name in figure.at else axis


def panels_of(figure: Figure, of: Setting | Experiment) -> Iterator[tuple[str, At]]:
    """Yields the panels of a figure by name with their values of axes."""
    at = {name: values for name, values in figure.at.items() if name != figure.x}
    if figure.panels is None:
        yield "", at
        return
    axis = shown_axis(figure, of, figure.panels)
    for label, value in zip(axis.labels, axis.values, strict=True):
        yield f"{axis.label}: {label}", {**at, axis.name: (value,)}


def lines(points: pd.DataFrame) -> pd.DataFrame:
    """Returns the least-squares line through the means of each panel and scheme.

    Columns: `panel`, `scheme`, `n` points, `slope`, `intercept`, `r2`, `multiple_r`, `standard_error`, `f`, `p_value`.
    Panels and schemes with fewer than three points have no row.
    """
    rows = []
    for (panel, scheme), own in points.dropna(subset=["mean"]).groupby(["panel", "scheme"], sort=False):
        if len(own) < MIN_FOR_LINE or own["mean"].nunique() == 1:
            continue
        fit = linear_regression(own["x"].tolist(), own["mean"].tolist())
        figures = {column: getattr(fit, name) for column, name in _LINE_FIGURES.items()}
        rows.append({"panel": panel, "scheme": scheme, **figures})
    return pd.DataFrame(rows, columns=["panel", "scheme", *_LINE_FIGURES])


def _over_time(figure: Figure, setting: Setting, curves: Mapping[RunIndex, Extracted]) -> pd.DataFrame:
    """Returns the data of a figure over time.

    Columns: `panel`, `scheme`, `seed`, and those of the trace. Throughput is the mean over seeds and has `n` in place
    of `seed`, with `time_s`, `throughput_kbps` and `half_width`.
    """
    names = {cell: name for name, at in panels_of(figure, setting) for cell in setting.cells(at)}
    cells = sorted(figure_runs(setting, figure), key=lambda each: (each[1], figure.schemes.index(each[0]), each[2]))
    frames = []
    for scheme, cell, seed in cells:
        frame = pd.DataFrame(curves[scheme, cell, seed])
        frame.insert(0, "panel", names[cell])
        frame.insert(1, "scheme", scheme)
        frame.insert(2, "seed", seed)
        frames.append(frame)
    joined = pd.concat(frames, ignore_index=True)
    return _mean_throughput(joined) if figure.kind == "throughput-time" else joined


def _mean_throughput(joined: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean over seeds in each bin with its interval."""
    grouped = joined.groupby(["panel", "scheme", "time_s"], sort=False)["throughput_kbps"]
    found = grouped.agg(n="size", throughput_kbps="mean", error="sem").reset_index()
    factors = {n: quantile("t", CONFIDENCE, n) if n > 1 else np.nan for n in found["n"].unique()}
    found["half_width"] = found["error"] * found["n"].map(factors)
    return found.drop(columns="error")
