"""Values over time: a sender's state of its paths, throughput, and queues of links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from anabranch.reporting.timeline.downsampling import changes, envelope
from anabranch.reporting.timeline.model import Channel, Line, Seconds, Track, Values

if TYPE_CHECKING:
    import pandas as pd

MAX_POINTS = 40_000
"""Maximum number of points that a line keeps, before the limit of a whole report applies."""

BYTES_PER_KIB = 1024
# Columns of a path's row, with the divisor that gives the unit shown: KiB and ms.
_COLUMNS: tuple[tuple[Channel, str, int], ...] = (
    ("cwnd", "cwnd_bytes", BYTES_PER_KIB),
    ("ssthresh", "ssthresh_bytes", BYTES_PER_KIB),
    ("outstanding", "outstanding_bytes", BYTES_PER_KIB),
    ("srtt", "srtt_ms", 1),
)
_MAX_BINS = 300
_SHORTEST_BIN_S = 0.1


def bin_width_s(end_s: float, shortest_s: float = _SHORTEST_BIN_S) -> float:
    """Returns a round width, at least `shortest_s`, that divides a run into at most 300 bins."""
    wanted_s = max(end_s / _MAX_BINS, shortest_s)
    power = 10.0 ** math.floor(math.log10(wanted_s))
    # The tolerance accepts a width that equals the wanted one.
    return next(round(power * step, 9) for step in (1, 2, 5, 10) if power * step >= wanted_s * (1 - 1e-9))


def path_lines(paths: pd.DataFrame, track: int) -> Iterator[Line]:
    """Yields cwnd, ssthresh and outstanding in KiB and srtt in ms of each path of one sender."""
    for path, rows in paths.groupby("path", sort=False, observed=True):
        times_s = rows["time_s"].to_numpy(dtype=np.float64)
        for channel, column, divisor in _COLUMNS:
            values = (rows[column].to_numpy(dtype=np.float64) / divisor).astype(np.float32)
            known = ~np.isnan(values)
            if known.any():
                yield line_of(channel, (track,), (str(path),), times_s[known], values[known])


def throughput_lines(throughput: pd.DataFrame, track: int) -> Iterator[Line]:
    """Yields the kbit/s of one sender over each path, in bins."""
    for path, rows in throughput.groupby("path", sort=False, observed=True):
        values = rows["throughput_kbps"].to_numpy(dtype=np.float32)
        yield line_of("throughput", (track,), (str(path),), rows["time_s"].to_numpy(dtype=np.float64), values)


def queue_lines(queues: pd.DataFrame, links: Mapping[str, tuple[str, ...]], tracks: Sequence[Track]) -> Iterator[Line]:
    """Yields the queued packets of each link that data passes. `links` contains the paths over each link."""
    for direction in ("forward", "reverse"):
        owners = tuple(index for index, track in enumerate(tracks) if track.direction == direction)
        for link, paths in links.items():
            rows = queues[queues["link"] == f"{link}/{direction}"]
            if owners and len(rows):
                times_s = rows["time_s"].to_numpy(dtype=np.float64)
                yield line_of("queue", owners, paths, times_s, rows["queue_packets"].to_numpy(dtype=np.float32), link)


def line_of(
    channel: Channel,
    tracks: tuple[int, ...],
    paths: tuple[str, ...],
    times_s: Seconds,
    values: Values,
    link: str | None = None,
) -> Line:
    """Returns a line without repeated values, thinned out to the maximum number of points."""
    changed = changes(values)
    times_s, values = times_s[changed], values[changed]
    kept = envelope(times_s, values, MAX_POINTS)
    return Line(channel, tracks, paths, times_s[kept], values[kept], len(times_s), link)
