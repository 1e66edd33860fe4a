"""Congestion windows over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anabranch.errors import FigureError
from anabranch.figures.canvas import drawing, line_style
from anabranch.figures.decimate import decimate_line
from anabranch.figures.from_series import Choice, checked, paths_of, rows_of, series_of, title_of
from anabranch.figures.legend import legend
from anabranch.figures.style import Look, path_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.series import Series
    from anabranch.simulation import Run

_KIB = 1024


def plot_cwnd(
    run: Series | Run,
    *,
    ssthresh: bool = False,
    flow: str | None = None,
    direction: str | None = None,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the congestion window of each path over time, in KiB, and with `ssthresh` its slow-start threshold.

    `run` is a `Run` or a result of `read_trace`. `between` are two times in seconds. `flow` and `direction` have to be
    given if there are several. The axis ends above the largest window, even if a threshold is larger. Long runs are
    drawn with fewer points, which include all peaks. By default the function creates a new pyplot figure. Raises
    `FigureError` if there is nothing to draw.
    """
    series = series_of(run)
    rows = rows_of(series.paths(), Choice(flow, direction), "states of paths")
    start, end = checked(between) if between else (0.0, series.end_s)
    if start >= series.end_s:
        raise FigureError(f"no windows between {start:g} and {end:g} s: the trace ends at {series.end_s:g} s")
    end = min(end, series.end_s)
    styles = path_looks(paths_of(series, rows))
    lines = {path: _held(rows[rows["path"] == path], start, end) for path in styles}
    if all(line.empty for line in lines.values()):
        raise FigureError(f"no path has a window before {end:g} s")
    with drawing(ax, "page", title) as axes:
        for path, line in lines.items():
            if line.empty:
                continue
            _draw_steps(axes, line, "cwnd_bytes", styles[path], path)
            if ssthresh:
                _draw_steps(axes, line, "ssthresh_bytes", styles[path], f"{path}, ssthresh")
        largest = max(float(line["cwnd_bytes"].max()) for line in lines.values() if not line.empty)
        axes.set_ylim(0, 1.08 * max(largest, 1.0) / _KIB)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("cwnd (KiB)")
        legend(axes, title_of(series))
    return axes


def _held(rows: pd.DataFrame, start: float, end: float) -> pd.DataFrame:
    """Returns the states of a path from start to end. Each state lasts until the next row."""
    before = rows[rows["time_s"] < start].tail(1).assign(time_s=start)
    inside = rows[(rows["time_s"] >= start) & (rows["time_s"] <= end)]
    held = pd.concat([before, inside])
    return pd.concat([held, held.tail(1).assign(time_s=end)])


def _draw_steps(axes: Axes, rows: pd.DataFrame, column: str, look: Look, name: str) -> None:
    """Draws a line of steps: each value lasts until the next row."""
    changed = rows[column].ne(rows[column].shift()).to_numpy().copy()
    changed[-1] = True
    times, values = rows["time_s"].to_numpy()[changed], rows[column].to_numpy()[changed] / _KIB
    places = decimate_line(values)
    style = line_style(look, markers=False)
    if column == "ssthresh_bytes":
        style |= {"linewidth": 0.7, "linestyle": (0, (1, 1))}
    # In the trace, a threshold of 0 is unknown.
    shown = np.where(values[places] > 0, values[places], np.nan)
    axes.plot(times[places], shown, drawstyle="steps-post", label=name, **style)
