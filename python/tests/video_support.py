"""Common parts of tests of video: hand-made frames, and an independent model of the fates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from anabranch.video.fates import Delivery, Fate, Playout, deliveries
from anabranch.video.format import FrameFormat
from anabranch.video.frame import Frame, FrameType, scheduled
from anabranch.video.packets import Packet, packetise

SHAPE = FrameFormat(176, 144, Fraction(30))
DEADLINE_MS = 100.0
# Two groups of nine and the I frame after them, in coding order: I0 P3 B1 B2 P6 B4 B5 I9 B7 B8 ...
CODING_ORDER = "IPBBPBBIBBPBBPBBIBB"


def frames_of(types: str, size_bytes: int = 100) -> list[Frame]:
    """Returns frames of these types in coding order, with a packet each."""
    return scheduled([FrameType(kind) for kind in types], [size_bytes] * len(types), SHAPE)


def arrivals_of(frames: Sequence[Frame], packets: Sequence[Packet], lost: Iterable[int] = ()) -> dict[int, float]:
    """Returns arrivals 20 ms after the hand-over of each frame, without the lost packets."""
    gone = set(lost)
    return {packet.number: frames[packet.frame].time_ms + 20 for packet in packets if packet.number not in gone}


def delivered(frames: Sequence[Frame], arrivals_ms: dict[int, float]) -> list[Delivery]:
    """Returns the fates of frames with a packet each."""
    return deliveries(frames, packetise(frames), arrivals_ms, Playout.of(DEADLINE_MS))


def fates_without(types: str, lost: Iterable[int]) -> str:
    """Returns the fates in display order if these frames, by display index, are lost: `g`, `l` or `u`."""
    frames = frames_of(types)
    packets = packetise(frames)
    missing = set(lost)
    numbers = [frame.number for frame in frames if frame.display in missing]
    found = delivered(frames, arrivals_of(frames, packets, numbers))
    return letters(found)


def letters(found: Sequence[Delivery]) -> str:
    """Returns the first letters of fates in display order, and `t` for late."""
    letter = {Fate.GOOD: "g", Fate.LOST: "l", Fate.LATE: "t", Fate.UNDECODABLE: "u"}
    return "".join(letter[each.fate] for each in sorted(found, key=lambda each: each.frame.display))


def decodable_by_neighbours(frames: Sequence[Frame], there: set[int]) -> set[int]:
    """Returns the decodable frames by display index, from the neighbours of each frame in the order of display.

    `there` are frames whose packets all arrived. This function traverses predictions as a graph; the code under test
    uses two flags along the coding order.
    """
    kinds = {frame.display: frame.type for frame in frames}
    references = sorted(place for place, kind in kinds.items() if kind is not FrameType.B)

    def needed(place: int) -> list[int | None]:
        before = max((other for other in references if other < place), default=None)
        after = min((other for other in references if other > place), default=None)
        return {FrameType.I: [], FrameType.P: [before], FrameType.B: [before, after]}[kinds[place]]

    def good(place: int | None) -> bool:
        return place is not None and place in there and all(good(other) for other in needed(place))

    return {place for place in kinds if good(place)}


def random_arrivals(frames: Sequence[Frame], packets: Sequence[Packet], loss: float, seed: int) -> dict[int, float]:
    """Returns arrivals 20 ms after the hand-over, of packets that are lost with this probability."""
    lost = np.random.default_rng(seed).random(len(packets)) < loss
    return arrivals_of(frames, packets, np.flatnonzero(lost).tolist())
