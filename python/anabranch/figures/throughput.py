"""Throughput over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anabranch.errors import FigureError
from anabranch.figures.canvas import drawing, line_style
from anabranch.figures.decimate import decimate_line
from anabranch.figures.from_series import Choice, paths_of, rows_of, series_of, title_of
from anabranch.figures.legend import legend
from anabranch.figures.style import path_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.series import Series
    from anabranch.simulation import Run


def plot_throughput(
    run: Series | Run,
    *,
    every_s: float = 1.0,
    total: bool = True,
    flow: str | None = None,
    direction: str | None = None,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the throughput of each path in steps of `every_s` seconds, in kbit/s, and with `total` their sum.

    `Series.throughput` computes the throughput from the bytes of received DATA chunks with their headers, including
    each copy. For data that a host on real sockets sends itself, it counts sent chunks. Other arguments and errors are
    those of `plot_cwnd`.
    """
    series = series_of(run)
    try:
        bins = series.throughput(every_s)
    except ValueError as error:
        raise FigureError(str(error)) from error
    rows = rows_of(bins, Choice(flow, direction, between), "packets with data")
    paths, end_s = paths_of(series, rows), series.end_s
    with drawing(ax, "page", title) as axes:
        for path, look in path_looks(paths).items():
            of_path = rows[rows["path"] == path]
            if not of_path.empty:
                _draw_bins(axes, of_path, min(end_s, of_path["time_s"].max() + every_s), path, line_style(look, False))
        if total and rows["path"].nunique() > 1:
            together = rows.groupby("time_s", observed=True)["throughput_kbps"].sum().reset_index()
            style = {"color": "#888888", "linewidth": 0.9, "zorder": 1.5}
            _draw_bins(axes, together, min(end_s, together["time_s"].max() + every_s), "all paths", style)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("throughput (kbit/s)")
        legend(axes, f"{title_of(series)}, in steps of {every_s:g} s")
    return axes


def _draw_bins(axes: Axes, bins: pd.DataFrame, end_s: float, name: str, style: dict[str, Any]) -> None:
    """Draws a step for each bin, to the end of the last one."""
    heights = bins["throughput_kbps"].to_numpy()
    places = decimate_line(heights)
    times = np.append(bins["time_s"].to_numpy()[places], end_s)
    axes.plot(times, np.append(heights[places], heights[-1]), drawstyle="steps-post", label=name, **style)
