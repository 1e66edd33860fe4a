"""Rules for the judgement of claims from samples.

The rules are pure functions of arrays of paired samples. The last axis are the seeds, and samples with the same seed
had the same channel. All intervals are of 95 %, over seeds. If a claim has several comparisons, one of them contradicts
the claim only at the level that makes all of them together 95 % (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from anabranch.estimate import Estimate, decimals, rounded
from anabranch.experiments.verdicts.estimates import CONFIDENCE, ROUNDING, Sample, bounds, complete, estimate, sign
from anabranch.experiments.verdicts.finding import Finding
from anabranch.experiments.verdicts.grades import Direction
from anabranch.experiments.verdicts.sizes import PERCENT, Size, Tolerance, size_of

Relation = Literal["higher", "lower", "about", "not-lower", "not-higher"]

Convention = Literal["of_b", "of_a", "drop"]
"""Divisor of a percentage: 100 |a - b| / b, 100 |a - b| / a, or 100 (first - last) / first with b as the first."""

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
    """Judges whether a is higher or lower than b, or about the same, with a value of both for each seed.

    The direction is that of the mean paired difference. It has the claimed direction if its interval is on the claimed
    side of zero. It is against the claim if the interval is on the other side, or if both are equal in every run.
    `size_of` judges the size from the means, divided as the claim divides them. "About the same" needs the whole
    interval within `within_percent` of b, and "not lower" needs it above the lower end of this range. `family` is the
    number of such comparisons of the claim.
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
        size = Size.FITS if claimed is None else size_of(relative, claimed, claimed, Tolerance.of_unit(PERCENT))
        return Finding(direction, relative, PERCENT, size, detail)
    low = -math.inf if relation == "not-higher" else -within_percent
    high = math.inf if relation == "not-lower" else within_percent
    return Finding(inside(relative, low, high), relative, PERCENT, Size.FITS, detail)


def number(ours: Estimate, low: float, high: float, unit: str, tolerance: Tolerance) -> Finding:
    """Judges whether a figure is as large as the source's, which is between `low` and `high`.

    A number has no direction. The claim is true if the size fits or is about right, and false if the whole interval is
    outside the band of "about right".
    """
    size = size_of(ours, low, high, tolerance)
    detail = ratio(ours.mean, (low + high) / 2)
    if size is Size.OFF:
        against = inside(ours, *tolerance.about_band(low, high)) is Direction.AGAINST
        return Finding(Direction.AGAINST if against else Direction.UNCLEAR, ours, unit, size, detail)
    return Finding(Direction.UNCLEAR if size is Size.WIDE else Direction.HOLDS, ours, unit, size, detail)


def shape(
    sample: Sample,
    positions: Sequence[float],
    direction: str,
    points: Callable[[Sample], Sample],
    relative: bool,
) -> Finding:
    """Judges whether the points of a sample, one for each position, rise or fall.

    The claim is true if both the difference of the ends and the slope of the least-squares line have the claimed sign.
    It is false if one of these has the other sign, or is zero in every run. If a step between neighbours is significant
    in the other direction, only the direction of the claim is reproduced.
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


def gain_sign(both: Sample, gains: Callable[[Sample], Sample], claimed: Sequence[float], largest: int) -> Finding:
    """Judges the signs of the gains at several points.

    The claim is true if the gain at the point `largest`, with the largest gain of the trend, and the mean gain both
    have the claimed sign. A gain of zero in every run has no sign. A gain at another point that is significantly of the
    other sign gives the direction only. A claimed zero has no sign.
    """
    wanted = np.sign(claimed)
    signs = []
    if wanted[largest] != 0:
        signs.append(sign(estimate(partial(_signed_gain, gains, wanted, largest), both)))
    if np.any(wanted):
        signs.append(sign(estimate(lambda each: float(np.mean(wanted * gains(each))), both)))
    confidence = _family_confidence(len(wanted))
    contrary = [
        point
        for point in range(len(wanted))
        if sign(estimate(partial(_signed_gain, gains, wanted, point), both, confidence)) == -1
    ]
    size = Size.OFF if contrary else Size.FITS
    detail = "" if not contrary else f"no gain at point {', '.join(str(point + 1) for point in contrary)}"
    return Finding(_all_of(signs), estimate(lambda each: float(gains(each)[largest]), both), "", size, detail)


def _signed_gain(gains: Callable[[Sample], Sample], wanted: Sample, point: int, sample: Sample) -> float:
    return float(wanted[point] * gains(sample)[point])


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
    """Returns the change of `points` from the first to the last, in percent if it is relative."""

    def difference(each: Sample) -> float:
        values = points(each)
        absolute = float(values[-1] - values[0])
        return _divided(100 * absolute, float(values[0])) if relative else absolute

    return estimate(difference, sample)


def cells(each: Sequence[Finding], average: Finding, share: float) -> Finding:
    """Judges a claim about several cells, of which the `share` has to agree with it.

    Cells are sorted by their verdicts, and the worst of the best `share` decides. If that is not enough, `together`
    judges by the counts and by the average over the cells. The figure is that of the average. A worse cell never gives
    a better verdict.
    """
    count = len(each)
    needed = math.ceil(share * count - ROUNDING)
    ranked = sorted(each, key=lambda finding: finding.verdict.grade.severity or 0)
    decisive = ranked[needed - 1]
    direction, size = together([finding.verdict.grade.direction for finding in each], needed, average.direction)
    if decisive.verdict.grade.direction is Direction.HOLDS:
        size = max(size, decisive.size)
    if direction is Direction.HOLDS:
        size = max(size, average.size)
    holds = sum(finding.direction is Direction.HOLDS for finding in each)
    against = sum(finding.direction is Direction.AGAINST for finding in each)
    detail = f"holds in {holds} of {count} cells, the contrary in {against}"
    alike = [finding for finding in each if finding.unit == average.unit]
    return Finding(direction, average.ours, average.unit, size, detail, widest(alike))


def together(each: Sequence[Direction], needed: int, overall: Direction) -> tuple[Direction, Size]:
    """Judges a claim by the directions of its parts, of which `needed` have to agree, and by the overall direction.

    If too few agree, the claim has its direction only if the overall direction and at least half of the parts agree. It
    is contradicted if too many parts are against it, unless the overall direction agrees and at most half are against
    it.
    """
    holds, against = each.count(Direction.HOLDS), each.count(Direction.AGAINST)
    if holds >= needed:
        return Direction.HOLDS, Size.FITS
    on_the_whole = overall is Direction.HOLDS
    if on_the_whole and 2 * holds >= len(each):
        return Direction.HOLDS, Size.OFF
    if against > len(each) - needed and not (on_the_whole and 2 * against <= len(each)):
        return Direction.AGAINST, Size.FITS
    return Direction.UNCLEAR, Size.FITS


def widest(each: Iterable[Finding]) -> Estimate | None:
    """Returns the widest of the estimates without a clear direction."""
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


def worse_direction(one: Direction, other: Direction) -> Direction:
    """Returns the direction of a claim that consists of two parts: the worse of the parts' directions."""
    return max(one, other, key=(Direction.HOLDS, Direction.UNCLEAR, Direction.AGAINST).index)


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
    """Returns the difference of the first from the second in percent, by the convention.

    The result is negative if the first is smaller.
    """
    a, b = float(pair[0].mean()), float(pair[1].mean())
    return _divided(100 * (a - b), a if convention == "of_a" else b)


def _divided(value: float, by: float) -> float:
    if by == 0:
        return 0.0 if value == 0 else math.nan
    return value / by


def ratio(ours: float, claimed: float) -> str:
    return "" if claimed == 0 or math.isnan(ours) else f"{ours / claimed:.2f} of the claimed"


def _short(sample: Sample) -> str:
    mean = float(sample.mean())
    return rounded(mean, decimals(mean))


def no_value(unit: str) -> Finding:
    return Finding(Direction.UNCLEAR, estimate(lambda each: math.nan, np.empty(0)), unit, detail="no run has a value")
