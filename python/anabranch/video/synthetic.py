"""Synthetic clip: discs and a patch of noise that move over a gradient. It needs no file, and no floating point."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from anabranch.video.format import FrameFormat
from anabranch.video.raw import Samples

_Plane = npt.NDArray[np.int64]

# Speed across and down in pixels per frame, luma, and the two samples of chroma of each disc.
_DISCS = ((3, 1, 210, 90, 160), (-2, 2, 60, 170, 110), (1, -3, 130, 110, 190))
# Motion of the gradient for each frame, in units of its luma.
_GRADIENT_SPEED = 2
_LIMITED_RANGE = (16, 235)


def synthetic_frames(frame: FrameFormat, count: int) -> Iterator[bytes]:
    """Yields `count` frames."""
    rows, columns = np.mgrid[0 : frame.height, 0 : frame.width]
    noise = _noise(frame)
    for number in range(count):
        yield _frame(frame, rows, columns, noise, number)


def _noise(frame: FrameFormat) -> _Plane:
    """Returns values from -16 to 15 by a multiplicative hash of the position. The constants are large primes."""
    rows, columns = np.mgrid[0 : frame.height, 0 : frame.width].astype(np.uint64)
    mixed = rows * np.uint64(0x9E3779B1) + columns * np.uint64(0x85EBCA77)
    mixed = ((mixed ^ (mixed >> np.uint64(15))) * np.uint64(0x27D4EB2F)) & np.uint64(0xFFFFFFFF)
    noise: _Plane = ((mixed >> np.uint64(20)) & np.uint64(31)).astype(np.int64) - 16
    return noise


def _frame(frame: FrameFormat, rows: _Plane, columns: _Plane, noise: _Plane, number: int) -> bytes:
    shade = (columns * 2 + rows + _GRADIENT_SPEED * number) % 256
    luma = 64 + np.where(shade < 128, shade, 255 - shade)
    # One band has noise, and moves sideways.
    band = rows // (frame.height // 4) == 1
    luma = np.where(band, luma + np.roll(noise, number, axis=1), luma)
    blue, red = np.full_like(luma, 128), np.full_like(luma, 128)
    for index, (across, down, grey, first, second) in enumerate(_DISCS):
        inside = _disc(frame, rows, columns, (index + 1) * frame.width // 4 + across * number, down * number)
        luma = np.where(inside, grey + noise // 4, luma)
        blue, red = np.where(inside, first, blue), np.where(inside, second, red)
    planes = (luma.clip(*_LIMITED_RANGE), blue[::2, ::2], red[::2, ::2])
    return b"".join(_bytes(plane) for plane in planes)


def _disc(frame: FrameFormat, rows: _Plane, columns: _Plane, across: int, down: int) -> npt.NDArray[np.bool_]:
    """Returns the mask of a disc around this point. Its part beyond one side of the frame appears at the other."""
    away_x = (columns - across + frame.width // 2) % frame.width - frame.width // 2
    away_y = (rows - down) % frame.height - frame.height // 2
    radius = min(frame.width, frame.height) // 6
    inside: npt.NDArray[np.bool_] = away_x**2 + away_y**2 <= radius**2
    return inside


def _bytes(plane: _Plane) -> bytes:
    samples: Samples = plane.astype(np.uint8)
    return samples.tobytes()
