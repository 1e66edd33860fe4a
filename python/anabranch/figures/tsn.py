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

    from anabranch.series import Series
    from anabranch.simulation import Run

# A hollow mark for a sent chunk, a full one for a received chunk, a cross for a dropped one.
_MARKS: dict[str, dict[str, object]] = {
    "sent": {"marker": "o", "markersize": 2.6, "markerfacecolor": "none", "markeredgewidth": 0.6},
    "received": {"marker": "o", "markersize": 2.2, "markeredgewidth": 0},
    "dropped": {"marker": "x", "markersize": 4.5, "markeredgewidth": 1.1},
}

# Number of chunks in the part of a run that is drawn by default.
_CHUNKS = 300
_MOMENT_S = 1e-6


def plot_tsn(
    run: Series | Run,
    *,
    flow: str | None = None,
    direction: str | None = None,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws when each TSN was sent (hollow), received (full) and dropped (cross), in the colour of the path.

    TSNs count from the association's first, which is 0. A whole run would show only a line. So by default a part of
    some hundred chunks is drawn, around the first chunk that was dropped after the start if there is one, or else in
    the middle. `between=(10, 11)` draws one second, as in Figure 6 of the CMT-QA paper, and `between=(0,
    run.series.end_s)` the whole run. Marks that would cover each other are drawn once. Other arguments and errors are
    those of `plot_cwnd`.
    """
    series = series_of(run)
    everything = rows_of(series.tsn(), Choice(flow, direction), "chunks")
    first = int(everything["tsn"].iloc[0])
    rows = rows_of(everything, Choice(between=between or _window(everything)), "chunks")
    kinds = rows["event"].astype(str).where(rows["event"].isin(["sent", "received"]), "dropped")
    rows = rows.assign(tsn=rows["tsn"] - first, kind=kinds)
    if rows.empty:
        raise FigureError("the trace has no chunks to draw")
    with drawing(ax, "page", title) as axes:
        for path, look in path_looks(paths_of(series, rows)).items():
            for kind in _MARKS:
                _draw(axes, rows[(rows["path"] == path) & (rows["kind"] == kind)], kind, look, path)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("TSN (first = 0)")
        legend(axes, title_of(series))
    return axes


def _window(rows: pd.DataFrame) -> tuple[float, float]:
    """Returns a period with few enough sent chunks to distinguish them."""
    sent = rows[rows["event"] == "sent"]["time_s"].to_numpy()
    times = sent if len(sent) else rows["time_s"].to_numpy()
    if len(times) <= _CHUNKS:
        return float(rows["time_s"].min()), float(rows["time_s"].max()) + _MOMENT_S
    dropped = rows[~rows["event"].isin(["sent", "received"])]["time_s"].to_numpy()
    # Drops in the first moments are those of slow start.
    later = dropped[dropped > times[_CHUNKS]]
    middle = later[0] if len(later) else times[len(times) // 2]
    first = min(max(int(times.searchsorted(middle)) - _CHUNKS // 3, 0), len(times) - _CHUNKS)
    return float(times[first]), float(times[first + _CHUNKS - 1]) + _MOMENT_S


def _draw(axes: Axes, rows: pd.DataFrame, kind: str, look: Look, path: str) -> None:
    if rows.empty:
        return
    times, tsns = rows["time_s"].to_numpy(), rows["tsn"].to_numpy()
    places = decimate_points(times, tsns)
    mark = {"color": look.color, "linestyle": "none", **_MARKS[kind]}
    axes.plot(times[places], tsns[places], label=f"{path}, {kind}", **mark)  # type: ignore[arg-type]
