"""Stills of several runs side by side: a column for each, a row for each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from anabranch.errors import VideoError
from anabranch.video.ffmpeg import INSTALL
from anabranch.video.format import FrameFormat
from anabranch.video.raw import RawFrames, Samples
from anabranch.video.rebuild import black_frame

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_COLUMNS = 12
DEFAULT_ROWS = 3
# Minimum distance between the frames of two rows. Nearer frames show the same damage.
_FRAMES_APART = 30
_MARGIN_PIXELS = 4
_LABEL_PIXELS = 16
# Frames that are narrower are enlarged by whole pixels.
_SMALL_PIXELS = 400


@dataclass(frozen=True)
class Column:
    """Label, and the frame of the decoded clip that is shown at each place; `None` means a black picture."""

    label: str
    shown: Sequence[int | None]


def frames_that_differ(psnr_db: Sequence[npt.NDArray[np.float64]], rows: int = DEFAULT_ROWS) -> list[int]:
    """Returns the frames in which runs differ most in PSNR (or one run is worst), some distance apart, in order."""
    values = np.array(psnr_db)
    spread = values.max(axis=0) - values.min(axis=0) if len(values) > 1 else values.max() - values[0]
    chosen: list[int] = []
    # The sort is stable, so that the first of equal frames is taken.
    for candidate in np.argsort(-spread, kind="stable"):
        if all(abs(int(candidate) - other) >= _FRAMES_APART for other in chosen):
            chosen.append(int(candidate))
        if len(chosen) == rows:
            break
    return sorted(chosen)


def write_stills(path: Path, decoded: RawFrames, columns: Sequence[Column], frames: Sequence[int]) -> None:
    """Writes a PNG with the first `MAX_COLUMNS` columns. Raises `VideoError` if Pillow is missing."""
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise VideoError(f"stills need the package pillow, which is not installed: {INSTALL}") from error
    columns = columns[:MAX_COLUMNS]
    shape = decoded.format
    zoom = 2 if shape.width < _SMALL_PIXELS else 1
    wide, high = shape.width * zoom + _MARGIN_PIXELS, shape.height * zoom + _MARGIN_PIXELS
    grid = Image.new("RGB", (wide * len(columns), _LABEL_PIXELS + (high + _LABEL_PIXELS) * len(frames)), "white")
    pen = ImageDraw.Draw(grid)
    for across, column in enumerate(columns):
        pen.text((across * wide, 1), column.label[: wide // 6], fill="black")
        for down, frame in enumerate(frames):
            top = _LABEL_PIXELS + down * (high + _LABEL_PIXELS)
            still = _image(decoded, column.shown[frame])
            grid.paste(
                still.resize((shape.width * zoom, shape.height * zoom), Image.Resampling.NEAREST), (across * wide, top)
            )
            pen.text((across * wide, top + high), _caption(frame, column.shown[frame]), fill="black")
    grid.save(path, format="PNG")


def _caption(frame: int, shown: int | None) -> str:
    if shown == frame:
        return f"frame {frame}"
    return f"frame {frame}: shows {'black' if shown is None else shown}"


def _image(decoded: RawFrames, shown: int | None) -> Image:
    from PIL import Image

    black = np.frombuffer(black_frame(decoded.format), np.uint8)
    samples = black if shown is None else np.asarray(decoded.samples()[shown])
    return Image.fromarray(rgb(samples, decoded.format))


def rgb(samples: Samples, frame: FrameFormat) -> Samples:
    """Returns a frame as (row, column, colour), by ITU-R BT.601 with a limited range."""
    chroma_shape = (2, frame.height // 2, frame.width // 2)
    luma = (samples[: frame.luma_bytes].reshape(frame.height, frame.width).astype(np.float64) - 16) * 255 / 219
    halves = samples[frame.luma_bytes :].reshape(chroma_shape).astype(np.float64) - 128
    blue, red = (halves * 255 / 224).repeat(2, axis=1).repeat(2, axis=2)
    colours = (luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red, luma + 1.772 * blue)
    return np.stack(colours, axis=-1).round().clip(0, 255).astype(np.uint8)
