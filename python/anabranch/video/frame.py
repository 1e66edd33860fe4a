"""Coded frames as a network sees them: type, size and when each is handed to the sender."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from anabranch.video.format import FrameFormat


class FrameType(Enum):
    """How a frame is predicted: not at all, from the reference before it, or from those around it."""

    I = "I"  # noqa: E741
    P = "P"
    B = "B"

    @property
    def is_reference(self) -> bool:
        """Whether other frames are predicted from it."""
        return self is not FrameType.B


@dataclass(frozen=True, slots=True)
class Frame:
    """`number` counts in coding order, which is the order of transmission, and `display` in that of display.

    `time_ms` is when the frame is handed to the sender; the first frame's is 0.
    """

    number: int
    display: int
    type: FrameType
    size_bytes: int
    time_ms: float


def display_order(types: Sequence[FrameType]) -> list[int]:
    """The display index of each frame in coding order.

    A reference is displayed once the B frames that follow it in coding order have been: they lie before it.
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
    """Frames in coding order, handed over at the intervals of their display, as a live encoder emits them."""
    display = display_order(types)
    return [
        Frame(number, display[number], kind, size, shape.time_ms(number))
        for number, (kind, size) in enumerate(zip(types, sizes_bytes, strict=True))
    ]
