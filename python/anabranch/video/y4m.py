"""YUV4MPEG2: raw frames after a line of text with their size and rate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import IO

from anabranch.errors import VideoError
from anabranch.video.ffmpeg import escaped
from anabranch.video.format import FrameFormat

_MAGIC = b"YUV4MPEG2"
_FRAME = b"FRAME"
_LONGEST_LINE_BYTES = 1024
# They differ in the positions of chroma samples, which no metric here uses.
_COLOURS_420 = frozenset({"420", "420jpeg", "420mpeg2", "420paldv"})
_RATE = re.compile(r"(\d{1,9}):(\d{1,9})")


class OtherColoursError(VideoError):
    """The samples are not 4:2:0 with 8 bits, so they have to be converted."""


def read_header(file: IO[bytes], name: str) -> FrameFormat:
    """Returns the format of the frames that follow. Raises `VideoError` about the clip `name`."""
    line = file.readline(_LONGEST_LINE_BYTES)
    if not line.startswith(_MAGIC) or not line.endswith(b"\n"):
        raise VideoError(f"{name}: begins with no header of YUV4MPEG2: it is empty, damaged or of another kind")
    fields = {word[:1]: word[1:] for word in line[len(_MAGIC) :].decode("ascii", "replace").split()}
    colours = fields.get("C", "420")
    if colours not in _COLOURS_420:
        raise OtherColoursError(f"{name}: has samples of `{escaped(colours)}`, not of 4:2:0")
    rate = _RATE.fullmatch(fields.get("F", "30:1"))
    if rate is None or int(rate[2]) == 0:
        raise VideoError(f"{name}: has the rate `{escaped(fields.get('F', ''))}`: give another with --rate")
    return FrameFormat(_side(fields, "W", name), _side(fields, "H", name), Fraction(int(rate[1]), int(rate[2])))


def _side(fields: dict[str, str], key: str, name: str) -> int:
    text = fields.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise VideoError(f"{name}: its header has `{key}{escaped(text)}` where a number of pixels should be")
    return int(text)


def read_frames(file: IO[bytes], frame: FrameFormat, name: str) -> Iterator[bytes]:
    """Yields the frames up to the end. Raises `VideoError` if one is cut off or has no frame header."""
    number = 0
    while line := file.readline(_LONGEST_LINE_BYTES):
        samples = file.read(frame.frame_bytes)
        if not line.startswith(_FRAME) or not line.endswith(b"\n") or len(samples) < frame.frame_bytes:
            raise VideoError(
                f"{name}: is damaged or cut off at frame {number}: take those before with --frames {number}"
            )
        yield samples
        number += 1


def header(frame: FrameFormat) -> bytes:
    """Returns the first line of a file with such frames."""
    rate = f"{frame.rate.numerator}:{frame.rate.denominator}"
    return f"YUV4MPEG2 W{frame.width} H{frame.height} F{rate} Ip A1:1 C420jpeg\n".encode("ascii")


FRAME_LINE = _FRAME + b"\n"
