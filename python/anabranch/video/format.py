"""Size and rate of a clip's frames, which are planar YUV 4:2:0 with 8 bits a sample."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from anabranch.errors import VideoError
from anabranch.video import bounds


@dataclass(frozen=True, slots=True)
class FrameFormat:
    """`rate` is in frames a second. The values are within the bounds once `checked` has seen them."""

    width: int
    height: int
    rate: Fraction

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
        """This format. Raises `VideoError`, which names the clip, if it is out of bounds or has an odd size."""
        _check_size(self, name)
        if not 0 < self.rate <= bounds.MOST_RATE_PER_S:
            raise VideoError(
                f"{name}: a rate of {self.rate} frames a second is outside 0 to {bounds.MOST_RATE_PER_S}: "
                "give another with --rate"
            )
        return self


# Quarter CIF at 30 frames a second, as in the video experiment of CMT-QA.
QCIF = FrameFormat(176, 144, Fraction(30))


def _check_size(frame: FrameFormat, name: str) -> None:
    if frame.width % 2 or frame.height % 2:
        even = f"{frame.width & ~1}x{frame.height & ~1}"
        raise VideoError(
            f"{name}: frames of {frame.size} have an odd side, and 4:2:0 needs even ones: scale it with --scale {even}"
        )
    least, most = bounds.LEAST_SIDE_PIXELS, bounds.MOST_SIDE_PIXELS
    sides = (frame.width, frame.height)
    if min(sides) < least or max(sides) > most or frame.luma_bytes > bounds.MOST_FRAME_PIXELS:
        raise VideoError(
            f"{name}: frames of {frame.size} are outside {least}x{least} to {bounds.MOST_FRAME_PIXELS} pixels: "
            "scale it with --scale 176x144"
        )


def check_frame_count(frame: FrameFormat, frames: int, name: str) -> None:
    """Raises `VideoError` unless the clip has frames, and no more than may be read."""
    if frames < 1:
        raise VideoError(f"{name}: holds no frame: give another file")
    most = most_frames(frame)
    if frames > most:
        raise VideoError(f"{name}: more than {most} frames of {frame.size}: take fewer with --frames {most}")


def most_frames(frame: FrameFormat) -> int:
    """How many frames of this size may be read."""
    return min(bounds.MOST_FRAMES, bounds.MOST_RAW_BYTES // frame.frame_bytes)
