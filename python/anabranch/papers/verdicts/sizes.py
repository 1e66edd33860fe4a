"""How far a figure may be from the one that the paper prints.

A percentage may be off by so many points in place of a part of the paper's figure, whichever is wider. No grade is
given for a size whose tolerance is narrower than the interval of the samples: such an interval agrees with nearly
anything.
"""

from __future__ import annotations

import enum
import math

from anabranch.estimate import Estimate
from anabranch.papers.verdicts.estimates import ROUNDING, bounds

NEAR_PERCENT = 10.0
"""By what part of the paper's figure our interval is widened, to hold that figure."""
NEAR_POINTS = 2.0
"""Or by how many points, for percentages."""
ABOUT_FACTORS = (0.67, 1.5)
"""Between which factors of the paper's figure our mean is about as large."""
ABOUT_POINTS = 5.0
"""Or within how many points of it, for percentages."""

PERCENT = "%"


class Size(enum.IntEnum):
    """What the samples say about the size of a claim, the worst being the largest."""

    FITS = 0
    ABOUT = 1
    OFF = 2
    WIDE = 3


Band = tuple[float, float]


def near(low: float, high: float, unit: str, within_percent: float = NEAR_PERCENT) -> Band:
    """The range that the paper prints, widened by the tolerance of a size that is reproduced."""
    return low - _margin(low, unit, within_percent), high + _margin(high, unit, within_percent)


def about(low: float, high: float, unit: str) -> Band:
    """The range of means that are about as large as the range that the paper prints."""
    points = ABOUT_POINTS if unit == PERCENT else 0.0
    return (
        min(low - points, *(factor * low for factor in ABOUT_FACTORS)),
        max(high + points, *(factor * high for factor in ABOUT_FACTORS)),
    )


def size_of(
    ours: Estimate,
    low: float,
    high: float,
    unit: str,
    within_percent: float = NEAR_PERCENT,
    printed: Band | None = None,
) -> Size:
    """How our figure compares with the paper's, which lies from `low` to `high`, the same for a single number.

    It fits if the interval overlaps `near`, or the mean is in the interval that the paper prints; it is about as large
    if the mean is in `about`. Either counts only where our interval is not wider than that range. An interval that is
    too wide for both and holds the paper's figure tells nothing about the size. A figure that there is not, as a
    percentage of zero, has another size than any number.
    """
    if math.isnan(ours.mean):
        return Size.OFF
    ends = bounds(ours)
    if ends is None:
        return Size.WIDE
    close = near(low, high, unit, within_percent)
    holds = _at_most(close[0], ends[1]) and _at_most(ends[0], close[1])
    if holds and _narrow(ends, close):
        return Size.FITS
    if printed is not None and _within(ours.mean, printed) and _narrow(ends, printed):
        return Size.FITS
    roughly = about(low, high, unit)
    if _within(ours.mean, roughly) and _narrow(ends, roughly):
        return Size.ABOUT
    return Size.WIDE if holds else Size.OFF


def _margin(value: float, unit: str, within_percent: float) -> float:
    return max(abs(value) * within_percent / 100, NEAR_POINTS if unit == PERCENT else 0.0)


def _narrow(ends: Band, band: Band) -> bool:
    return _at_most(ends[1] - ends[0], band[1] - band[0])


def _within(value: float, band: Band) -> bool:
    return _at_most(band[0], value) and _at_most(value, band[1])


def _at_most(one: float, other: float) -> bool:
    return one <= other + ROUNDING * max(1.0, abs(one), abs(other))
