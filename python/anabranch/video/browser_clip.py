"""Clip files that browsers play."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from anabranch.video import ffmpeg
from anabranch.video.bounds import time_limit_s
from anabranch.video.encoder import raw_input
from anabranch.video.format import FrameFormat, most_frames
from anabranch.video.raw import RawFrames, write_frames

# Visually almost lossless, so that the visible damage is that of the network.
_QUALITY = ("-preset", "veryfast", "-crf", "18")


# Frames a second for a clip whose own rate varies: each of its frames is repeated until the next is due.
_GRID = Fraction(60)


def write_browser_clip(clip: RawFrames, path: Path) -> None:
    """Writes H.264 in MP4 that plays while it loads. Raises `VideoError`."""
    ffmpeg.require("encoders", "libx264")
    if clip.format.times_us is not None:
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
            return _write(_on_grid(clip, Path(folder) / "grid.yuv"), path)
    return _write(clip, path)


def _on_grid(clip: RawFrames, path: Path) -> RawFrames:
    """Repeats each frame for the time that it is shown."""
    shape = clip.format
    times_s = np.array([shape.time_ms(place) / 1000 for place in range(clip.count + 1)])
    ticks = np.arange(max(1, min(math.ceil(times_s[-1] * _GRID), most_frames(shape)))) / float(_GRID)
    shown = np.clip(np.searchsorted(times_s[: clip.count], ticks + 1e-6, side="right") - 1, 0, None)
    samples = clip.samples()
    grid = FrameFormat(shape.width, shape.height, _GRID)
    return write_frames(path, grid, (samples[place].data for place in shown), str(path))


def _write(clip: RawFrames, path: Path) -> None:
    arguments = [
        *(*raw_input(clip), "-c:v", "libx264", *_QUALITY, "-pix_fmt", "yuv420p"),
        *("-flags", "+bitexact", "-fflags", "+bitexact", *ffmpeg.SINGLE_THREAD, "-movflags", "+faststart"),
        *("-f", "mp4", ffmpeg.file_url(path)),
    ]
    ffmpeg.run(arguments, str(path), time_limit_s(clip.format.luma_bytes, clip.count))
