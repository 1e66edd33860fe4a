"""Findings, the verdicts that follow from them, and how variants change a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anabranch.estimate import Estimate
from anabranch.experiments.verdicts.grades import Direction, Verdict
from anabranch.experiments.verdicts.power import detectable
from anabranch.experiments.verdicts.sizes import Size

_OF_SIZES = {
    Size.FITS: Verdict.REPRODUCED,
    Size.ABOUT: Verdict.ABOUT,
    Size.OFF: Verdict.DIRECTION_ONLY,
    Size.WIDE: Verdict.CANNOT_TELL,
}
"""The verdict on a claim whose direction holds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the samples say about one comparison, number or trend.

    `ours` is the figure beside the one that the source has, in `unit`. `size` is how large it is beside that;
    `Size.FITS` for a claim without a size. `detail` says in words what the figure does not: the means that were
    compared, a ratio, steps against a trend. `undecided` is the figure, in the same unit, whose interval is too wide,
    where that is not `ours`.
    """

    direction: Direction
    ours: Estimate
    unit: str
    size: Size = Size.FITS
    detail: str = ""
    undecided: Estimate | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from it alone."""
        if self.direction is Direction.AGAINST:
            return Verdict.DIFFERS
        if self.direction is Direction.UNCLEAR:
            return Verdict.CANNOT_TELL
        return _OF_SIZES[self.size]

    @property
    def detectable(self) -> float | None:
        """The least difference that the seeds would detect, if the width of an interval keeps this undecided."""
        wide = self.undecided or self.ours
        if self.verdict is not Verdict.CANNOT_TELL or wide.kind != "interval":
            return None
        return detectable(wide.std, wide.n)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the findings that a claim is made of, under a name such as that of a scheme."""

    label: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a claim under one setting, and what it rests on. `detail` says why there are no parts."""

    verdict: Verdict
    parts: tuple[Part, ...] = ()
    detail: str = ""

    @property
    def direction(self) -> Direction:
        """What it says about the direction."""
        return self.verdict.grade.direction


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a claim of several parts, which is as good as the worst of them."""
    return max(verdicts, key=_severity, default=Verdict.CANNOT_TELL)


def _severity(verdict: Verdict) -> int:
    severity = verdict.grade.severity
    if severity is None:
        raise ValueError(f"{verdict} is no verdict on a part of a claim")
    return severity


def decided(default: Judgement, variants: Mapping[str, Judgement]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict in view of variants, and those variants on which it depends.

    What holds with one plausible value and not with another cannot be told. A variant that cannot tell changes nothing,
    nor does one in which only the size differs.
    """
    directions = {name: variant.direction for name, variant in variants.items()}
    told = {default.direction, *directions.values()} - {Direction.UNCLEAR}
    if default.verdict.grade.settled or len(told) < 2:
        return default.verdict, ()
    other = {*told} - {default.direction}
    return Verdict.CANNOT_TELL, tuple(name for name, direction in directions.items() if direction in other)
