"""Times of a clip's frames: a constant rate if the times fit one, and otherwise the time of each frame."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_FRAMES

# Unit of ffmpeg's times.
TIME_BASE = "1:1000000"
# Containers round times to the millisecond.
_ROUNDING_US = 1000
_LARGEST_DENOMINATOR = 10_000
_NO_TIME = -(1 << 63)
_LONGEST_LINE_CHARACTERS = 256
_TIME_FIELD = 2


@dataclass(frozen=True, slots=True)
class Timing:
    """Rate of a clip, and the times of its frames if they do not follow from it."""

    rate: Fraction
    times_us: tuple[int, ...] | None = None


def read_timing(path: Path, nominal: Fraction, name: str) -> Timing:
    """Reads the times that ffmpeg wrote in its format `framecrc`. `nominal` is the rate in the container."""
    times = _times(path, name)
    if len(times) < 2 or _NO_TIME in times:
        return Timing(nominal)
    times_us = tuple(time - times[0] for time in times)
    if _is_constant(times_us, nominal):
        return Timing(nominal)
    if times_us[-1] <= 0:
        raise VideoError(f"{name}: the times of its frames do not go forward: repair it, or give --rate")
    mean = Fraction((len(times_us) - 1) * 1_000_000, times_us[-1]).limit_denominator(_LARGEST_DENOMINATOR)
    return Timing(mean) if mean > 0 and _is_constant(times_us, mean) else Timing(max(mean, _least()), times_us)


def _least() -> Fraction:
    return Fraction(1, _LARGEST_DENOMINATOR)


def _times(path: Path, name: str) -> list[int]:
    times: list[int] = []
    try:
        with path.open(encoding="ascii") as file:
            while line := file.readline(_LONGEST_LINE_CHARACTERS):
                if line.startswith("#"):
                    continue
                times.append(int(line.split(",")[_TIME_FIELD]))
                if len(times) > MAX_FRAMES:
                    break
    except (OSError, ValueError, IndexError) as error:
        raise VideoError(f"{name}: the times of its frames cannot be read: {error}") from error
    return times


def _is_constant(times_us: tuple[int, ...], rate: Fraction) -> bool:
    """Returns `True` if the time of each frame fits the rate."""
    interval_us = 1_000_000 / rate
    return all(abs(time - place * interval_us) <= _ROUNDING_US for place, time in enumerate(times_us))
