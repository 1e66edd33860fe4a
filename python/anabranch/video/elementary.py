"""Coded frames of an MPEG-4 part 2 elementary stream (ISO/IEC 14496-2).

Each part of the stream begins with a start code: 00 00 01 and a byte with the kind of the part. A coded picture is a
video object plane (VOP), whose first two bits after the start code are its type. Headers before a VOP (of the sequence,
the object, the layer, or a group of VOPs) belong to the frame that they precede.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_BITSTREAM_BYTES, MAX_FRAMES
from anabranch.video.frame import FrameType

_PREFIX = b"\x00\x00\x01"
# Table 6-3, start code values.
_VOP = 0xB6
_START_CODE_BYTES = 4
# vop_coding_type, in the upper two bits; 3 is a sprite, which no supported profile has.
_TYPES = {0: FrameType.I, 1: FrameType.P, 2: FrameType.B}


@dataclass(frozen=True, slots=True)
class CodedFrame:
    """Place of a frame in the stream: `header_bytes` of headers, then the VOP."""

    type: FrameType
    offset_bytes: int
    size_bytes: int
    header_bytes: int

    def bytes_of(self, stream: bytes) -> bytes:
        return stream[self.offset_bytes : self.offset_bytes + self.size_bytes]


def split(stream: bytes, name: str) -> list[CodedFrame]:
    """Returns the frames of a stream in coding order. Together they cover the stream without gaps.

    Raises `VideoError` about the file `name` if the stream is empty, damaged or too large.
    """
    if len(stream) > MAX_BITSTREAM_BYTES:
        raise VideoError(f"{name}: has more than {MAX_BITSTREAM_BYTES} bytes: encode a shorter clip")
    if not stream.startswith(_PREFIX):
        raise VideoError(f"{name}: is not an elementary stream of MPEG-4 part 2: encode the clip again")
    frames: list[CodedFrame] = []
    begin = 0
    vop: int | None = None
    for at, code in _start_codes(stream):
        if vop is not None:
            frames.append(_frame(stream, begin, vop, at, name))
            begin, vop = at, None
        if code == _VOP:
            vop = at
        if len(frames) > MAX_FRAMES:
            raise VideoError(f"{name}: has more than {MAX_FRAMES} frames: encode a shorter clip")
    if vop is None:
        raise VideoError(f"{name}: ends without a coded frame, so it is cut off: encode the clip again")
    frames.append(_frame(stream, begin, vop, len(stream), name))
    return frames


def _start_codes(stream: bytes) -> Iterator[tuple[int, int]]:
    """Yields offset and value of each start code."""
    at = stream.find(_PREFIX)
    while at >= 0 and at + _START_CODE_BYTES <= len(stream):
        yield at, stream[at + _START_CODE_BYTES - 1]
        at = stream.find(_PREFIX, at + _START_CODE_BYTES)


def _frame(stream: bytes, begin: int, vop: int, end: int, name: str) -> CodedFrame:
    if vop + _START_CODE_BYTES >= end:
        raise VideoError(f"{name}: a coded frame at byte {vop} is empty, so it is damaged: encode the clip again")
    kind = _TYPES.get(stream[vop + _START_CODE_BYTES] >> 6)
    if kind is None:
        raise VideoError(f"{name}: the coded frame at byte {vop} is a sprite: encode the clip again without sprites")
    return CodedFrame(kind, begin, end - begin, vop - begin)
