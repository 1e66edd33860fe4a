"""Measures from traces of runs, which the book's chapter "Traces and captures" defines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from anabranch.experiments.measures.definition import measure
from anabranch.experiments.model import Measure

if TYPE_CHECKING:
    import pandas

    from anabranch.series import Series

OFFSETS_WINDOW_S = (10.0, 20.0)
"""Window of out-of-order offsets for measures without `window_s`, in seconds, as in cmt-qa Fig. 7."""


def _states_of_path(series: Series, asked: Measure) -> pandas.DataFrame:
    rows = series.paths(asked.flow)
    return rows[rows["path"] == asked.path]


def _between(frame: pandas.DataFrame, window_s: tuple[float, float]) -> pandas.DataFrame:
    return frame[(frame["time_s"] >= window_s[0]) & (frame["time_s"] < window_s[1])]


def _offsets(series: Series, asked: Measure) -> pandas.Series:
    frame = _between(series.out_of_order(), asked.window_s or OFFSETS_WINDOW_S)
    return (frame if asked.path is None else frame[frame["path"] == asked.path])["offset"]


def _offsets_until(asked: Measure) -> float | None:
    return (asked.window_s or OFFSETS_WINDOW_S)[1]


def _window_end(asked: Measure) -> float | None:
    return asked.window_s[1] if asked.window_s else None


def _time(asked: Measure) -> float | None:
    return asked.time_s


def _arrivals(series: Series) -> pandas.DataFrame:
    """Returns the chunks that arrived, with TSNs from 0 on."""
    tsn = series.tsn()
    arrived = tsn[tsn["event"] == "received"]
    return arrived.assign(tsn=arrived["tsn"] - tsn["tsn"].min())


@measure(
    "Mean congestion window",
    "B",
    "db-cmt Fig. 8, cmt-dfr Fig. 5",
    needs=["path"],
    allows=["flow", "window_s"],
    reads="paths",
)
def cwnd_mean_bytes(series: Series, asked: Measure) -> float:
    """Mean over time of the congestion window of a path, in the whole run or in `window_s`."""
    import numpy

    rows = _states_of_path(series, asked)
    if rows.empty:
        return math.nan
    times = rows["time_s"].to_numpy()
    window_s = asked.window_s or (float(times[0]), series.end_s)
    # Each row applies until the next one, the last one until the run ends.
    lasted = numpy.diff(numpy.clip(numpy.append(times, series.end_s), *window_s))
    total = float(lasted.sum())
    return float((rows["cwnd_bytes"].to_numpy() * lasted).sum() / total) if total > 0 else math.nan


@measure("First congestion window", "B", "db-cmt 5.2.1", needs=["path"], allows=["flow"], reads="paths")
def cwnd_initial_bytes(series: Series, asked: Measure) -> float:
    """Initial congestion window of a path."""
    rows = _states_of_path(series, asked)
    return math.nan if rows.empty else float(rows["cwnd_bytes"].iloc[0])


@measure(
    "Largest out-of-order TSN offset",
    "TSN",
    "cmt-qa Fig. 7",
    allows=["window_s", "path"],
    reads="packets",
    until=_offsets_until,
)
def ooo_peak(series: Series, asked: Measure) -> float:
    """Largest increase between the TSNs of two chunks that arrive one after the other, over all paths, from 10 to 20
    s or in `window_s`."""
    return float(_offsets(series, asked).max())


@measure(
    "Mean absolute out-of-order TSN offset",
    "TSN",
    "cmt-qa Fig. 7",
    allows=["window_s", "path"],
    reads="packets",
    until=_offsets_until,
)
def ooo_mean_absolute(series: Series, asked: Measure) -> float:
    """Mean absolute difference between the TSNs of two chunks that arrive one after the other; 1 without reordering."""
    return float(_offsets(series, asked).abs().mean())


@measure("Highest TSN received", "TSN", "cmt-qa Fig. 6", needs=["time_s"], reads="packets", until=_time)
def highest_tsn_received(series: Series, asked: Measure) -> float:
    """Highest TSN that had arrived by `time_s`. TSNs start at 0, as in ns-2's traces."""
    arrived = _arrivals(series)
    return float(arrived[arrived["time_s"] <= (asked.time_s or 0.0)]["tsn"].max())


@measure(
    "Slope of TSNs over time",
    "TSN/s",
    "cmt-qa Fig. 6",
    needs=["path"],
    allows=["window_s"],
    reads="packets",
    until=_window_end,
)
def path_tsn_slope(series: Series, asked: Measure) -> float:
    """Slope of the least-squares line of TSNs against their times of arrival over a path in `window_s`."""
    from scipy import stats

    arrived = _between(_arrivals(series), asked.window_s or (0.0, series.end_s))
    own = arrived[arrived["path"] == asked.path]
    if own["time_s"].nunique() < 2:
        return math.nan
    return float(stats.linregress(own["time_s"], own["tsn"]).slope)


@measure(
    "Throughput",
    "kbit/s",
    "db-cmt Figs. 9, 15 and 16, cmt-dfr Fig. 8, cmt-qa Fig. 10",
    allows=["window_s", "path"],
    reads="packets",
    until=_window_end,
)
def throughput_kbps(series: Series, asked: Measure) -> float:
    """Bytes of DATA chunks that arrived in `window_s`, each chunk once, divided by the length of the window."""
    window_s = asked.window_s or (0.0, series.end_s)
    packets = series.packets()
    arrived = packets[packets["event"] == "received"].drop_duplicates(["flow", "direction", "tsn"])
    if asked.path is not None:
        arrived = arrived[arrived["path"] == asked.path]
    until_s = min(window_s[1], series.end_s)
    if until_s <= window_s[0]:
        return math.nan
    return float(_between(arrived, window_s)["chunk_bytes"].sum()) * 8 / 1000 / (until_s - window_s[0])
