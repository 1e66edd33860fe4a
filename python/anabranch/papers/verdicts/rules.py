"""The rules by which samples decide about claims.

Pure functions over arrays of paired samples, whose last axis are the seeds: index by index, runs with one seed met the
same channel. All intervals are of 95 %, over seeds. Where several comparisons stand for one claim, one of them speaks
against it only if it does so at the level that makes all of them together 95 % (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from anabranch.estimate import Estimate, decimals, rounded
from anabranch.papers.verdicts.estimates import CONFIDENCE, ROUNDING, Sample, bounds, complete, estimate, sign
from anabranch.papers.verdicts.finding import Finding
from anabranch.papers.verdicts.grades import Direction
from anabranch.papers.verdicts.sizes import NEAR_PERCENT, PERCENT, Band, Size, about, size_of

Relation = Literal["higher", "lower", "about", "not-lower", "not-higher"]

Convention = Literal["of_b", "of_a", "drop"]
"""What a percentage divides by: 100 |a - b| / b, 100 |a - b| / a, or 100 (first - last) / first with b as the first."""

_SIGNS = {"higher": 1, "lower": -1, "rising": 1, "falling": -1}


def compare(
    a: Sample,
    b: Sample,
    relation: Relation,
    percent: float | None = None,
    convention: Convention = "of_b",
    within_percent: float = 5.0,
    family: int = 1,
) -> Finding:
    """a is higher or lower than b, or about the same, seed by seed.

    `a` and `b` have a value for each seed. The direction is that of the mean paired difference: it holds if its
    interval is on the claimed side of zero, and does not if it is on the other side, or if both are the same in every
    run. The size is that of the means, as the paper divides them, and is told by `size_of`. About the same is what lies
    within `within_percent` of b with its whole interval; not lower, what lies above the lower end of that.
    `family` is how many such comparisons stand for the claim.
    """
    a, b = complete(a, b)
    if a.shape[-1] == 0:
        return no_value(PERCENT)
    both = np.stack([a, b])
    relative = estimate(lambda each: percent_above(each, convention), both)
    detail = f"{_short(a)} against {_short(b)}"
    if relation in ("higher", "lower"):
        direction = _claimed_sign(_difference, both, _SIGNS[relation], family)
        claimed = None if percent is None else _SIGNS[relation] * percent
        size = Size.FITS if claimed is None else size_of(relative, claimed, claimed, PERCENT)
        return Finding(direction, relative, PERCENT, size, detail)
    low = -math.inf if relation == "not-higher" else -within_percent
    high = math.inf if relation == "not-lower" else within_percent
    return Finding(inside(relative, low, high), relative, PERCENT, Size.FITS, detail)


def number(
    ours: Estimate,
    low: float,
    high: float,
    unit: str,
    within_percent: float = NEAR_PERCENT,
    printed: Band | None = None,
) -> Finding:
    """A figure is as large as the paper's, which lies from `low` to `high`; `printed` is the paper's own interval.

    A number has no direction: it holds if its size fits or is about right, and does not if its whole interval is
    outside what is about right.
    """
    size = size_of(ours, low, high, unit, within_percent, printed)
    detail = ratio(ours.mean, (low + high) / 2)
    if size is Size.OFF:
        against = inside(ours, *about(low, high, unit)) is Direction.AGAINST
        return Finding(Direction.AGAINST if against else Direction.UNCLEAR, ours, unit, size, detail)
    return Finding(Direction.UNCLEAR if size is Size.WIDE else Direction.HOLDS, ours, unit, size, detail)


def shape(
    sample: Sample,
    positions: Sequence[float],
    direction: str,
    points: Callable[[Sample], Sample],
    relative: bool,
) -> Finding:
    """What `points` makes of a sample, one value for each position, rises or falls.

    It does if both the difference of the ends and the slope of the least-squares line have the claimed sign; it does
    not if one of them has the other one, or is zero in every run. A step between neighbours that goes significantly
    the other way leaves the direction only; noise does not.
    """
    unit = PERCENT if relative else "points"
    if sample.shape[-1] == 0:
        return no_value(unit)
    if relative and points(sample)[0] == 0:
        relative, unit = False, "from 0 on"
    wanted = _SIGNS[direction]
    centred = np.asarray(positions, dtype=float) - float(np.mean(positions))
    signs = [
        sign(estimate(lambda each: wanted * float(points(each)[-1] - points(each)[0]), sample)),
        sign(estimate(lambda each: wanted * float(centred @ points(each)), sample)),
    ]
    contrary = _contrary_steps(sample, points, wanted, len(positions) - 1)
    detail = "" if not contrary else f"against it: step {', '.join(str(step + 1) for step in contrary)}"
    size = Size.OFF if contrary else Size.FITS
    return Finding(_all_of(signs), change(sample, points, relative), unit, size, detail)


def _contrary_steps(sample: Sample, points: Callable[[Sample], Sample], wanted: int, steps: int) -> list[int]:
    confidence = _family_confidence(steps)
    found = []
    for step in range(steps):
        if sign(estimate(partial(_step, points, wanted, step), sample, confidence)) == -1:
            found.append(step)
    return found


def _step(points: Callable[[Sample], Sample], wanted: int, step: int, sample: Sample) -> float:
    values = points(sample)
    return wanted * float(values[step + 1] - values[step])


def change(sample: Sample, points: Callable[[Sample], Sample], relative: bool) -> Estimate:
    """The change of `points` from the first to the last, in percent if it is relative."""

    def difference(each: Sample) -> float:
        values = points(each)
        absolute = float(values[-1] - values[0])
        return _divided(100 * absolute, float(values[0])) if relative else absolute

    return estimate(difference, sample)


def cells(each: Sequence[Finding], average: Finding, share: float) -> Finding:
    """A claim that is made in several cells, of which it has to hold in the `share`.

    It holds if it does in so many of them. If more than the rest speak against it, it holds in its direction only, if
    at least their average does, and else not at all. The figure is that of the average.
    """
    count = len(each)
    holds = sum(finding.direction is Direction.HOLDS for finding in each)
    against = sum(finding.direction is Direction.AGAINST for finding in each)
    detail = f"holds in {holds} of {count} cells, the contrary in {against}"
    enough = holds >= share * count - ROUNDING
    if against > (1 - share) * count + ROUNDING:
        on_average = average.direction is Direction.HOLDS
        direction, size = (Direction.HOLDS, Size.OFF) if on_average else (Direction.AGAINST, Size.FITS)
    else:
        direction = Direction.HOLDS if enough else Direction.UNCLEAR
        size = max(finding.size for finding in (average, *each))
    alike = [finding for finding in each if finding.unit == average.unit]
    return Finding(direction, average.ours, average.unit, size, detail, widest(alike))


def widest(each: Iterable[Finding]) -> Estimate | None:
    """Of the figures that are too wide to tell a direction, the widest."""
    wide = [finding.ours for finding in each if finding.direction is Direction.UNCLEAR]
    return max((ours for ours in wide if ours.kind == "interval"), key=lambda ours: ours.std, default=None)


def _difference(pair: Sample) -> float:
    return float((pair[0] - pair[1]).mean())


def _claimed_sign(statistic: Callable[[Sample], float], sample: Sample, wanted: int, family: int) -> Direction:
    found = sign(estimate(statistic, sample))
    if found == wanted:
        return Direction.HOLDS
    if found is None:
        return Direction.UNCLEAR
    if found != 0 and family > 1:
        found = sign(estimate(statistic, sample, _family_confidence(family)))
    return Direction.UNCLEAR if found is None else Direction.AGAINST


def _family_confidence(members: int) -> float:
    return 1 - (1 - CONFIDENCE) / max(members, 1)


def _all_of(signs: Sequence[int | None]) -> Direction:
    if any(found in (-1, 0) for found in signs):
        return Direction.AGAINST
    return Direction.HOLDS if all(found == 1 for found in signs) else Direction.UNCLEAR


def inside(ours: Estimate, low: float, high: float) -> Direction:
    ends = bounds(ours)
    if ends is None or math.isnan(ends[0]):
        return Direction.UNCLEAR
    if low <= ends[0] and ends[1] <= high:
        return Direction.HOLDS
    return Direction.AGAINST if ends[1] < low or ends[0] > high else Direction.UNCLEAR


def percent_above(pair: Sample, convention: Convention = "of_b") -> float:
    """How far the first is above the second, in percent of what the convention says: below zero if it is below."""
    a, b = float(pair[0].mean()), float(pair[1].mean())
    return _divided(100 * (a - b), a if convention == "of_a" else b)


def _divided(value: float, by: float) -> float:
    if by == 0:
        return 0.0 if value == 0 else math.nan
    return value / by


def ratio(ours: float, claimed: float) -> str:
    return "" if claimed == 0 or math.isnan(ours) else f"{ours / claimed:.2f} of the paper's"


def _short(sample: Sample) -> str:
    mean = float(sample.mean())
    return rounded(mean, decimals(mean))


def no_value(unit: str) -> Finding:
    return Finding(Direction.UNCLEAR, estimate(lambda each: math.nan, np.empty(0)), unit, detail="no run has a value")
