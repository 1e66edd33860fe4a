"""Grades of claims, in one table for rules, pages, figures and tests.

This module imports the standard library only, so that the figures of the book can use it without the package.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Direction(enum.Enum):
    """Result of the samples about the direction of a claim, or about the band of a number."""

    HOLDS = "holds"
    AGAINST = "against"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Grade:
    """Properties of a verdict.

    `symbol` distinguishes verdicts without colours. `light` and `dark` are the colours on a page of that kind, as
    `#rrggbb`. `severity` orders the verdicts of parts of a claim, and the worst has the largest; it is `None` for
    verdicts on whole claims only. A `settled` verdict does not depend on variants. `when` is Markdown.
    """

    symbol: str
    light: str
    dark: str
    direction: Direction
    severity: int | None
    settled: bool
    when: str


class Verdict(enum.Enum):
    """Verdict on a claim, with its name as the value. Members are in the order of display."""

    _value_: str
    grade: Grade

    def __new__(cls, name: str, grade: Grade) -> Verdict:
        verdict = object.__new__(cls)
        verdict._value_ = name
        verdict.grade = grade
        return verdict

    REPRODUCED = (
        "reproduced",
        Grade(
            symbol="✓",
            light="#0b6e4f",
            dark="#4fd1a5",
            direction=Direction.HOLDS,
            severity=0,
            settled=False,
            when="the direction holds, and so does the size if one is claimed: the claimed figure lies in our interval "
            "widened by 10 % of it or by 2 points",
        ),
    )
    ABOUT = (
        "about",
        Grade(
            symbol="≈",
            light="#3f6212",
            dark="#b5d86b",
            direction=Direction.HOLDS,
            severity=1,
            settled=False,
            when="the direction holds, and our mean is 0.67 to 1.5 times the claimed figure, or within 5 points of it",
        ),
    )
    DIRECTION_ONLY = (
        "direction only",
        Grade(
            symbol="◐",
            light="#7a5c00",
            dark="#e6c34a",
            direction=Direction.HOLDS,
            severity=2,
            settled=False,
            when="the direction holds, the size does not; for trends, orders and claims about several cells: on the "
            "whole, but not in each part",
        ),
    )
    DIFFERS = (
        "differs",
        Grade(
            symbol="✗",
            light="#b3261e",
            dark="#ff8a80",
            direction=Direction.AGAINST,
            severity=4,
            settled=False,
            when="the opposite holds; for numbers: our whole interval lies outside what would be *about*",
        ),
    )
    CONTRADICTORY = (
        "contradictory",
        Grade(
            symbol="≠",
            light="#7b3fa0",
            dark="#cfa3f0",
            direction=Direction.UNCLEAR,
            severity=None,
            settled=True,
            when="the source contradicts itself or misprints: status `inconsistent`, `misprint`, or `suspect` with "
            "rank X. The result of our runs is shown",
        ),
    )
    CANNOT_TELL = (
        "cannot tell",
        Grade(
            symbol="?",
            light="#4f5b66",
            dark="#b3bdc7",
            direction=Direction.UNCLEAR,
            severity=3,
            settled=False,
            when="our interval is too wide to decide the direction, or wider than the tolerance of the size while it "
            "contains the claimed figure; or it depends on something that the source leaves open",
        ),
    )
    OPEN = (
        "open: needs video",
        Grade(
            symbol="○",
            light="#0a58b0",
            dark="#86b9ff",
            direction=Direction.UNCLEAR,
            severity=None,
            settled=True,
            when="nothing here can judge it yet",
        ),
    )

    @property
    def key(self) -> str:
        """Verdict as a word in addresses and style sheets: `direction-only`."""
        return "-".join("".join(letter if letter.isalnum() else " " for letter in self.value).split())
