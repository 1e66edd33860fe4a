"""Reader of a user's file as raw frames: raw YUV and YUV4MPEG2 directly, other formats with ffmpeg."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import IO

from anabranch.errors import VideoError
from anabranch.video import ffmpeg, y4m
from anabranch.video.bounds import MAX_FRAMES, MAX_RAW_BYTES, MAX_SOURCE_PIXELS, READ_LIMIT_S
from anabranch.video.format import QCIF, FrameFormat
from anabranch.video.raw import RawFrames, write_frames
from anabranch.video.timing import TIME_BASE, Timing, read_timing

_RAW_ENDINGS = frozenset({".yuv", ".raw", ".i420"})
_Y4M_ENDING = ".y4m"
# Sizes in the names of well-known clips.
_NAMED_SIZES = {"qcif": (176, 144), "cif": (352, 288)}
_SIZE_IN_NAME = re.compile(r"(?<![0-9a-z])(?:(\d{2,4})x(\d{2,4})|(qcif|cif))(?![0-9a-z])")
REMEDY = "repair it, or give another file"
# ffmpeg's error if the file has no stream of the requested kind.
_NO_STREAM = "for option 'map'"
_NO_VIDEO = "has no video stream, only sound or sound with a cover picture: give a file with video"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Parameters for reading a file. `size` and `rate` are for raw YUV, which does not contain them."""

    frames: int | None = None
    size: tuple[int, int] | None = None
    rate: Fraction | None = None
    scale: tuple[int, int] | None = None


def read_clip(path: Path, out: Path, reading: ReadOptions) -> RawFrames:
    """Writes the frames of a file to `out`. Raises `VideoError`, which names the file and a remedy."""
    _check_file(path)
    if reading.scale is not None:
        FrameFormat(*reading.scale, QCIF.rate).checked(str(path))
    if reading.scale is None and path.suffix.lower() in _RAW_ENDINGS:
        return _read_raw(path, out, reading)
    if reading.scale is None and path.suffix.lower() == _Y4M_ENDING:
        try:
            with path.open("rb") as file:
                return _read_y4m(file, path, out, reading)
        except y4m.OtherColoursError:
            pass
    return _read_with_ffmpeg(path, out, reading)


def _check_file(path: Path) -> None:
    try:
        size_bytes = path.stat().st_size
    except OSError as error:
        raise VideoError(f"{path}: cannot be read: {error.strerror}") from error
    if not path.is_file():
        raise VideoError(f"{path}: is not a file: name a clip")
    if size_bytes == 0:
        raise VideoError(f"{path}: is empty: {REMEDY}")


def _read_raw(path: Path, out: Path, reading: ReadOptions) -> RawFrames:
    raw = RawFrames.open(path, _raw_format(path, reading))
    frames = raw.samples()[: reading.frames]
    return write_frames(out, raw.format, (row.data for row in frames), str(path))


def _raw_format(path: Path, reading: ReadOptions) -> FrameFormat:
    size = reading.size or _size_in_name(path.stem)
    if size is None:
        raise VideoError(f"{path}: raw YUV contains no frame size: set it with --size WxH")
    return FrameFormat(*size, QCIF.rate if reading.rate is None else reading.rate)


def _size_in_name(stem: str) -> tuple[int, int] | None:
    """Returns the size in a name such as `highway_qcif` or `foreman_352x288`."""
    found = _SIZE_IN_NAME.search(stem.lower().replace("_", " "))
    if found is None:
        return None
    return _NAMED_SIZES[found[3]] if found[3] else (int(found[1]), int(found[2]))


def _read_y4m(file: IO[bytes], path: Path, out: Path, reading: ReadOptions, timing: Timing | None = None) -> RawFrames:
    given = y4m.read_header(file, str(path))
    timing = timing or Timing(given.rate)
    rate, times_us = (reading.rate, None) if reading.rate else (timing.rate, timing.times_us)
    frame = FrameFormat(given.width, given.height, rate, times_us).checked(str(path))
    frames = islice(y4m.read_frames(file, frame, str(path)), reading.frames)
    return write_frames(out, frame, frames, str(path))


def _read_with_ffmpeg(path: Path, out: Path, reading: ReadOptions) -> RawFrames:
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        converted, times = Path(folder) / "frames.y4m", Path(folder) / "times.txt"
        try:
            ffmpeg.run(_arguments(path, reading, converted, times), str(path), READ_LIMIT_S, silent=True)
        except VideoError as error:
            if _NO_STREAM in str(error):
                raise VideoError(f"{path}: {_NO_VIDEO}") from error
            raise VideoError(f"{error}: {REMEDY}") from error
        if not converted.exists():
            raise VideoError(f"{path}: has no video: {REMEDY}")
        with converted.open("rb") as file:
            given = y4m.read_header(file, str(path)).rate
            file.seek(0)
            return _read_y4m(file, path, out, reading, read_timing(times, given, str(path)))


def _arguments(path: Path, reading: ReadOptions, frames: Path, times: Path) -> list[str]:
    """Returns ffmpeg's arguments. The first output has the frames, the second one the time of each."""
    most = min(reading.frames or MAX_FRAMES, MAX_FRAMES) + (reading.frames is None)
    given: list[str] = []
    if path.suffix.lower() in _RAW_ENDINGS:
        frame = _raw_format(path, reading)
        given = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-video_size", frame.size, "-framerate", str(frame.rate)]
    scaled = [] if reading.scale is None else ["-vf", "scale={}:{}:flags=bicubic+bitexact".format(*reading.scale)]
    # A capital V excludes cover pictures and thumbnails.
    chosen = ["-map", "0:V:0", *scaled, "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-frames:v", str(most)]
    return [
        # A playlist may name files of other hosts. The module never downloads files.
        *("-protocol_whitelist", "file"),
        # Damage is an error: a decoder would otherwise conceal it with invented pixels.
        *("-xerror", "-err_detect", "explode"),
        *("-max_pixels", str(MAX_SOURCE_PIXELS), *ffmpeg.SINGLE_THREAD),
        *(*given, "-i", ffmpeg.file_url(path)),
        *(*chosen, "-fs", str(MAX_RAW_BYTES + MAX_RAW_BYTES // 8), "-f", "yuv4mpegpipe", ffmpeg.file_url(frames)),
        *(*chosen, "-c:v", "rawvideo", "-enc_time_base", TIME_BASE, "-f", "framecrc", ffmpeg.file_url(times)),
    ]
