"""Fate of each frame, by the arrival of its packets and by the frames that it is predicted from.

A frame is *lost* if one of its packets did not arrive, and *late* if one arrived after its playout. It is *undecodable*
if all arrived in time but a frame that it is predicted from is not good. Otherwise it is *good*:

* An I frame is predicted from nothing.
* A P frame is predicted from the reference (I or P) before it in coding order.
* A B frame is predicted from the two references before it in coding order, between which it is displayed. So the last
  B frames of a group need the I frame of the next.

A late frame is discarded, as in EvalVid: frames that are predicted from it are undecodable, even if a decoder that kept
it could have used it for them.

The native module computes fates, here as in runs of a scenario with a video flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from anabranch import _native
from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_DEADLINE_MS
from anabranch.video.frame import Frame
from anabranch.video.packets import Packet


class Fate(Enum):
    """Outcome of the transmission of a frame."""

    GOOD = "good"
    LOST = "lost"
    LATE = "late"
    UNDECODABLE = "undecodable"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Fate of a frame, and the arrival time of the last of its packets; `None` if a packet did not arrive."""

    frame: Frame
    fate: Fate
    complete_ms: float | None

    @property
    def delay_ms(self) -> float | None:
        """Time from the hand-over of the frame to the sender until it is complete."""
        return None if self.complete_ms is None else self.complete_ms - self.frame.time_ms


@dataclass(frozen=True, slots=True)
class Playout:
    """Times at which frames are shown: frame `d` of the display `deadline_ms` and the reordering after its time.

    The time of frame `d` is that of the `d`-th hand-over. The reordering is the longest time by which coding delays a
    frame. So each frame has at least the deadline from its hand-over to the sender, and references have more.
    """

    deadline_ms: float

    @classmethod
    def of(cls, deadline_ms: float) -> Playout:
        """Returns the playout for a deadline. Raises `VideoError` if it is out of bounds."""
        if not 0 < deadline_ms <= MAX_DEADLINE_MS:
            raise VideoError(f"a deadline of {deadline_ms:g} ms: give one above 0, up to {MAX_DEADLINE_MS / 1000:g} s")
        return cls(deadline_ms)

    def due_ms(self, frames: Sequence[Frame]) -> list[float]:
        """Returns the time at which each frame of a clip is shown."""
        return _native.video_due_ms(as_native(frames), self.deadline_ms)


def deliveries(
    frames: Sequence[Frame], packets: Sequence[Packet], arrivals_ms: Mapping[int, float], playout: Playout
) -> list[Delivery]:
    """Returns the fate of each frame in coding order, by the first arrival of each received packet."""
    found = _native.video_fates(
        as_native(frames),
        [packet.frame for packet in packets],
        [arrivals_ms.get(packet.number) for packet in packets],
        playout.deadline_ms,
    )
    return [Delivery(frame, Fate(fate), complete_ms) for frame, (fate, complete_ms) in zip(frames, found, strict=True)]


def as_native(frames: Sequence[Frame]) -> list[tuple[str, int, float]]:
    """Returns frames in the form of the native module."""
    return [(frame.type.value, frame.display, frame.time_ms) for frame in frames]
