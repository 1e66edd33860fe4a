"""Arrival times of packets, as a simulation or a receiver on real sockets records them.

Columns: `packet`, the number that `packetise` assigns; `arrival_ms`, on the clock of the trace, on which the first
frame is handed to the sender at 0. A packet without a row, or with an empty time, was lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from anabranch.errors import VideoError
from anabranch.video.frame import Frame
from anabranch.video.packets import Packet
from anabranch.video.tables import Row, read_rows, time_of, whole, write_table

_NEEDED = ("packet", "arrival_ms")
# A receiver may record copies of a packet as well.
_MAX_ROWS_PER_PACKET = 16


def write_arrivals(path: Path, arrivals_ms: Mapping[int, float]) -> None:
    """Writes the packets that arrived as .csv or .parquet."""
    write_table(path, {"packet": list(arrivals_ms), "arrival_ms": list(arrivals_ms.values())})


def read_arrivals(path: Path, frames: Sequence[Frame], packets: Sequence[Packet]) -> dict[int, float]:
    """Returns the first arrival of each received packet, in milliseconds. Raises `VideoError` about a wrong row."""
    first: dict[int, float] = {}
    for index, row in enumerate(read_rows(path, _NEEDED, len(packets) * _MAX_ROWS_PER_PACKET)):
        where = f"{path}: row {index + 1}"
        number = whole(row, "packet", where, most=len(packets) - 1)
        if _is_absent(row):
            continue
        arrival_ms = time_of(row, "arrival_ms", where)
        handed_over_ms = frames[packets[number].frame].time_ms
        if arrival_ms < handed_over_ms:
            raise VideoError(
                f"{where}: packet {number} arrives at {arrival_ms:g} ms, before its frame is handed to the sender at "
                f"{handed_over_ms:g} ms: times count from when the first frame is"
            )
        first[number] = min(arrival_ms, first.get(number, math.inf))
    return first


def _is_absent(row: Row) -> bool:
    value = row["arrival_ms"]
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))
