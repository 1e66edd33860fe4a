"""Quantities derived from the traces of a run: throughput, the order of arrival, intervals and events.

Each function takes frames of `tables`. Times are compared as whole nanoseconds, which the traces have exactly, so that
an event on the edge of a bin is counted in the right bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
import pandas
from numpy.typing import NDArray

NANOSECONDS = 1_000_000_000
MAX_ROWS = 20_000_000
"""Maximum number of rows of a regular grid: more than any figure can show."""

LINE = ["flow", "direction", "path"]
"""Columns that identify a line of a figure."""

DROPPED = ("lost", "policed", "queue-full", "outage", "unroutable")
"""Events in `packets.csv` that stand for the drop of a packet."""

Line = tuple[str, str, str]
Times = NDArray[numpy.int64]


def nanoseconds(times_s: pandas.Series) -> Times:
    """Returns times in whole nanoseconds."""
    times: NDArray[numpy.float64] = times_s.to_numpy()
    return numpy.rint(times * NANOSECONDS).astype(numpy.int64)


def grid_step(every_s: float, end_s: float, lines: int) -> int:
    """Returns the step of a grid in nanoseconds. Raises `ValueError` if it is invalid or the grid has too many rows."""
    if not (math.isfinite(every_s) and round(every_s * NANOSECONDS) > 0):
        raise ValueError(f"every_s is {every_s}: expected seconds, more than 0")
    if end_s / every_s * lines > MAX_ROWS:
        raise ValueError(f"every_s is {every_s}: {lines} lines of {end_s} s would take more than {MAX_ROWS} rows")
    return round(every_s * NANOSECONDS)


def on_grid(lines: Sequence[Line], times: Times, like: pandas.DataFrame) -> pandas.DataFrame:
    """Returns a row for each line and time, the lines one after the other, with the categories of another frame."""
    frame = pandas.DataFrame({"time_s": numpy.tile(times / NANOSECONDS, len(lines))})
    for column, name in enumerate(LINE):
        words = pandas.Categorical([line[column] for line in lines], categories=like[name].cat.categories)
        frame[name] = words.repeat(len(times))
    return frame


def throughput(
    packets: pandas.DataFrame, known: Sequence[Line], is_host: bool, every_s: float, end_s: float
) -> pandas.DataFrame:
    """Returns the throughput of chunk bytes in bins, for each known line and for others with chunks."""
    step, end = grid_step(every_s, end_s, len(known)), round(end_s * NANOSECONDS)
    count = -(-end // step)
    rows = counted(packets, is_host)
    bins = numpy.minimum(nanoseconds(rows["time_s"]) // step, max(count - 1, 0))
    groups = rows.assign(bin=bins).groupby(LINE, observed=True)
    totals = {key: numpy.bincount(of["bin"], of["counted_bytes"], count)[:count] for key, of in groups}
    lines = list(dict.fromkeys([*known, *totals]))
    starts = numpy.arange(count, dtype=numpy.int64) * step
    width_ms = numpy.minimum(step, end - starts) / 1e6
    rates = [totals.get(line, numpy.zeros(count)) * 8 / width_ms for line in lines]
    counts = ["sent" if is_host and line[1] == "forward" else "received" for line in lines]
    return on_grid(lines, starts, packets).assign(
        throughput_kbps=numpy.concatenate([numpy.zeros(0), *rates]),
        counted=pandas.Categorical(counts, categories=["sent", "received"]).repeat(count),
    )


def counted(packets: pandas.DataFrame, is_host: bool) -> pandas.DataFrame:
    """Returns the rows that throughput counts, with the bytes of each as `counted_bytes`.

    These are received chunks. A host does not know which chunks the peer received, so its own chunks count when sent.
    """
    arrived = packets["event"] == "received"
    if not is_host:
        return packets[arrived].assign(counted_bytes=packets["chunk_bytes"])
    own = packets["direction"] == "forward"
    adds = arrived | (own & (packets["event"] == "sent"))
    takes_back = own & packets["event"].isin(DROPPED)
    sign = adds.astype(int) - takes_back.astype(int)
    return packets.assign(counted_bytes=packets["chunk_bytes"] * sign)[sign != 0]


def unwrapped(packets: pandas.DataFrame) -> pandas.DataFrame:
    """Returns packets with TSNs that do not wrap at 2**32.

    Consecutive TSNs differ by less than half of their range, in either direction (RFC 9260, section 1.6).
    """
    tsn = numpy.zeros(len(packets), dtype=numpy.int64)
    wire = packets["tsn"].to_numpy()
    for rows in packets.groupby(["flow", "direction"], observed=True).indices.values():
        own = wire[rows]
        steps = numpy.diff(own, prepend=own[:1]).astype(numpy.uint32).astype(numpy.int32)
        tsn[rows] = own[0] + numpy.cumsum(steps, dtype=numpy.int64)
    return packets[["time_s", "flow", "direction", "path", "event"]].assign(tsn=tsn)


def out_of_order(tsns: pandas.DataFrame) -> pandas.DataFrame:
    """Returns the offset of each received chunk to the chunk received before it."""
    arrived = tsns[tsns["event"] == "received"].drop(columns="event")
    offset = arrived.groupby(["flow", "direction"], observed=True)["tsn"].diff()
    follows = offset.notna()
    return arrived[follows].assign(offset=offset[follows].astype("int64")).reset_index(drop=True)


def retransmissions(tsns: pandas.DataFrame) -> pandas.DataFrame:
    """Returns chunks that had been sent before, with the number of the transmission."""
    sent = tsns[tsns["event"] == "sent"].drop(columns="event")
    before = sent.groupby(["flow", "direction", "tsn"], observed=True).cumcount()
    return sent[before > 0].assign(transmission=before[before > 0] + 1).reset_index(drop=True)


def drops(tsns: pandas.DataFrame) -> pandas.DataFrame:
    """Returns dropped chunks with the cause."""
    dropped = tsns[tsns["event"].isin(DROPPED)].rename(columns={"event": "cause"})
    dropped["cause"] = dropped["cause"].cat.set_categories(list(DROPPED))
    return dropped.reset_index(drop=True)


def losses(decisions: pandas.DataFrame) -> pandas.DataFrame:
    """Returns chunks that senders declared lost, with the cause."""
    lost = decisions[decisions["decision"] == "lost"].rename(columns={"detail": "cause"})
    lost["cause"] = lost["cause"].cat.remove_unused_categories()
    return lost[["time_s", *LINE, "tsn", "cause"]].reset_index(drop=True)


def timeouts(decisions: pandas.DataFrame) -> pandas.DataFrame:
    """Returns expiries of T3."""
    return decisions.loc[decisions["decision"] == "timeout", ["time_s", *LINE]].reset_index(drop=True)


def blocked(decisions: pandas.DataFrame, end_s: float) -> pandas.DataFrame:
    """Returns intervals in which only the peer's receive window blocked data, with the path of the hole."""
    turns = decisions[decisions["decision"].isin(["blocked", "unblocked"])]
    until = turns.groupby(["flow", "direction"], observed=True)["time_s"].shift(-1).fillna(end_s)
    spans = turns.rename(columns={"time_s": "start_s"}).assign(end_s=until)
    spans = spans[(spans["decision"] == "blocked") & (spans["end_s"] > spans["start_s"])]
    return spans[["start_s", "end_s", *LINE]].reset_index(drop=True)


def sampled(paths: pandas.DataFrame, every_s: float, end_s: float) -> pandas.DataFrame:
    """Returns the state of each path at regular times, which is that of its latest row."""
    groups = paths.groupby(LINE, observed=True).indices
    step = grid_step(every_s, end_s, len(groups))
    times = numpy.arange(0, round(end_s * NANOSECONDS) + 1, step, dtype=numpy.int64)
    rows = nanoseconds(paths["time_s"])
    taken, at = [], []
    for own in groups.values():
        latest = numpy.searchsorted(rows[own], times, side="right") - 1
        taken.append(own[latest[latest >= 0]])
        at.append(times[latest >= 0])
    if not taken:
        return paths.copy()
    frame = paths.iloc[numpy.concatenate(taken)].reset_index(drop=True)
    return frame.assign(time_s=numpy.concatenate(at) / NANOSECONDS)
