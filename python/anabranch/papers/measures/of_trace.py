"""Measures that take a trace of the run. The book's chapter "Traces and captures" says what traces hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from anabranch.papers.measures.definition import Definition, Parameter
from anabranch.papers.model import Measure

if TYPE_CHECKING:
    import pandas

    from anabranch.series import Series

WINDOW_S = (10.0, 20.0)
"""From when to when out-of-order offsets are looked at if nothing else is said: as in cmt-qa Fig. 7."""


def _rows_of_path(series: Series, measure: Measure) -> pandas.DataFrame:
    rows = series.paths(measure.flow)
    return rows[rows["path"] == measure.path]


def _mean_cwnd(series: Series, measure: Measure) -> float:
    """Each row holds until the next one, the last one until the run ends."""
    import numpy

    rows = _rows_of_path(series, measure)
    if rows.empty:
        return math.nan
    start_s, end_s = measure.window_s or (float(rows["time_s"].iloc[0]), series.end_s)
    times = rows["time_s"].to_numpy()
    begins = numpy.clip(times, start_s, end_s)
    ends = numpy.clip(numpy.append(times[1:], series.end_s), start_s, end_s)
    lasted = ends - begins
    total = float(lasted.sum())
    return float((rows["cwnd_bytes"].to_numpy() * lasted).sum() / total) if total > 0 else math.nan


def _first_cwnd(series: Series, measure: Measure) -> float:
    rows = _rows_of_path(series, measure)
    return math.nan if rows.empty else float(rows["cwnd_bytes"].iloc[0])


def _between(frame: pandas.DataFrame, window_s: tuple[float, float]) -> pandas.DataFrame:
    return frame[(frame["time_s"] >= window_s[0]) & (frame["time_s"] < window_s[1])]


def _offsets(series: Series, measure: Measure) -> pandas.Series:
    frame = _between(series.out_of_order(), measure.window_s or WINDOW_S)
    if measure.path is not None:
        frame = frame[frame["path"] == measure.path]
    return frame["offset"]


def _peak_offset(series: Series, measure: Measure) -> float:
    offsets = _offsets(series, measure)
    return math.nan if offsets.empty else float(offsets.max())


def _mean_offset(series: Series, measure: Measure) -> float:
    offsets = _offsets(series, measure)
    return math.nan if offsets.empty else float(offsets.abs().mean())


def _arrivals(series: Series) -> pandas.DataFrame:
    """What arrived, with TSNs from 0 on."""
    tsn = series.tsn()
    first = tsn["tsn"].min()
    arrived = tsn[tsn["event"] == "received"]
    return arrived.assign(tsn=arrived["tsn"] - first)


def _highest_received(series: Series, measure: Measure) -> float:
    arrived = _arrivals(series)
    arrived = arrived[arrived["time_s"] <= (measure.time_s or 0.0)]
    return math.nan if arrived.empty else float(arrived["tsn"].max())


def _slope_of_path(series: Series, measure: Measure) -> float:
    """By least squares of the TSNs on the times at which they arrived."""
    from scipy import stats

    arrived = _between(_arrivals(series), measure.window_s or (0.0, series.end_s))
    own = arrived[arrived["path"] == measure.path]
    if own["time_s"].nunique() < 2:
        return math.nan
    return float(stats.linregress(own["time_s"], own["tsn"]).slope)


def _throughput(series: Series, measure: Measure) -> float:
    """In the bytes of DATA chunks that arrived, each chunk once."""
    window_s = measure.window_s or (0.0, series.end_s)
    packets = series.packets()
    arrived = packets[packets["event"] == "received"].drop_duplicates(["flow", "direction", "tsn"])
    if measure.path is not None:
        arrived = arrived[arrived["path"] == measure.path]
    until_s = min(window_s[1], series.end_s)
    if until_s <= window_s[0]:
        return math.nan
    return float(_between(arrived, window_s)["chunk_bytes"].sum()) * 8 / 1000 / (until_s - window_s[0])


_PATH: frozenset[Parameter] = frozenset({"path"})
_WINDOW: frozenset[Parameter] = frozenset({"window_s"})
_FLOW: frozenset[Parameter] = frozenset({"flow"})
_TIME: frozenset[Parameter] = frozenset({"time_s"})

DEFINITIONS = (
    Definition(
        "cwnd_mean_bytes",
        "Mean congestion window",
        "B",
        "The congestion window of a path as the mean over time: from the path's first row to the end of the run, or "
        "in `window_s`.",
        "db-cmt Fig. 8, cmt-dfr Fig. 5",
        needs=_PATH,
        allows=_FLOW | _WINDOW,
        of_trace=_mean_cwnd,
    ),
    Definition(
        "cwnd_initial_bytes",
        "First congestion window",
        "B",
        "The congestion window with which a path begins.",
        "db-cmt 5.2.1",
        needs=_PATH,
        allows=_FLOW,
        of_trace=_first_cwnd,
    ),
    Definition(
        "ooo_peak",
        "Largest out-of-order TSN offset",
        "TSN",
        "The largest TSN of a chunk that arrives minus that of the chunk that arrived just before it, over whichever "
        "path, from 10 to 20 s or in `window_s`.",
        "cmt-qa Fig. 7",
        allows=_WINDOW | _PATH,
        of_trace=_peak_offset,
    ),
    Definition(
        "ooo_mean_absolute",
        "Mean absolute out-of-order TSN offset",
        "TSN",
        "The mean of the same offsets without their signs; a flow without reordering has 1.",
        "cmt-qa Fig. 7",
        allows=_WINDOW | _PATH,
        of_trace=_mean_offset,
    ),
    Definition(
        "highest_tsn_received",
        "Highest TSN received",
        "TSN",
        "The highest TSN that had arrived by `time_s`, the first one being 0 as in ns-2's traces.",
        "cmt-qa Fig. 6",
        needs=_TIME,
        of_trace=_highest_received,
    ),
    Definition(
        "path_tsn_slope",
        "Slope of TSNs over time",
        "TSN/s",
        "The slope of the TSNs that arrive over a path against their times of arrival, by least squares, in "
        "`window_s`.",
        "cmt-qa Fig. 6",
        needs=_PATH,
        allows=_WINDOW,
        of_trace=_slope_of_path,
    ),
    Definition(
        "throughput_kbps",
        "Throughput",
        "kbps",
        "Bytes of DATA chunks that arrived, each chunk once, by time in `window_s`: what a figure over time shows, as "
        "a mean over a part of it.",
        "db-cmt Figs. 9, 15 and 16, cmt-dfr Fig. 8, cmt-qa Fig. 10",
        allows=_WINDOW | _PATH,
        of_trace=_throughput,
    ),
)
