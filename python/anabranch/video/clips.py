"""Clips of the package, and files of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import VideoError
from anabranch.video.format import QCIF, FrameFormat, check_frame_count
from anabranch.video.photographs import photograph_frames
from anabranch.video.raw import RawFrames, Samples, write_frames
from anabranch.video.synthetic import synthetic_frames
from anabranch.video.user_clip import ReadOptions, read_clip
from anabranch.video.y4m import FRAME_LINE, header

# Frames of Highway, the clip of CMT-QA's experiment.
DEFAULT_FRAMES = 2000


@dataclass(frozen=True, slots=True)
class Source:
    """Clip that is computed."""

    about: str
    frames: Callable[[FrameFormat, int], Iterator[bytes]]


SOURCES = {
    "photographs": Source("pan and zoom over three photographs of scikit-image", photograph_frames),
    "synthetic": Source("discs and noise that move over a gradient", synthetic_frames),
}

Step = Callable[[], object]


def make_clip(name: str, out: Path, reading: ReadOptions | None = None, step: Step | None = None) -> RawFrames:
    """Writes the clip of this name, or the file of this name, as raw frames to `out`.

    `step` is called after each computed frame. Raises `VideoError`.
    """
    reading = reading or ReadOptions()
    if name not in SOURCES:
        if not Path(name).exists():
            raise VideoError(f"{name}: is neither a file nor one of the clips: {', '.join(SOURCES)}")
        return read_clip(Path(name), out, reading)
    size = reading.scale or reading.size or (QCIF.width, QCIF.height)
    rate = QCIF.rate if reading.rate is None else reading.rate
    frame = FrameFormat(*size, rate).checked(name)
    count = DEFAULT_FRAMES if reading.frames is None else reading.frames
    check_frame_count(frame, count, name)
    return write_frames(out, frame, _counted(SOURCES[name].frames(frame, count), step), name)


def _counted(frames: Iterator[bytes], step: Step | None) -> Iterator[bytes]:
    for each in frames:
        yield each
        if step is not None:
            step()


def as_y4m(clip: RawFrames) -> Iterator[bytes | Samples]:
    """Yields the clip as YUV4MPEG2, whose header contains size and rate: the header, then each frame."""
    yield header(clip.format)
    for row in clip.samples():
        yield FRAME_LINE
        yield row
