"""Figures by name, as `anabranch plot` and reports offer them, with their input and their requirements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from anabranch.errors import AnabranchError
from anabranch.figures.bars import plot_bars
from anabranch.figures.canvas import Width
from anabranch.figures.cwnd import plot_cwnd
from anabranch.figures.from_results import axis_key, numeric_positions, view
from anabranch.figures.metric import plot_metric
from anabranch.figures.out_of_order import plot_out_of_order
from anabranch.figures.regression import plot_regression
from anabranch.figures.throughput import plot_throughput
from anabranch.figures.transfer_time import plot_transfer_time, size_key
from anabranch.figures.tsn import plot_tsn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.results import Results

Input = Literal["results", "trace"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Figure of the catalogue. `options` are the names of the options of `draw`, besides title and Axes."""

    name: str
    about: str
    input: Input
    width: Width
    draw: Callable[..., Axes]
    options: frozenset[str]
    check: Callable[[Any], object] = lambda _: None

    def mismatch(self, data: Any) -> str | None:
        """Returns the reason why this data does not suit the figure, or needs further options; `None` if it suits."""
        try:
            self.check(data)
        except AnabranchError as error:
            return str(error)
        return None


_OF_RESULTS = frozenset({"metric", "x", "schemes", "at", "confidence"})
_OF_TRACES = frozenset({"flow", "direction", "between"})


def _numeric_axis(results: Results) -> None:
    chosen = view(results)
    key = axis_key(chosen, None)
    numeric_positions(key, chosen.rows[key])


def _three_points(results: Results) -> None:
    _numeric_axis(results)
    chosen = view(results)
    key = axis_key(chosen, None)
    if (count := chosen.rows[key].nunique()) < 3:
        raise AnabranchError(f"`{key}` has {count} values, and a regression needs three")


def _transfers(results: Results) -> None:
    chosen = view(results)
    size_key(chosen)
    if chosen.to_pandas("flows")["transfer_s"].isna().all():
        raise AnabranchError("no flow is a transfer that was finished")


FIGURES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "metric",
            "a metric over a swept parameter, with confidence bands",
            "results",
            "column",
            plot_metric,
            _OF_RESULTS | {"interval"},
            _numeric_axis,
        ),
        Entry(
            "bars",
            "a metric of the schemes side by side, or their gain over a baseline",
            "results",
            "column",
            plot_bars,
            _OF_RESULTS | {"interval", "baseline"},
            lambda results: view(results).rows,
        ),
        Entry(
            "regression",
            "a metric over a swept parameter, with regression lines",
            "results",
            "column",
            plot_regression,
            _OF_RESULTS,
            _three_points,
        ),
        Entry(
            "transfer-time",
            "file transfer time over file size",
            "results",
            "column",
            plot_transfer_time,
            _OF_RESULTS - {"metric", "x"} | {"interval"},
            _transfers,
        ),
        Entry(
            "cwnd", "congestion window of each path over time", "trace", "page", plot_cwnd, _OF_TRACES | {"ssthresh"}
        ),
        Entry(
            "throughput",
            "data that arrives over each path, over time",
            "trace",
            "page",
            plot_throughput,
            _OF_TRACES | {"every_s"},
        ),
        Entry("tsn", "TSNs as they are sent and received", "trace", "page", plot_tsn, _OF_TRACES),
        Entry(
            "out-of-order",
            "how far out of order chunks arrive",
            "trace",
            "page",
            plot_out_of_order,
            _OF_TRACES,
        ),
    )
}
