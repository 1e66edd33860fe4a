"""Congestion windows over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anabranch.figures.canvas import drawing, legend, line_style
from anabranch.figures.decimate import kept
from anabranch.figures.from_series import Choice, paths_of, rows_of, series_of, title_of
from anabranch.figures.style import Look, path_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.run import Run
    from anabranch.series import Series

_KIB = 1024


def plot_cwnd(
    source: Series | Run,
    *,
    ssthresh: bool = False,
    flow: str | None = None,
    direction: str | None = None,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The congestion window of each path over time, in KiB, and with `ssthresh` its slow-start threshold as a thin
    line.

    `source` is a `Run` or what `read_trace` gives. `between` are two times in seconds; `flow` and `direction` have to
    be given if there are several. The axis ends above the largest window, whatever threshold there is. Long runs are
    drawn with fewer points, of which no peak is missing. Without `ax`, a new pyplot figure is made. Raises
    `FigureError` if there is nothing to draw.
    """
    series = series_of(source)
    rows = rows_of(series.paths(), Choice(flow, direction, between), "states of paths")
    styles = path_looks(paths_of(series, rows))
    with drawing(ax, "page", title) as axes:
        for path, look in styles.items():
            of_path = rows[rows["path"] == path]
            if of_path.empty:
                continue
            _draw_steps(axes, of_path, "cwnd_bytes", look, path)
            if ssthresh:
                _draw_steps(axes, of_path, "ssthresh_bytes", look, f"{path}, ssthresh")
        axes.set_ylim(0, 1.08 * max(float(rows["cwnd_bytes"].max()), 1.0) / _KIB)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("cwnd (KiB)")
        legend(axes, title_of(series))
    return axes


def _draw_steps(axes: Axes, rows: pd.DataFrame, column: str, look: Look, name: str) -> None:
    """A line that stays as each row says until the next one."""
    changed = rows[column].ne(rows[column].shift()).to_numpy().copy()
    changed[-1] = True
    times, values = rows["time_s"].to_numpy()[changed], rows[column].to_numpy()[changed] / _KIB
    places = kept(values)
    style = line_style(look, markers=False)
    if column == "ssthresh_bytes":
        style |= {"linewidth": 0.7, "linestyle": (0, (1, 1))}
    # Before it is known, the threshold is 0 in the trace.
    shown = np.where(values[places] > 0, values[places], np.nan)
    axes.plot(times[places], shown, drawstyle="steps-post", label=name, **style)
