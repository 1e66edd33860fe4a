"""Description of a clip that a player needs before packets come: format, types and sizes of frames, packets, deadline.

It is a line of JSON with the fields of `Description` except the frames, and then nine bytes for each frame in coding
order: its type as a letter, its size in four bytes, and in four bytes the time since the previous hand-over in
microseconds. That time is 0 for all frames if the rate is constant. The player bounds every field, since the sender is
not trusted.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_BITSTREAM_BYTES, MAX_DURATION_S, MAX_FRAMES, MAX_PAYLOAD_BYTES
from anabranch.video.coded import CodedClip
from anabranch.video.fates import Playout
from anabranch.video.format import FrameFormat, check_frame_count
from anabranch.video.frame import Frame, FrameType, scheduled
from anabranch.video.packets import Packet, packetise, packets_of

FORMAT = "anabranch-video-live-2"
# The player has an object for each packet. A hostile description may not make it allocate millions.
MAX_LIVE_PACKETS = 1_000_000
LARGEST_DESCRIPTION_BYTES = 1 << 20

_MAX_HEADER_BYTES = 4096
_LONGEST_NAME_CHARACTERS = 128
_LARGEST_DEADLINE_MS = 1 << 40
_FRAME = struct.Struct("!cII")
_LONGEST_GAP_US = 3_600_000_000
_RATE = re.compile(r"[1-9]\d{0,8}(?:/[1-9]\d{0,8})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = "description"


@dataclass(frozen=True)
class Description:
    """Description of a clip. `clip` is the sender's name for it, and may be any text: escape it before it is shown."""

    clip: str
    format: FrameFormat
    payload_bytes: int
    deadline_ms: float
    bitstream_sha256: str
    types: tuple[FrameType, ...]
    sizes_bytes: tuple[int, ...]

    @classmethod
    def of(cls, clip: CodedClip, deadline_ms: float) -> Description:
        """Describes a clip. Raises `VideoError` if a player would refuse it."""
        return cls(
            clip=str(clip.manifest.get("clip", ""))[:_LONGEST_NAME_CHARACTERS],
            format=clip.source.format,
            payload_bytes=clip.manifest["payload_bytes"],
            deadline_ms=deadline_ms,
            bitstream_sha256=clip.manifest["bitstream_sha256"],
            types=tuple(frame.type for frame in clip.frames),
            sizes_bytes=tuple(frame.size_bytes for frame in clip.frames),
        )._checked()

    @cached_property
    def frames(self) -> list[Frame]:
        """Frames in coding order, with the times at which they are handed over."""
        return scheduled(self.types, self.sizes_bytes, self.format)

    @cached_property
    def packets(self) -> list[Packet]:
        """Packets in the order of transmission."""
        return packetise(self.frames, self.payload_bytes)

    @property
    def bitstream_bytes(self) -> int:
        """Size of the whole stream, in bytes."""
        return sum(self.sizes_bytes)

    @property
    def duration_s(self) -> float:
        """Time from the first frame to the end of the last, in seconds."""
        return self.format.time_ms(len(self.types)) / 1000

    def playout(self, deadline_ms: float | None = None) -> Playout:
        """Returns the playout with the sender's deadline or another one. Raises `VideoError` if it is out of bounds."""
        return Playout.of(self.deadline_ms if deadline_ms is None else deadline_ms)

    def encode(self) -> bytes:
        """Returns the description as a message."""
        header = {
            "format": FORMAT,
            "clip": self.clip,
            "width": self.format.width,
            "height": self.format.height,
            "rate": str(self.format.rate),
            "payload_bytes": self.payload_bytes,
            "deadline_ms": self.deadline_ms,
            "bitstream_sha256": self.bitstream_sha256,
        }
        times_us = self.format.times_us or (0,) * len(self.types)
        gaps_us = [after - before for before, after in pairwise((0, *times_us))]
        rows = zip(self.types, self.sizes_bytes, gaps_us, strict=True)
        table = b"".join(_FRAME.pack(kind.value.encode("ascii"), size, gap_us) for kind, size, gap_us in rows)
        return json.dumps(header).encode("ascii") + b"\n" + table

    def _checked(self) -> Description:
        count = len(self.types)
        check_frame_count(self.format.checked(_NAME), count, _NAME)
        if min(self.sizes_bytes) < 1:
            raise VideoError(f"{_NAME}: a frame of 0 bytes needs no packet, so it cannot be lost")
        if self.bitstream_bytes > MAX_BITSTREAM_BYTES:
            raise VideoError(f"{_NAME}: more than {MAX_BITSTREAM_BYTES} bytes: send a shorter clip")
        packets = sum(packets_of(size, self.payload_bytes) for size in self.sizes_bytes)
        if packets > MAX_LIVE_PACKETS:
            raise VideoError(f"{_NAME}: {packets} packets are more than {MAX_LIVE_PACKETS}: send a shorter clip")
        if len(self.format.times_us or self.types) != count:
            raise VideoError(f"{_NAME}: has other numbers of times and frames")
        times_us = self.format.times_us or (0,)
        if any(after - before > _LONGEST_GAP_US for before, after in pairwise(times_us)):
            raise VideoError(f"{_NAME}: a frame is shown for more than an hour: send another clip")
        if self.duration_s > MAX_DURATION_S:
            raise VideoError(f"{_NAME}: more than {MAX_DURATION_S} s: send a shorter clip")
        self.playout()
        return self


def read_description(message: bytes) -> Description:
    """Parses a sender's description. Raises `VideoError` about a field that is missing or out of its bounds."""
    end = message.find(b"\n", 0, _MAX_HEADER_BYTES)
    if end < 0:
        raise VideoError(f"{_NAME}: has no header of {FORMAT}")
    header = _header(message[:end])
    types, sizes, times_us = _frames(message[end + 1 :])
    return Description(
        clip=_text(header, "clip"),
        format=FrameFormat(_number(header, "width"), _number(header, "height"), _rate(header), times_us),
        payload_bytes=_number(header, "payload_bytes", MAX_PAYLOAD_BYTES),
        deadline_ms=_deadline(header),
        bitstream_sha256=_hash(header),
        types=types,
        sizes_bytes=sizes,
    )._checked()


def _header(line: bytes) -> Mapping[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        raise VideoError(f"{_NAME}: its header is not JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise VideoError(f"{_NAME}: `format` is not `{FORMAT}`: use the same version on both sides")
    return header


def _frames(table: bytes) -> tuple[tuple[FrameType, ...], tuple[int, ...], tuple[int, ...] | None]:
    """Returns types, sizes and, if the rate varies, times."""
    if not table or len(table) % _FRAME.size or len(table) // _FRAME.size > MAX_FRAMES:
        raise VideoError(f"{_NAME}: {len(table)} bytes are no table of 1 to {MAX_FRAMES} frames")
    known = {kind.value.encode("ascii"): kind for kind in FrameType}
    types: list[FrameType] = []
    sizes: list[int] = []
    gaps_us: list[int] = []
    for letter, size_bytes, gap_us in _FRAME.iter_unpack(table):
        if letter not in known:
            raise VideoError(f"{_NAME}: frame {len(types)} is of no type I, P or B")
        types.append(known[letter])
        sizes.append(size_bytes)
        gaps_us.append(gap_us)
    return tuple(types), tuple(sizes), tuple(accumulate(gaps_us)) if any(gaps_us) else None


def _text(header: Mapping[str, Any], key: str) -> str:
    value = header.get(key)
    if not isinstance(value, str) or len(value) > _LONGEST_NAME_CHARACTERS:
        raise VideoError(f"{_NAME}: `{key}` is not text of up to {_LONGEST_NAME_CHARACTERS} characters")
    return value


def _number(header: Mapping[str, Any], key: str, most: int = 1 << 16) -> int:
    value = header.get(key)
    # bool is an int in Python.
    if type(value) is not int or not 1 <= value <= most:
        raise VideoError(f"{_NAME}: `{key}` is not a whole number from 1 to {most}")
    return value


def _rate(header: Mapping[str, Any]) -> Fraction:
    value = header.get("rate")
    if not isinstance(value, str) or _RATE.fullmatch(value) is None:
        raise VideoError(f"{_NAME}: `rate` is not a fraction such as 30000/1001")
    return Fraction(value)


def _deadline(header: Mapping[str, Any]) -> float:
    value = header.get("deadline_ms")
    # JSON allows integers of any length, which may exceed a float.
    if type(value) is int and abs(value) <= _LARGEST_DEADLINE_MS:
        return float(value)
    if type(value) is float and math.isfinite(value):
        return value
    raise VideoError(f"{_NAME}: `deadline_ms` is not a time")


def _hash(header: Mapping[str, Any]) -> str:
    value = header.get("bitstream_sha256")
    if not isinstance(value, str) or _SHA256.fullmatch(value) is None:
        raise VideoError(f"{_NAME}: `bitstream_sha256` is not a SHA-256 in hexadecimal")
    return value
