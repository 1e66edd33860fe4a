"""What comes of checking a claim."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from anabranch.statistics import Estimate


class Verdict(enum.Enum):
    """What becomes of a claim."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    DIFFERS = "differs"
    CONTRADICTORY = "contradictory in the paper"
    CANNOT_TELL = "cannot tell"
    OPEN = "open: needs video"


class Direction(enum.Enum):
    """What the samples say about the direction of a claim, or, for a number, whether it lies in its band."""

    HOLDS = "holds"
    AGAINST = "against"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Finding:
    """What the samples say about one comparison, number or trend.

    `ours` is the figure beside the one that the paper has, in `unit`. `size_fits` says whether it is about as large;
    `True` for a claim without a size. `detail` says in words what the figure does not: the means that were compared,
    a ratio, steps against a trend.
    """

    direction: Direction
    ours: Estimate
    unit: str
    size_fits: bool = True
    detail: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from it alone."""
        if self.direction is Direction.AGAINST:
            return Verdict.DIFFERS
        if self.direction is Direction.UNCLEAR:
            return Verdict.CANNOT_TELL
        return Verdict.REPRODUCED if self.size_fits else Verdict.DIRECTION_ONLY


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
        if self.verdict in (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY):
            return Direction.HOLDS
        return Direction.AGAINST if self.verdict is Verdict.DIFFERS else Direction.UNCLEAR
