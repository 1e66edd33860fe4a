"""Second implementation of the rules of verdicts for `recompute_verdicts.py`: samples in, verdicts out.

A sample is an array whose last axis is the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats: TypeAlias = NDArray[np.float64]
Band: TypeAlias = tuple[float, float]
Claim: TypeAlias = Mapping[str, Any]

REPRODUCED, ABOUT, DIRECTION, CANNOT, DIFFERS = "reproduced", "about", "direction only", "cannot tell", "differs"
WORSE = [REPRODUCED, ABOUT, DIRECTION, CANNOT, DIFFERS]
SIDES = {REPRODUCED: "for", ABOUT: "for", DIRECTION: "for", DIFFERS: "against"}
WANTED = {"higher": 1, "lower": -1, "rising": 1, "falling": -1}
ROUNDING = 1e-9


@dataclass(frozen=True)
class Interval:
    """Figure with its interval. `known` is false for a figure of one seed."""

    value: float
    low: float
    high: float
    known: bool

    def sign(self) -> int | None:
        if not self.known:
            return None
        if self.low == self.high:
            return int(np.sign(self.value))
        return 1 if self.low > 0 else -1 if self.high < 0 else None

    def against(self, low: float, high: float) -> str:
        """Returns `for` if it lies wholly inside, `against` if wholly outside, and `unclear` otherwise."""
        if not self.known or np.isnan(self.low):
            return "unclear"
        if low <= self.low and self.high <= high:
            return "for"
        return "against" if self.high < low or self.low > high else "unclear"


@dataclass(frozen=True)
class Found:
    """Result of one comparison: for, against or unclear, and the grade of its size."""

    side: str
    size: str = REPRODUCED

    @property
    def verdict(self) -> str:
        return {"for": self.size, "against": DIFFERS, "unclear": CANNOT}[self.side]


def interval(statistic: Callable[[Floats], Any], values: Floats, confidence: float = 0.95) -> Interval:
    """Returns a statistic with its interval by the jackknife over the last axis."""
    n = values.shape[-1]
    whole = statistic(values) if n else np.nan
    if n < 2 or np.isnan(whole):
        return Interval(whole, np.nan, np.nan, False)
    others = np.array([statistic(values[..., np.arange(n) != left]) for left in range(n)])
    pseudo = n * whole - (n - 1) * others
    largest = np.abs(values).max()
    if np.ptp(pseudo) <= ROUNDING * (n - 1) * max(abs(whole), np.nanmax(np.abs(others)), 1e-3 * largest):
        exact = 0.0 if abs(whole) <= ROUNDING * largest else whole
        return Interval(exact, exact, exact, True)
    pseudo = pseudo[~np.isnan(pseudo)]
    half = stats.t.isf((1 - confidence) / 2, len(pseudo) - 1) * stats.sem(pseudo)
    return Interval(whole, whole - half, whole + half, True)


@dataclass(frozen=True)
class Margins:
    """Allowed distance of a figure from the paper's: a percentage and factors of it, and absolute margins.

    For a claimed zero the margin is the step in which the figure is printed.
    """

    part: float = 10.0
    factors: Band = (0.67, 1.5)
    near: float = 0.0
    about: float = 0.0
    step: float = 0.0

    def bands(self, low: float, high: float) -> tuple[Band, Band]:
        effect = max(abs(low), abs(high))
        near, about = (min(each, effect / 2) if effect else self.step for each in (self.near, self.about))
        least, most = self.factors
        return (
            (low - max(near, abs(low) * self.part / 100), high + max(near, abs(high) * self.part / 100)),
            (min(low - about, least * low, most * low), max(high + about, least * high, most * high)),
        )


def margins(unit: str, part: float = 10.0, step: float = 0.0) -> Margins:
    return Margins(part, near=2.0, about=5.0, step=step) if unit == "%" else Margins(part, step=step)


def correlation_margins(part: float = 5.0) -> Margins:
    """Returns the margins of R² and multiple R."""
    return Margins(part, (1.0, 1.0), about=0.1)


def size(ours: Interval, low: float, high: float, allowed: Margins) -> str:
    """Returns the grade of a size. The paper's figure lies from `low` to `high`."""
    if np.isnan(ours.value):
        return DIRECTION
    if not ours.known:
        return CANNOT
    near, about = allowed.bands(low, high)

    def narrow(band: Band) -> bool:
        return smaller(ours.high - ours.low, band[1] - band[0])

    overlaps = smaller(near[0], ours.high) and smaller(ours.low, near[1])
    if overlaps and narrow(near):
        return REPRODUCED
    if smaller(about[0], ours.value) and smaller(ours.value, about[1]) and narrow(about):
        return ABOUT
    return CANNOT if overlaps else DIRECTION


def smaller(one: float, other: float) -> bool:
    return one <= other + ROUNDING * max(1.0, abs(one), abs(other))


def number(ours: Interval, claim: Claim, allowed: Margins) -> Found:
    """Judges a number, which has no direction of its own."""
    low, high = min(ends := listed(claim["value"])), max(ends)
    grade = size(ours, low, high, allowed)
    if grade != DIRECTION:
        return Found("unclear" if grade == CANNOT else "for", grade)
    _, around = allowed.bands(low, high)
    return Found("against" if ours.against(*around) == "against" else "unclear", grade)


def percentage(pair: Floats, convention: str = "of_b") -> float:
    a, b = float(pair[0].mean()), float(pair[1].mean())
    by = a if convention == "of_a" else b
    return 100 * (a - b) / by if by else (0.0 if a == b else np.nan)


def compare(a: Floats, b: Floats, claim: Claim, cells: int = 1) -> Found:
    """Compares one quantity with another, seed by seed."""
    pair = whole(np.stack([a, b]))
    if not pair.shape[-1]:
        return Found("unclear")
    relation, convention = claim["relation"], claim.get("convention", "of_b")
    relative = interval(lambda each: percentage(each, convention), pair)
    if relation in ("higher", "lower"):
        wanted = WANTED[relation]
        percent = claim.get("percent") if cells == 1 else None
        grade = size(relative, wanted * percent, wanted * percent, margins("%")) if percent else REPRODUCED
        return Found(claimed_side(pair, wanted, cells), grade)
    within = claim.get("within_percent", 5.0)
    low = -np.inf if relation == "not-higher" else -within
    return Found(relative.against(low, np.inf if relation == "not-lower" else within))


def claimed_side(pair: Floats, wanted: int, cells: int) -> str:
    def difference(each: Floats) -> float:
        return float((each[0] - each[1]).mean())

    found = interval(difference, pair).sign()
    if found == wanted:
        return "for"
    if found and cells > 1:
        found = interval(difference, pair, 1 - 0.05 / cells).sign()
    return "unclear" if found is None else "against"


def whole(values: Floats) -> Floats:
    """Returns the values without the seeds of which any value is missing."""
    return values[..., ~np.isnan(values).reshape(-1, values.shape[-1]).any(axis=0)]


def shape(values: Floats, positions: Sequence[float], wanted: int, points: Callable[[Floats], Floats]) -> Found:
    """Judges whether the result of `points` on the samples rises (1) or falls (-1)."""
    if not values.shape[-1]:
        return Found("unclear")
    centred = np.array(positions, dtype=float) - np.mean(positions)
    signs = [
        interval(lambda each: wanted * (points(each)[-1] - points(each)[0]), values).sign(),
        interval(lambda each: wanted * float(centred @ points(each)), values).sign(),
    ]
    level = 1 - 0.05 / max(len(positions) - 1, 1)

    def step(at: int, each: Floats) -> float:
        found = points(each)
        return float(wanted * (found[at + 1] - found[at]))

    steps = [interval(partial(step, at), values, level).sign() for at in range(len(positions) - 1)]
    if -1 in signs or 0 in signs:
        return Found("against")
    return Found("for" if signs == [1, 1] else "unclear", DIRECTION if -1 in steps else REPRODUCED)


def gain_signs(both: Floats, gains: Callable[[Floats], Floats], claimed: Sequence[float], largest: int) -> Found:
    """Judges the signs of gains: the one that is claimed to be largest and the mean must have the claimed sign.

    No other gain may have the opposite sign.
    """
    wanted = np.sign(claimed)

    def signed(at: int, each: Floats) -> float:
        return float(wanted[at] * gains(each)[at])

    signs = [interval(partial(signed, largest), both).sign()] if wanted[largest] else []
    if wanted.any():
        signs.append(interval(lambda each: float(np.mean(wanted * gains(each))), both).sign())
    level = 1 - 0.05 / len(wanted)
    others = [interval(partial(signed, at), both, level).sign() for at in range(len(wanted))]
    if -1 in signs or 0 in signs:
        return Found("against")
    return Found("for" if set(signs) <= {1} else "unclear", DIRECTION if -1 in others else REPRODUCED)


def together(sides: Sequence[str], needed: int, overall: str) -> Found:
    """Judges a claim of several parts, of which at least `needed` have to be true."""
    counts = {side: list(sides).count(side) for side in ("for", "against")}
    if counts["for"] >= needed:
        return Found("for")
    if overall == "for" and counts["for"] >= len(sides) / 2:
        return Found("for", DIRECTION)
    too_many = counts["against"] > len(sides) - needed
    return Found("against" if too_many and (overall != "for" or counts["against"] > len(sides) / 2) else "unclear")


def line(statistic: str, positions: Sequence[float], curve: Floats) -> float:
    """Returns a figure of the least-squares line through the means of a curve."""
    means = curve.mean(axis=-1)
    slope, intercept = np.polyfit(positions, means, 1)
    correlation = np.corrcoef(positions, means)[0, 1]
    found = {"slope": slope, "intercept": intercept, "r2": correlation**2, "multiple_r": abs(correlation)}
    return float(found[statistic])


def flat(curve: Floats, within: float) -> Found:
    if not curve.shape[-1]:
        return Found("unclear")
    sides = {
        compare(point, curve.mean(axis=0), {"relation": "about", "within_percent": within}).side for point in curve
    }
    return Found("against" if "against" in sides else "for" if sides == {"for"} else "unclear")


def listed(value: Any) -> list[Any]:
    """Returns a list of one or several values."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
