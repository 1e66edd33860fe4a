"""File transfer time over file size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anabranch.errors import FigureError
from anabranch.estimate import Interval
from anabranch.figures.from_results import View, view
from anabranch.figures.metric import plot_metric
from anabranch.statistics.samples import ResultsLike, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_transfer_time(
    results: ResultsLike,
    size: str | None = None,
    *,
    schemes: str | Sequence[str] | None = None,
    at: Mapping[str, object] | None = None,
    interval: Interval = "t",
    confidence: float = 0.95,
    y_from_zero: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the mean transfer time of a file (`transfer_s`) over its size: a line for each scheme, intervals as bands.

    `size` is the swept key of the size, such as `flow.flow-1.size`. It may be omitted if only one key ends in `.size`.
    Unfinished transfers are omitted, and the legend counts them: the mean is then that of the faster transfers.
    `results` may be a pandas frame of the flows. Other arguments and errors are those of `plot_metric`.
    """
    return plot_metric(
        results,
        "transfer_s",
        size_key(view(results)) if size is None else size,
        schemes=schemes,
        at=at,
        interval=interval,
        confidence=confidence,
        table="flows",
        y_from_zero=y_from_zero,
        title=title,
        ax=ax,
    )


def size_key(of: View) -> str:
    """Returns the swept key of the size of a file. Raises `FigureError` unless there is exactly one."""
    sizes = [key for key in of.over if key.endswith(".size")]
    if len(sizes) != 1:
        raise FigureError(f"size= has to name the key of the file's size; swept are {named(of.over)}")
    return sizes[0]
