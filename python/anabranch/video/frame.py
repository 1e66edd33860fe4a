"""Coded frames as the network carries them: type, size and time of the hand-over to the sender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from anabranch.video.format import FrameFormat


class FrameType(Enum):
    """Prediction of a frame: none (I), from the reference before it (P), or from both references around it (B)."""

    I = "I"  # noqa: E741
    P = "P"
    B = "B"

    @property
    def is_reference(self) -> bool:
        """`True` if other frames are predicted from it."""
        return self is not FrameType.B


@dataclass(frozen=True, slots=True)
class Frame:
    """Coded frame: `number` counts in coding order, which is the order of transmission, `display` in that of display.

    `time_ms` is the time of the hand-over to the sender; that of the first frame is 0.
    """

    number: int
    display: int
    type: FrameType
    size_bytes: int
    time_ms: float


def display_order(types: Sequence[FrameType]) -> list[int]:
    """Returns the display index of each frame in coding order.

    A reference is displayed after the B frames that follow it in coding order.
    """
    display = [0] * len(types)
    held: int | None = None
    following = 0
    for number, kind in enumerate(types):
        if kind.is_reference:
            if held is not None:
                display[held] = following
                following += 1
            held = number
        else:
            display[number] = following
            following += 1
    if held is not None:
        display[held] = following
    return display


def scheduled(types: Sequence[FrameType], sizes_bytes: Sequence[int], shape: FrameFormat) -> list[Frame]:
    """Returns frames in coding order, handed over at the intervals of their display, as a live encoder emits them."""
    display = display_order(types)
    return [
        Frame(number, display[number], kind, size, shape.time_ms(number))
        for number, (kind, size) in enumerate(zip(types, sizes_bytes, strict=True))
    ]
