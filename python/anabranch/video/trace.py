"""Trace of a coded clip as a file: a row for each frame in coding order, which is the order of transmission.

Columns: `number` from 0; `type`, I, P or B; `size_bytes`; `time_ms`, the time of the hand-over to the sender; and
`display`, the place in the order of display. If `display` is missing, it is derived from the types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_BITSTREAM_BYTES, MAX_FRAMES
from anabranch.video.frame import Frame, FrameType, display_order
from anabranch.video.tables import Row, read_rows, time_of, whole, write_table

_NEEDED = ("number", "type", "size_bytes", "time_ms")


def write_frame_trace(path: Path, frames: Sequence[Frame]) -> None:
    """Writes .csv or .parquet. Raises `VideoError` for another ending, and `OSError`."""
    columns: dict[str, list[Any]] = {
        "number": [frame.number for frame in frames],
        "type": [frame.type.value for frame in frames],
        "size_bytes": [frame.size_bytes for frame in frames],
        "time_ms": [frame.time_ms for frame in frames],
        "display": [frame.display for frame in frames],
    }
    write_table(path, columns)


def read_frame_trace(path: Path) -> list[Frame]:
    """Reads the frames of a file of `write_frame_trace` or another program. Raises `VideoError` about a wrong row."""
    frames = [_frame(row, index, f"{path}: row {index + 1}") for index, row in _numbered(path)]
    return checked(frames, str(path))


def _numbered(path: Path) -> list[tuple[int, Row]]:
    return list(enumerate(read_rows(path, _NEEDED, MAX_FRAMES, optional=("display",))))


def _frame(row: Row, index: int, where: str) -> Frame:
    if whole(row, "number", where, most=MAX_FRAMES) != index:
        raise VideoError(f"{where}: `number` should be {index}: frames are numbered from 0 in coding order")
    display = whole(row, "display", where, most=MAX_FRAMES) if "display" in row else index
    size_bytes = whole(row, "size_bytes", where, most=MAX_BITSTREAM_BYTES)
    return Frame(index, display, frame_type(str(row["type"]), where), size_bytes, time_of(row, "time_ms", where))


def frame_type(text: str, where: str) -> FrameType:
    """Returns the type of this letter. Raises `VideoError` about the place `where`."""
    try:
        return FrameType(text)
    except ValueError:
        raise VideoError(f"{where}: `type` is {text[:16]!a}, and should be I, P or B") from None


def checked(frames: list[Frame], name: str) -> list[Frame]:
    """Returns the frames in the order of display. Raises `VideoError` if there is none or time goes back."""
    if not frames:
        raise VideoError(f"{name}: has no frame")
    for before, frame in pairwise(frames):
        if frame.time_ms < before.time_ms:
            raise VideoError(f"{name}: row {frame.number + 1}: `time_ms` is before that of the frame before it")
    for frame in frames:
        if frame.size_bytes == 0:
            raise VideoError(
                f"{name}: row {frame.number + 1}: a frame of 0 bytes needs no packet, so it cannot be lost"
            )
    order = display_order([frame.type for frame in frames])
    return [replace(frame, display=place) for frame, place in zip(frames, order, strict=True)]
