"""What becomes of each frame, by when its packets arrived and by what it is predicted from.

A frame is *lost* if one of its packets did not arrive, *late* if one arrived after its playout, *undecodable* if all
are there in time but a frame that it is predicted from is not good, and otherwise *good*:

* An I frame is predicted from nothing.
* A P frame is predicted from the reference (I or P) before it in coding order.
* A B frame is predicted from the two references before it in coding order, between which it is displayed. So the last
  B frames of a group need the I frame of the next.

A late frame is discarded, as EvalVid does it: frames that are predicted from it are undecodable, even if a decoder
that kept it could have used it for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from anabranch.errors import VideoError
from anabranch.video.frame import Frame, FrameType, time_ms
from anabranch.video.packets import Packet

_MOST_DEADLINE_MS = 3_600_000.0


class Fate(Enum):
    """What became of a frame."""

    GOOD = "good"
    LOST = "lost"
    LATE = "late"
    UNDECODABLE = "undecodable"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A frame's fate, and when the last of its packets arrived; None if one did not."""

    frame: Frame
    fate: Fate
    complete_ms: float | None

    @property
    def delay_ms(self) -> float | None:
        """From when the frame is handed to the sender until it is complete."""
        return None if self.complete_ms is None else self.complete_ms - self.frame.time_ms


@dataclass(frozen=True, slots=True)
class Playout:
    """Frame `d` of the order of display is shown `deadline_ms` + (`d` + reordering) / rate after the first hand-over.

    The reordering is the number of intervals by which coding delays frames at the most, so that each frame has at least
    the deadline from when it is handed to the sender, and those that others are predicted from have more.
    """

    deadline_ms: float
    rate: Fraction
    reordering: int

    @classmethod
    def of(cls, frames: Sequence[Frame], deadline_ms: float, rate: Fraction) -> Playout:
        """Raises `VideoError` for a deadline that is none."""
        if not 0 < deadline_ms <= _MOST_DEADLINE_MS:
            raise VideoError(
                f"a deadline of {deadline_ms:g} ms: give one above 0, up to {_MOST_DEADLINE_MS / 1000:g} s"
            )
        return cls(deadline_ms, rate, max((frame.number - frame.display for frame in frames), default=0))

    def due_ms(self, frame: Frame) -> float:
        return self.deadline_ms + time_ms(frame.display + self.reordering, self.rate)


def deliveries(
    frames: Sequence[Frame], packets: Sequence[Packet], arrivals_ms: Mapping[int, float], playout: Playout
) -> list[Delivery]:
    """The fate of each frame in coding order, by the first arrival of each packet that arrived."""
    completed = _completions(len(frames), packets, arrivals_ms)
    found: list[Delivery] = []
    # Whether the last two references in coding order are good; before there are two, none is.
    older, newer = False, False
    for frame in frames:
        complete_ms = completed[frame.number]
        fate = _fate(frame.type, complete_ms, playout.due_ms(frame), older, newer)
        found.append(Delivery(frame, fate, complete_ms))
        if frame.type.is_reference:
            older, newer = newer, fate is Fate.GOOD
    return found


def _completions(frames: int, packets: Sequence[Packet], arrivals_ms: Mapping[int, float]) -> list[float | None]:
    """When the last packet of each frame arrived. A frame without packets never is complete."""
    latest: list[float] = [-1.0] * frames
    missing = [True] * frames
    for packet in packets:
        missing[packet.frame] = False
    for packet in packets:
        arrival = arrivals_ms.get(packet.number)
        if arrival is None:
            missing[packet.frame] = True
        else:
            latest[packet.frame] = max(latest[packet.frame], arrival)
    return [None if gone else last for gone, last in zip(missing, latest, strict=True)]


def _fate(kind: FrameType, complete_ms: float | None, due_ms: float, older: bool, newer: bool) -> Fate:
    if complete_ms is None:
        return Fate.LOST
    if complete_ms > due_ms:
        return Fate.LATE
    needed = {FrameType.I: True, FrameType.P: newer, FrameType.B: older and newer}
    return Fate.GOOD if needed[kind] else Fate.UNDECODABLE
