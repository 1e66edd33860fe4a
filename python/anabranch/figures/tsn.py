"""TSNs as they are sent and received."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from anabranch.errors import FigureError
from anabranch.figures.canvas import drawing
from anabranch.figures.decimate import decimate_points
from anabranch.figures.from_series import Choice, paths_of, rows_of, series_of, title_of
from anabranch.figures.legend import legend
from anabranch.figures.style import Look, path_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.run import Run
    from anabranch.series import Series

# A hollow mark where a chunk leaves, a full one where it arrives, a cross where it is dropped.
_MARKS: dict[str, dict[str, object]] = {
    "sent": {"marker": "o", "markersize": 2.6, "markerfacecolor": "none", "markeredgewidth": 0.6},
    "received": {"marker": "o", "markersize": 2.2, "markeredgewidth": 0},
    "dropped": {"marker": "x", "markersize": 4.5, "markeredgewidth": 1.1},
}


def plot_tsn(
    run: Series | Run,
    *,
    flow: str | None = None,
    direction: str | None = None,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """When each TSN was sent (hollow), received (full) and dropped (cross), in the colour of the path.

    TSNs are counted from the association's first, which is 0. As Figure 6 of the CMT-QA paper, which shows one second:
    `between=(10, 11)`. Marks that would cover each other are drawn once. Other arguments, and what is raised, are as in
    `plot_cwnd`.
    """
    series = series_of(run)
    everything = rows_of(series.tsn(), Choice(flow, direction), "chunks")
    first = int(everything["tsn"].iloc[0])
    rows = rows_of(everything, Choice(between=between), "chunks")
    kinds = rows["event"].astype(str).where(rows["event"].isin(["sent", "received"]), "dropped")
    rows = rows.assign(tsn=rows["tsn"] - first, kind=kinds)
    if rows.empty:
        raise FigureError("the trace has no chunks, so there is nothing to draw")
    with drawing(ax, "page", title) as axes:
        for path, look in path_looks(paths_of(series, rows)).items():
            for kind in _MARKS:
                _draw(axes, rows[(rows["path"] == path) & (rows["kind"] == kind)], kind, look, path)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("TSN (first = 0)")
        legend(axes, title_of(series))
    return axes


def _draw(axes: Axes, rows: pd.DataFrame, kind: str, look: Look, path: str) -> None:
    if rows.empty:
        return
    times, tsns = rows["time_s"].to_numpy(), rows["tsn"].to_numpy()
    places = decimate_points(times, tsns)
    mark = {"color": look.color, "linestyle": "none", **_MARKS[kind]}
    axes.plot(times[places], tsns[places], label=f"{path}, {kind}", **mark)  # type: ignore[arg-type]
