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
"""Verdicts on a claim with the claimed direction, by size."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of the samples for one comparison, number or trend.

    `ours` is the measured figure in `unit`, which `size` compares with the figure of the source. `size` is `Size.FITS`
    for a claim without a size. `detail` contains further numbers in words: the compared means, a ratio, steps against a
    trend. `undecided` is the figure whose interval is too wide, in the same unit, if this figure is not `ours`.
    """

    direction: Direction
    ours: Estimate
    unit: str
    size: Size = Size.FITS
    detail: str = ""
    undecided: Estimate | None = None

    @property
    def verdict(self) -> Verdict:
        """Verdict that follows from this finding alone."""
        if self.direction is Direction.AGAINST:
            return Verdict.DIFFERS
        if self.direction is Direction.UNCLEAR:
            return Verdict.CANNOT_TELL
        return _OF_SIZES[self.size]

    @property
    def detectable(self) -> float | None:
        """Smallest difference that the seeds would detect, if a wide interval leaves this undecided."""
        wide = self.undecided or self.ours
        if self.verdict is not Verdict.CANNOT_TELL or wide.kind != "interval":
            return None
        return detectable(wide.std, wide.n)


@dataclass(frozen=True, slots=True)
class Part:
    """One finding of a claim, with a name, for example that of a scheme."""

    label: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a claim under one setting with its parts. `detail` contains the reason if there are no parts."""

    verdict: Verdict
    parts: tuple[Part, ...] = ()
    detail: str = ""

    @property
    def direction(self) -> Direction:
        """Direction that follows from the verdict."""
        return self.verdict.grade.direction


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the verdict on a claim of several parts, which is that of the worst part."""
    return max(verdicts, key=_severity, default=Verdict.CANNOT_TELL)


def _severity(verdict: Verdict) -> int:
    severity = verdict.grade.severity
    if severity is None:
        raise ValueError(f"{verdict} is not a verdict on a part of a claim")
    return severity


def decided(default: Judgement, variants: Mapping[str, Judgement]) -> tuple[Verdict, tuple[str, ...]]:
    """Returns the verdict in view of variants, and the variants on which it depends.

    A claim that is true for one plausible value and false for another is undecided. A variant does not affect the
    verdict if it is undecided, or differs in size only.
    """
    directions = {name: variant.direction for name, variant in variants.items()}
    told = {default.direction, *directions.values()} - {Direction.UNCLEAR}
    if default.verdict.grade.settled or len(told) < 2:
        return default.verdict, ()
    other = {*told} - {default.direction}
    return Verdict.CANNOT_TELL, tuple(name for name, direction in directions.items() if direction in other)
