"""Clip of photographs over which a camera pans and zooms: natural texture, and the same bytes on every machine.

The photographs are files of scikit-image with free licences: `astronaut` (NASA, public domain), `coffee` (Rachel
Michetti, CC0) and `chelsea` (Stefan van der Walt, CC0). All arithmetic is on integers, because floating point may round
differently on another processor, and change the hash of the bitstream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.errors import VideoError
from anabranch.video.ffmpeg import INSTALL
from anabranch.video.format import FrameFormat
from anabranch.video.raw import Samples

NAMES = ("astronaut.png", "coffee.png", "chelsea.png")

# Positions count 256ths of a pixel of the photograph.
_UNIT = 256
# Number of frames between cuts to the next photograph.
_FRAMES_BETWEEN_CUTS = 250
# Limits of the zoom, in 256ths of the largest window that fits the photograph.
_NARROWEST, _WIDEST = 102, 154
# Half periods of the motions, in frames. They have no common divisor, so that no stretch repeats.
_ZOOM_FRAMES, _ACROSS_FRAMES, _DOWN_FRAMES = 191, 263, 173

_Plane = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Photograph:
    """Luma and chroma of a photograph at full size."""

    planes: tuple[_Plane, _Plane, _Plane]

    @property
    def height(self) -> int:
        return int(self.planes[0].shape[0])

    @property
    def width(self) -> int:
        return int(self.planes[0].shape[1])


@dataclass(frozen=True, slots=True)
class _Window:
    """View of the camera: the corner, and the width of one pixel of the clip, in 256ths of a pixel."""

    left: int
    top: int
    step: int


def photograph_frames(frame: FrameFormat, count: int) -> Iterator[bytes]:
    """Yields `count` frames. Raises `VideoError` if scikit-image or a photograph is missing."""
    photographs = [_read(name) for name in NAMES]
    for number in range(count):
        photograph = photographs[number // _FRAMES_BETWEEN_CUTS % len(photographs)]
        yield _shown(photograph, _window(photograph, frame, number), frame)


def _read(name: str) -> _Photograph:
    try:
        from PIL import Image

        file = resources.files("skimage.data").joinpath(name)
        with file.open("rb") as opened, Image.open(opened) as image:
            pixels = np.asarray(image.convert("RGB")).astype(np.int32)
    except (ImportError, OSError) as error:
        raise VideoError(f"the photographs of scikit-image are missing ({error}): {INSTALL}") from error
    return _Photograph(_yuv(pixels))


def _yuv(pixels: _Plane) -> tuple[_Plane, _Plane, _Plane]:
    """Converts to YUV by ITU-R BT.601 with a limited range, in the usual approximation by 256ths."""
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    return (
        ((66 * red + 129 * green + 25 * blue + 128) >> 8) + 16,
        ((-38 * red - 74 * green + 112 * blue + 128) >> 8) + 128,
        ((112 * red - 94 * green - 18 * blue + 128) >> 8) + 128,
    )


def _window(photograph: _Photograph, frame: FrameFormat, number: int) -> _Window:
    # Interpolation needs the sample right of and below the last one.
    inside_width, inside_height = (photograph.width - 1) * _UNIT, (photograph.height - 1) * _UNIT
    largest = min(inside_width // frame.width, inside_height // frame.height)
    narrow, wide = largest * _NARROWEST // _UNIT, largest * _WIDEST // _UNIT
    step = max(narrow + (wide - narrow) * _triangle(number, _ZOOM_FRAMES) // _ZOOM_FRAMES, 2)
    return _Window(
        (inside_width - step * frame.width) * _triangle(number, _ACROSS_FRAMES) // _ACROSS_FRAMES,
        (inside_height - step * frame.height) * _triangle(number, _DOWN_FRAMES) // _DOWN_FRAMES,
        step,
    )


def _triangle(number: int, half: int) -> int:
    """Returns a triangle wave from 0 to `half` and back."""
    phase = number % (2 * half)
    return phase if phase <= half else 2 * half - phase


def _shown(photograph: _Photograph, window: _Window, frame: FrameFormat) -> bytes:
    # Luma is the mean of four samples, so that fine texture does not flicker as the camera moves.
    luma, *chroma = photograph.planes
    halves = [_mean_of_four(_sampled(luma, window, window.step // 2, 2 * frame.width, 2 * frame.height))]
    halves += [_mean_of_four(_sampled(plane, window, window.step, frame.width, frame.height)) for plane in chroma]
    return b"".join(plane.tobytes() for plane in halves)


def _sampled(plane: _Plane, window: _Window, step: int, width: int, height: int) -> _Plane:
    """Interpolates bilinearly, first down the columns and then along the rows."""
    row, row_part = _positions(window.top, step, height)
    column, column_part = _positions(window.left, step, width)
    down = plane[row] * (_UNIT - row_part)[:, None] + plane[row + 1] * row_part[:, None]
    across: npt.NDArray[Any] = down[:, column] * (_UNIT - column_part) + down[:, column + 1] * column_part
    rounded: _Plane = (across + (1 << 15)) >> 16
    return rounded


def _positions(start: int, step: int, count: int) -> tuple[_Plane, _Plane]:
    """Returns whole pixels and 256ths of the centres of `count` steps."""
    centres = start + step // 2 + step * np.arange(count, dtype=np.int32)
    return centres // _UNIT, centres % _UNIT


def _mean_of_four(plane: _Plane) -> Samples:
    total: _Plane = plane[::2, ::2] + plane[1::2, ::2] + plane[::2, 1::2] + plane[1::2, 1::2]
    return ((total + 2) >> 2).astype(np.uint8)
