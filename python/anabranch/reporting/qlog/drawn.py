"""Conversion of connections to timelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anabranch.reporting.qlog.connection import Connection, EventSeries, PathLog, Points
from anabranch.reporting.timeline.downsampling import evenly
from anabranch.reporting.timeline.events import MAX_EVENTS
from anabranch.reporting.timeline.lines import bin_width_s, line_of
from anabranch.reporting.timeline.model import Channel, EventKind, Events, Line, Timeline, Track
from anabranch.reporting.timeline.shares import decided_shares
from anabranch.reporting.timeline.spans import blocked_spans, state_spans

_NUMBERS = 2**32
# Logs of a connection may contain only a few packets.
_SHORTEST_BIN_S = 0.001


def timeline_of_connections(connections: Sequence[Connection]) -> Timeline:
    """Returns all connections on one axis, each from its trace's first event on."""
    timeline = Timeline()
    for connection in connections:
        if not connection.paths:
            timeline.notes.append(f"{connection.name}: no event describes a path")
            continue
        _add(timeline, connection)
    return timeline


def _add(timeline: Timeline, connection: Connection) -> None:
    index = len(timeline.tracks)
    names = tuple(sorted(connection.paths, key=_natural))
    track = Track(
        run=connection.name,
        sender=None,
        scheme=connection.scheme,
        flow=connection.name,
        direction="forward",
        paths=names,
        end_s=connection.end_s,
        first_tsn=connection.first_tsn or 0,
        numbered="TSN" if connection.is_sctp else "packet",
        bin_s=bin_width_s(connection.end_s, _SHORTEST_BIN_S),
    )
    timeline.tracks.append(track)
    for name in names:
        path = connection.paths[name]
        timeline.lines.extend(_lines(path, name, index, track))
        for kind, happened in path.happened.items():
            timeline.events.append(_events(kind, happened, index, name, track))
    if connection.is_sctp:
        timeline.spans.extend(_states(connection, index))
        timeline.spans.extend(blocked_spans(_blocked(connection), index))
        if connection.decisions:
            decisions = pd.DataFrame([_row(each) for each in connection.decisions])
            timeline.shares.append(decided_shares(decisions, index, track, track.bin_s))


def _natural(name: str) -> tuple[str, int]:
    """Returns a sort key that puts `path-2` before `path-10`."""
    words = name.rstrip("0123456789")
    return words, int(name[len(words) :][:18] or 0)


def _lines(path: PathLog, name: str, index: int, track: Track) -> Iterator[Line]:
    for channel, points in path.metrics.items():
        times_s, values = _sorted(points)
        yield line_of(channel, (index,), (name,), times_s, values.astype(np.float32))
    for channel, points in _traffic(path):
        if len(points.times_s) and track.end_s > 0:
            yield _rates(channel, points, name, index, track)


def _traffic(path: PathLog) -> tuple[tuple[Channel, Points], ...]:
    return (("throughput", path.sent), ("received", path.received))


def _rates(channel: Channel, points: Points, name: str, index: int, track: Track) -> Line:
    """Returns kbit/s in bins. The last bin ends with the connection and may be shorter."""
    count = max(int(np.ceil(track.end_s / track.bin_s - 1e-9)), 1)
    times_s, sizes = _sorted(points)
    bins = np.minimum((times_s / track.bin_s).astype(np.int64), count - 1)
    starts_s = np.arange(count, dtype=np.float64) * track.bin_s
    widths_s = np.minimum(track.bin_s, track.end_s - starts_s)
    rates = np.bincount(bins, sizes, count) * 8 / 1000 / widths_s
    return line_of(channel, (index,), (name,), starts_s, rates.astype(np.float32))


def _sorted(points: Points) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    times_s = np.frombuffer(points.times_s, dtype=np.float64)
    order = np.argsort(times_s, kind="stable")
    return times_s[order], np.frombuffer(points.values, dtype=np.float64)[order]


def _events(kind: EventKind, happened: EventSeries, index: int, path: str, track: Track) -> Events:
    times_s = np.frombuffer(happened.times_s, dtype=np.float64)
    order = np.argsort(times_s, kind="stable")
    kept = order[evenly(len(order), MAX_EVENTS)]
    numbers = np.frombuffer(happened.numbers, dtype=np.int64)
    if track.numbered == "TSN":
        relative = (numbers - track.first_tsn) % _NUMBERS
        known = bool((numbers >= 0).all())
    else:
        relative = numbers
        known = bool(((numbers >= 0) & (numbers < _NUMBERS)).all())
    return Events(
        kind,
        index,
        path,
        times_s[kept],
        relative.astype(np.uint32)[kept] if known else None,
        np.frombuffer(happened.words, dtype=np.uint8)[kept],
        tuple(happened.known),
        len(times_s),
    )


def _states(connection: Connection, track: int) -> Iterator[Any]:
    rows = [(time_s, name, state) for name, path in connection.paths.items() for time_s, state in path.states]
    if rows:
        yield from state_spans(pd.DataFrame(rows, columns=["time_s", "path", "state"]), track, connection.end_s)


def _blocked(connection: Connection) -> pd.DataFrame:
    """Returns intervals of a closed window. A new one begins whenever the path of the hole changes."""
    turns = [*connection.blocked, (connection.end_s, None)]
    spans = [
        (start, end, path or None) for (start, path), (end, _) in pairwise(turns) if path is not None and end > start
    ]
    return pd.DataFrame(spans, columns=["start_s", "end_s", "path"])


def _row(decided: Any) -> dict[str, Any]:
    names = ("time_s", "decision", "path", "reason", "refused")
    return {name: getattr(decided, name) for name in names}
