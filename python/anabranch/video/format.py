"""Size and rate of a clip's frames, which are planar YUV 4:2:0 with 8 bits a sample."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from anabranch.errors import VideoError
from anabranch.video import bounds


@dataclass(frozen=True, slots=True)
class FrameFormat:
    """Format of a clip's frames. The values are within the bounds after `checked`.

    `rate` is in frames a second. A clip with a variable rate has `times_us`, the time of each frame in the order of
    display, from the first one on; its `rate` is the mean.
    """

    width: int
    height: int
    rate: Fraction
    times_us: tuple[int, ...] | None = None

    def time_ms(self, place: int) -> float:
        """Returns the time of a frame, to the microsecond. Frames after the last one keep its interval."""
        if self.times_us is None:
            return round(place * 1_000_000 / self.rate) / 1000
        last = len(self.times_us) - 1
        beyond = max(place - last, 0) * (self.times_us[last] - self.times_us[max(last - 1, 0)])
        return (self.times_us[min(place, last)] + beyond) / 1000

    @property
    def luma_bytes(self) -> int:
        return self.width * self.height

    @property
    def frame_bytes(self) -> int:
        """Luma, and two planes of chroma with a quarter of its samples each."""
        return self.luma_bytes * 3 // 2

    @property
    def size(self) -> str:
        return f"{self.width}x{self.height}"

    def checked(self, name: str) -> FrameFormat:
        """Returns this format. Raises `VideoError`, which names the clip, if it is out of bounds or has an odd size."""
        _check_size(self, name)
        if not 0 < self.rate <= bounds.MAX_RATE_PER_S:
            raise VideoError(
                f"{name}: a rate of {self.rate} frames a second is outside 0 to {bounds.MAX_RATE_PER_S}: "
                "give another with --rate"
            )
        _check_times(self.times_us or (0,), name)
        return self


# Quarter CIF at 30 frames a second, as in the video experiment of CMT-QA.
QCIF = FrameFormat(176, 144, Fraction(30))


def _check_size(frame: FrameFormat, name: str) -> None:
    if frame.width % 2 or frame.height % 2:
        even = f"{frame.width & ~1}x{frame.height & ~1}"
        raise VideoError(
            f"{name}: frames of {frame.size} have an odd side, and 4:2:0 needs even ones: scale it with --scale {even}"
        )
    least, most = bounds.MIN_SIDE_PIXELS, bounds.MAX_SIDE_PIXELS
    sides = (frame.width, frame.height)
    if min(sides) < least or max(sides) > most or frame.luma_bytes > bounds.MAX_FRAME_PIXELS:
        raise VideoError(
            f"{name}: frames of {frame.size} are outside {least}x{least} to {bounds.MAX_FRAME_PIXELS} pixels: "
            "scale it with --scale 176x144"
        )


def _check_times(times_us: tuple[int, ...], name: str) -> None:
    if times_us[0] != 0 or any(after < before for before, after in pairwise(times_us)):
        raise VideoError(f"{name}: the times of its frames do not begin at 0, or go back: repair it, or give --rate")
    if times_us[-1] > bounds.MAX_DURATION_S * 1_000_000:
        raise VideoError(f"{name}: lasts longer than {bounds.MAX_DURATION_S} s: give a shorter clip, or --rate")


def check_frame_count(frame: FrameFormat, frames: int, name: str) -> None:
    """Raises `VideoError` unless the clip has frames, and no more than allowed."""
    if frames < 1:
        raise VideoError(f"{name}: has no frames: choose another file")
    most = most_frames(frame)
    if frames > most:
        raise VideoError(f"{name}: more than {most} frames of {frame.size}: take fewer with --frames {most}")


def most_frames(frame: FrameFormat) -> int:
    """Returns the maximum number of frames of this size."""
    return min(bounds.MAX_FRAMES, bounds.MAX_RAW_BYTES // frame.frame_bytes)
