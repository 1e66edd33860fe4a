"""Reader of traces of EvalVid's sender: lines of frame number, type, size in bytes, packets, and time in seconds.

Lines of type H are headers, which are sent with the frame after them here, as in an elementary stream. The numbers of
packets are ignored: they depend on the payload size in EvalVid. Times count from the first frame.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from anabranch.errors import VideoError
from anabranch.text_file import ENCODING
from anabranch.video.bounds import MAX_BITSTREAM_BYTES, MAX_FRAMES
from anabranch.video.frame import Frame
from anabranch.video.tables import Row, time_of, whole
from anabranch.video.trace import checked, frame_type

_HEADER = "H"
_FIELDS = ("number", "type", "size_bytes", "packets", "time_s")
_LONGEST_LINE_CHARACTERS = 512
# One line of headers before each frame.
_MAX_LINES = 2 * MAX_FRAMES


def read_evalvid(path: Path) -> list[Frame]:
    """Returns the frames in coding order. Raises `VideoError` about a wrong line."""
    frames: list[Frame] = []
    header_bytes = 0
    first_s: float | None = None
    for where, row in _rows(path):
        size_bytes = whole(row, "size_bytes", where, most=MAX_BITSTREAM_BYTES)
        if row["type"] == _HEADER:
            header_bytes += size_bytes
            continue
        time_s = time_of(row, "time_s", where)
        first_s = time_s if first_s is None else first_s
        kind = frame_type(str(row["type"]), where)
        # EvalVid writes microseconds.
        milliseconds = round((time_s - first_s) * 1e6) / 1000
        frames.append(Frame(len(frames), len(frames), kind, size_bytes + header_bytes, milliseconds))
        header_bytes = 0
    return checked(frames, str(path))


def _rows(path: Path) -> list[tuple[str, Row]]:
    rows: list[tuple[str, Row]] = []
    try:
        with path.open(encoding=ENCODING) as file:
            lines = islice(iter(lambda: file.readline(_LONGEST_LINE_CHARACTERS), ""), _MAX_LINES + 1)
            for number, line in enumerate(lines, 1):
                where = f"{path}: line {number}"
                words = line.split()
                if words and len(words) != len(_FIELDS):
                    raise VideoError(f"{where}: has {len(words)} fields, and should have 5: {' '.join(_FIELDS)}")
                if words:
                    rows.append((where, dict(zip(_FIELDS, words, strict=True))))
    except (OSError, UnicodeDecodeError) as error:
        raise VideoError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(rows) > _MAX_LINES:
        raise VideoError(f"{path}: has more than {_MAX_LINES} lines: give a shorter trace")
    return rows
