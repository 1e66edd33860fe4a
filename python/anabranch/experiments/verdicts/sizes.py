"""Tolerances of figures beside those that the sources print.

A size whose tolerance is narrower than the interval of the samples gets no grade, because such an interval agrees with
nearly any figure.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from anabranch.estimate import Estimate
from anabranch.experiments.verdicts.estimates import ROUNDING, bounds

NEAR_PERCENT = 10.0
"""Tolerance in per cent of the claimed figure by which the measured interval is widened before the comparison."""
NEAR_POINTS = 2.0
"""Minimum tolerance in percentage points, for figures in per cent."""
ABOUT_FACTORS = (0.67, 1.5)
"""Factors of the claimed figure between which the measured mean counts as about as large."""
ABOUT_POINTS = 5.0
"""Percentage points within which a mean counts as about as large in any case, for figures in per cent."""
NEAR_CORRELATION_PERCENT = 5.0
"""`NEAR_PERCENT` of R² and of multiple R."""
ABOUT_CORRELATION = 0.1
"""Distance within which R² and multiple R are about the source's. Factors would admit nearly every R²."""

PERCENT = "%"


class Size(enum.IntEnum):
    """Judgement of the size of a claim by the samples, the worst being the largest."""

    FITS = 0
    ABOUT = 1
    OFF = 2
    WIDE = 3


Band = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Allowed distance from the claimed figure.

    `percent` and `factors` are relative to that figure. `near` and `about` are absolute margins, which apply where they
    are wider; neither exceeds half of the claimed effect. A claimed zero has `resolution`, the step in which the
    measure is printed, in place of all of them.
    """

    percent: float = NEAR_PERCENT
    factors: Band = ABOUT_FACTORS
    near: float = 0.0
    about: float = 0.0
    resolution: float = 0.0

    @classmethod
    def of_unit(cls, unit: str, percent: float = NEAR_PERCENT, resolution: float = 0.0) -> Tolerance:
        """Returns the tolerance of a figure in a unit: percentages have margins in points."""
        near, about = (NEAR_POINTS, ABOUT_POINTS) if unit == PERCENT else (0.0, 0.0)
        return cls(percent, near=near, about=about, resolution=resolution)

    @classmethod
    def of_correlation(cls, percent: float = NEAR_CORRELATION_PERCENT) -> Tolerance:
        """Returns the tolerance of R² and of multiple R."""
        return cls(percent, (1.0, 1.0), about=ABOUT_CORRELATION)

    def near_band(self, low: float, high: float) -> Band:
        """Returns the range that the source prints, widened by the tolerance of a size that is reproduced."""
        margin = self._bounded(self.near, low, high)
        return low - max(margin, abs(low) * self.percent / 100), high + max(margin, abs(high) * self.percent / 100)

    def about_band(self, low: float, high: float) -> Band:
        """Returns the range of means that are about as large as the range that the source prints."""
        margin = self._bounded(self.about, low, high)
        return (
            min(low - margin, *(factor * low for factor in self.factors)),
            max(high + margin, *(factor * high for factor in self.factors)),
        )

    def _bounded(self, margin: float, low: float, high: float) -> float:
        effect = max(abs(low), abs(high))
        return min(margin, effect / 2) if effect else self.resolution


def size_of(ours: Estimate, low: float, high: float, tolerance: Tolerance) -> Size:
    """Compares the measured figure with that of the source, from `low` to `high`, which are equal for a single number.

    The figure fits if the interval overlaps `near_band`, and is about as large if the mean is in `about_band`. Both
    need an interval that is not wider than the band. An interval that is too wide for both bands and contains the
    claimed figure leaves the size undecided. An undefined figure, such as a percentage of zero, has another size than
    any number.
    """
    if math.isnan(ours.mean):
        return Size.OFF
    ends = bounds(ours)
    if ends is None:
        return Size.WIDE
    close = tolerance.near_band(low, high)
    overlaps = _at_most(close[0], ends[1]) and _at_most(ends[0], close[1])
    if overlaps and _narrow(ends, close):
        return Size.FITS
    roughly = tolerance.about_band(low, high)
    if _within(ours.mean, roughly) and _narrow(ends, roughly):
        return Size.ABOUT
    return Size.WIDE if overlaps else Size.OFF


def _narrow(ends: Band, band: Band) -> bool:
    return _at_most(ends[1] - ends[0], band[1] - band[0])


def _within(value: float, band: Band) -> bool:
    return _at_most(band[0], value) and _at_most(value, band[1])


def _at_most(one: float, other: float) -> bool:
    return one <= other + ROUNDING * max(1.0, abs(one), abs(other))
