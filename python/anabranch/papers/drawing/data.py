"""What figures show, as tidy frames: a row for each point that is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from anabranch.papers.model import Axis, Figure, Value
from anabranch.papers.plan import Cell, Setting, curve_of, figure_cells
from anabranch.papers.samples import Grid
from anabranch.papers.tracing import Columns
from anabranch.papers.verdicts.estimates import complete
from anabranch.statistics import linear_regression, mean_interval
from anabranch.statistics.estimate import quantile


def means(figure: Figure, setting: Setting, grid: Grid) -> pd.DataFrame:
    """The mean over seeds at each point of the axis, for each panel and scheme.

    Columns: `panel`, `scheme`, `x` (where it stands), `label` (what stands there), `n`, `mean`, `half_width` (Student's
    95 % interval), `half_width_normal` (1.96 s / √n, as the papers have it) and `kind`. Axes that the figure neither
    shows nor narrows down are averaged first.
    """
    rows = []
    for panel, at in panels(figure, setting):
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
    """Where the points of the axis stand; a figure without an axis has one point."""
    if figure.x is None:
        return [(0.0, "", 0)]
    axis = shown(figure, _axis(setting, figure.x))
    return list(zip(axis.positions, axis.labels, axis.values, strict=True))


def shown(figure: Figure, axis: Axis) -> Axis:
    """The axis with those values that the figure shows."""
    return axis.only(figure.at[axis.name]) if axis.name in figure.at else axis


def panels(figure: Figure, setting: Setting) -> Iterator[tuple[str, Mapping[str, tuple[Value, ...]]]]:
    """The panels of a figure by name, each with the values of axes that it is about."""
    at = {name: values for name, values in figure.at.items() if name != figure.x}
    if figure.panels is None:
        yield "", at
        return
    axis = shown(figure, _axis(setting, figure.panels))
    for label, value in zip(axis.labels, axis.values, strict=True):
        yield f"{axis.label}: {label}", {**at, axis.name: (value,)}


def _axis(setting: Setting, name: str) -> Axis:
    return next(axis for axis in setting.axes if axis.name == name)


def lines(points: pd.DataFrame) -> pd.DataFrame:
    """The least-squares line through the means of each panel and scheme.

    Columns: `panel`, `scheme`, `n` points, `slope`, `intercept`, `r2`, `multiple_r`, `standard_error`, `f`, `p_value`.
    Panels and schemes with fewer than three points have no row.
    """
    rows = []
    for (panel, scheme), own in points.dropna(subset=["mean"]).groupby(["panel", "scheme"], sort=False):
        if len(own) < LEAST_FOR_LINE or own["mean"].nunique() == 1:
            continue
        fit = linear_regression(own["x"].tolist(), own["mean"].tolist())
        rows.append(
            {
                "panel": panel,
                "scheme": scheme,
                "n": fit.n,
                "slope": fit.slope,
                "intercept": fit.intercept,
                "r2": fit.r_squared,
                "multiple_r": fit.multiple_r,
                "standard_error": fit.standard_error,
                "f": fit.f,
                "p_value": fit.p_value,
            }
        )
    return pd.DataFrame(rows, columns=_LINE_COLUMNS)


LEAST_FOR_LINE = 3

_LINE_COLUMNS = [
    "panel",
    "scheme",
    "n",
    "slope",
    "intercept",
    "r2",
    "multiple_r",
    "standard_error",
    "f",
    "p_value",
]


def over_time(figure: Figure, setting: Setting, curves: Mapping[Any, Mapping[Cell, Columns]]) -> pd.DataFrame:
    """What a figure over time shows.

    Columns: `panel`, `scheme`, `seed`, and those of the trace. For throughput, which is drawn as the mean over seeds,
    there is `n` in place of `seed`, with `time_s`, `throughput_kbps` and `half_width`.
    """
    taken = curves.get(curve_of(figure), {})
    names = {cell: name for name, at in panels(figure, setting) for cell in _panel_cells(figure, setting, at)}
    frames = []
    order = {scheme: place for place, scheme in enumerate(figure.schemes)}
    for scheme, cell, seed in sorted(
        figure_cells(setting, figure), key=lambda each: (each[1], order[each[0]], each[2])
    ):
        columns = taken.get((scheme, cell, seed))
        if columns is not None:
            frames.append(pd.DataFrame(columns).assign(panel=names[cell], scheme=scheme, seed=seed))
    if not frames:
        return pd.DataFrame(columns=["panel", "scheme", "seed", "time_s"])
    joined = pd.concat(frames, ignore_index=True)
    if figure.kind == "throughput-time":
        return _mean_throughput(joined)
    first = ["panel", "scheme", "seed"]
    return joined[first + [column for column in joined.columns if column not in first]]


def _panel_cells(figure: Figure, setting: Setting, at: Mapping[str, tuple[Value, ...]]) -> Iterator[tuple[int, ...]]:
    for cell in setting.cells():
        inside = [
            axis.name not in at or axis.only(at[axis.name]).index(axis.values[index]) is not None
            for axis, index in zip(setting.axes, cell, strict=True)
        ]
        if all(inside):
            yield cell


def _mean_throughput(joined: pd.DataFrame) -> pd.DataFrame:
    """The mean over seeds in each bin with its interval, for all bins at once."""
    grouped = joined.groupby(["panel", "scheme", "time_s"], sort=False)["throughput_kbps"]
    found = grouped.agg(n="size", throughput_kbps="mean", error="sem").reset_index()
    factors = {n: quantile("t", CONFIDENCE, n) if n > 1 else np.nan for n in found["n"].unique()}
    found["half_width"] = found["error"] * found["n"].map(factors)
    return found.drop(columns="error")


CONFIDENCE = 0.95


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers with nine significant digits, as they are written to files."""
    found = frame.copy()
    for column in found.select_dtypes("float"):
        found[column] = [_rounded(value) for value in found[column]]
    return found


def _rounded(value: float) -> float:
    return value if np.isnan(value) else float(f"{value:.9g}")
