"""Division of coded frames into packets: a packet carries data of one frame, as in the traces of EvalVid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_PACKETS, MAX_PAYLOAD_BYTES
from anabranch.video.frame import Frame

# User data of a packet of 1500 bytes in ns-2: without 20 of IP, 12 of SCTP, 16 of a DATA chunk.
DEFAULT_PAYLOAD_BYTES = 1452


@dataclass(frozen=True, slots=True)
class Packet:
    """Packet of a frame: `number` counts in the order of transmission, `frame` is the frame's in coding order."""

    number: int
    frame: int
    size_bytes: int


def packetise(frames: Sequence[Frame], payload_bytes: int = DEFAULT_PAYLOAD_BYTES) -> list[Packet]:
    """Returns packets that are full except the last of each frame. Raises `VideoError` for a payload out of bounds."""
    check_payload(payload_bytes)
    total = sum(packets_of(frame.size_bytes, payload_bytes) for frame in frames)
    if total > MAX_PACKETS:
        raise VideoError(f"{total} packets are more than {MAX_PACKETS}: give a larger --payload or a shorter clip")
    packets: list[Packet] = []
    for frame in frames:
        for at in range(0, frame.size_bytes, payload_bytes):
            packets.append(Packet(len(packets), frame.number, min(payload_bytes, frame.size_bytes - at)))
    return packets


def check_payload(payload_bytes: int) -> None:
    """Raises `VideoError` for a payload out of bounds."""
    if not 1 <= payload_bytes <= MAX_PAYLOAD_BYTES:
        raise VideoError(f"a payload of {payload_bytes} bytes: give 1 to {MAX_PAYLOAD_BYTES} with --payload")


def packets_of(size_bytes: int, payload_bytes: int) -> int:
    """Returns the number of packets of a frame of this size."""
    return -(-size_bytes // payload_bytes)
