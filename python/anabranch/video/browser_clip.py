"""A clip as a file that browsers play."""

from __future__ import annotations

from pathlib import Path

from anabranch.video import ffmpeg
from anabranch.video.bounds import time_limit_s
from anabranch.video.encoder import raw_input
from anabranch.video.raw import RawFrames

# Hardly to be told from the frames that it shows, so that the damage seen is that of the network.
_QUALITY = ("-preset", "veryfast", "-crf", "18")


def write_browser_clip(clip: RawFrames, path: Path) -> None:
    """Writes H.264 in MP4, which plays while it is loaded. Raises `VideoError`."""
    ffmpeg.require("encoders", "libx264")
    arguments = [
        *(*raw_input(clip), "-c:v", "libx264", *_QUALITY, "-pix_fmt", "yuv420p"),
        *("-flags", "+bitexact", "-fflags", "+bitexact", *ffmpeg.SINGLE_THREAD, "-movflags", "+faststart"),
        *("-f", "mp4", ffmpeg.file_url(path)),
    ]
    ffmpeg.run(arguments, str(path), time_limit_s(clip.format.luma_bytes, clip.count))
