"""Offsets of chunks that arrive out of order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.figures.canvas import drawing
from anabranch.figures.decimate import decimate_points
from anabranch.figures.from_series import Choice, paths_of, rows_of, series_of, title_of
from anabranch.figures.legend import legend
from anabranch.figures.style import path_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.series import Series
    from anabranch.simulation import Run


def plot_out_of_order(
    run: Series | Run,
    *,
    flow: str | None = None,
    direction: str | None = None,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the TSN of each received chunk minus that of the chunk received before it, in the colour of its path.

    The CMT-QA paper uses this measure (Figure 7). Its value is 1 for chunks in order, and the legend contains its peak.
    Marks that would cover each other are drawn once. Other arguments and errors are those of `plot_cwnd`.
    """
    series = series_of(run)
    rows = rows_of(series.out_of_order(), Choice(flow, direction, between), "chunks that arrived")
    peak = int(rows["offset"].abs().max())
    with drawing(ax, "page", title) as axes:
        axes.axhline(0, color="black", linewidth=0.6)
        for path, look in path_looks(paths_of(series, rows)).items():
            of_path = rows[rows["path"] == path]
            if of_path.empty:
                continue
            times, offsets = of_path["time_s"].to_numpy(), of_path["offset"].to_numpy()
            places = decimate_points(times, offsets)
            axes.plot(
                times[places],
                offsets[places],
                linestyle="none",
                marker=look.marker,
                markersize=2.6,
                markeredgewidth=0.6,
                color=look.color,
                markerfacecolor=look.color if look.filled else "none",
                label=path,
            )
        axes.set_xlabel("time (s)")
        axes.set_ylabel("out-of-order offset (TSNs)")
        legend(axes, f"{title_of(series)}, peak {peak}")
    return axes
