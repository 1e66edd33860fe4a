"""Sizes beside the paper's: each grade, and the edges of every tolerance."""

from __future__ import annotations

import math
from typing import Any

import pytest

from anabranch.estimate import Estimate, mean_interval
from anabranch.papers.verdicts.finding import Finding
from anabranch.papers.verdicts.grades import Direction, Verdict
from anabranch.papers.verdicts.rules import number
from anabranch.papers.verdicts.sizes import Size, size_of

FITS, ABOUT, OFF, WIDE = Size.FITS, Size.ABOUT, Size.OFF, Size.WIDE


def measured(mean: float, half_width: float = 0.0) -> Estimate:
    """A mean with half of its interval; an exact one if that is zero."""
    if half_width == 0:
        return Estimate(20, mean, math.nan, 0.0, "deterministic")
    return Estimate(20, mean, half_width, half_width * 2, "interval")


def size(mean: float, half_width: float, claimed: float, unit: str = "%", **more: Any) -> Size:
    return size_of(measured(mean, half_width), claimed, claimed, unit, **more)


@pytest.mark.parametrize(
    ("mean", "half_width", "found"),
    [(19.0, 1.0, FITS), (28.0, 1.6, ABOUT), (35.3, 1.7, OFF), (25.0, 9.0, WIDE)],
)
def test_of_nineteen_percent_each_size_can_be_found(mean: float, half_width: float, found: Size) -> None:
    assert size(mean, half_width, 19.0) is found


@pytest.mark.parametrize(
    ("claimed", "near", "beyond"),
    [
        (10.0, 12.0, 12.01),  # two points are more than a tenth
        (10.0, 8.0, 7.99),
        (20.0, 22.0, 22.01),  # here they are the same
        (40.0, 44.0, 44.01),  # a tenth is more than two points
        (40.0, 36.0, 35.99),
        (-40.0, -44.0, -44.01),
        (0.0, 2.0, 2.01),
    ],
)
def test_a_percentage_is_reproduced_within_two_points_or_a_tenth_whichever_is_wider(
    claimed: float, near: float, beyond: float
) -> None:
    assert size(near, 0, claimed) is FITS
    assert size(beyond, 0, claimed) is ABOUT


@pytest.mark.parametrize(
    ("claimed", "inside", "beyond"),
    [
        (6.0, 11.0, 11.01),  # five points are more than half of it
        (6.0, 1.0, 0.99),
        (10.0, 15.0, 15.01),  # here they are the same upwards
        (10.0, 5.0, 4.99),
        (40.0, 60.0, 60.01),  # the factors are wider than five points
        (40.0, 26.8, 26.79),
        (-40.0, -60.0, -60.01),
        (-40.0, -26.8, -26.79),
    ],
)
def test_a_percentage_is_about_as_large_within_five_points_or_the_factors_whichever_is_wider(
    claimed: float, inside: float, beyond: float
) -> None:
    assert size(inside, 0, claimed) is ABOUT
    assert size(beyond, 0, claimed) is OFF


@pytest.mark.parametrize(
    ("mean", "found"),
    [(11.0, FITS), (11.01, ABOUT), (9.0, FITS), (15.0, ABOUT), (15.01, OFF), (6.7, ABOUT), (6.69, OFF)],
)
def test_points_say_nothing_about_what_is_no_percentage(mean: float, found: Size) -> None:
    assert size(mean, 0, 10.0, "s") is found


def test_the_interval_is_what_is_widened() -> None:
    assert size(110.5, 0.5, 100.0, "s") is FITS
    assert size(110.6, 0.5, 100.0, "s") is ABOUT


def test_about_as_large_compares_means_however_far_the_interval_goes() -> None:
    assert size(150.0, 9.0, 100.0, "s") is ABOUT
    assert size(150.1, 9.0, 100.0, "s") is OFF


def test_an_interval_that_is_wider_than_the_tolerance_is_not_taken_for_agreement() -> None:
    assert size(100.0, 10.0, 100.0, "s") is FITS
    assert size(100.0, 10.1, 100.0, "s") is ABOUT
    assert size(100.0, 41.5, 100.0, "s") is ABOUT
    assert size(100.0, 41.6, 100.0, "s") is WIDE


def test_an_interval_that_is_too_wide_but_far_away_is_another_size_all_the_same() -> None:
    assert size(300.0, 60.0, 100.0, "s") is OFF
    assert size(165.0, 60.0, 100.0, "s") is WIDE


def test_what_lies_in_the_interval_that_the_paper_prints_fits() -> None:
    assert size(16.0, 0.5, 12.1, "s") is ABOUT
    assert size(16.0, 0.5, 12.1, "s", printed=(7.74, 16.45)) is FITS
    assert size(16.45, 0.5, 12.1, "s", printed=(7.74, 16.45)) is FITS
    assert size(16.5, 0.2, 12.1, "s", printed=(7.74, 16.45)) is ABOUT
    assert size(12.1, 4.4, 12.1, "s", printed=(7.74, 16.45)) is ABOUT
    # An interval that is narrower than the tolerance takes nothing from it.
    assert size(1090.0, 5.0, 1000.0, "s", printed=(999, 1001)) is FITS


def test_a_narrower_tolerance_can_be_asked_for() -> None:
    assert size(4400.0, 0, 4380.0, "B", within_percent=1.0) is FITS
    assert size(4430.0, 0, 4380.0, "B", within_percent=1.0) is ABOUT


def test_a_range_of_the_paper_is_widened_at_both_ends() -> None:
    def within(mean: float) -> Size:
        return size_of(measured(mean), 100.0, 200.0, "s")

    assert [within(mean) for mean in (90, 150, 220)] == [FITS, FITS, FITS]
    assert [within(mean) for mean in (67, 300)] == [ABOUT, ABOUT]
    assert [within(mean) for mean in (66, 301)] == [OFF, OFF]


def test_one_seed_has_no_interval_and_no_size() -> None:
    assert size_of(mean_interval([19.0]), 19.0, 19.0, "%") is WIDE


def test_a_percentage_of_nothing_has_another_size() -> None:
    assert size_of(mean_interval([math.nan]), 19.0, 19.0, "%") is OFF


@pytest.mark.parametrize(
    ("direction", "of_size", "found"),
    [
        (Direction.HOLDS, FITS, Verdict.REPRODUCED),
        (Direction.HOLDS, ABOUT, Verdict.ABOUT),
        (Direction.HOLDS, OFF, Verdict.DIRECTION_ONLY),
        (Direction.HOLDS, WIDE, Verdict.CANNOT_TELL),
        (Direction.AGAINST, FITS, Verdict.DIFFERS),
        (Direction.UNCLEAR, FITS, Verdict.CANNOT_TELL),
    ],
)
def test_a_size_counts_only_where_the_direction_holds(direction: Direction, of_size: Size, found: Verdict) -> None:
    assert Finding(direction, measured(19.0, 1.0), "%", of_size).verdict is found


@pytest.mark.parametrize(
    ("mean", "half_width", "found"),
    [
        (1050, 20, Verdict.REPRODUCED),
        (1300, 20, Verdict.ABOUT),
        (1600, 20, Verdict.DIFFERS),
        (1510, 20, Verdict.CANNOT_TELL),
        (1000, 500, Verdict.CANNOT_TELL),
    ],
)
def test_a_number_differs_if_its_whole_interval_is_outside(mean: float, half_width: float, found: Verdict) -> None:
    assert number(measured(mean, half_width), 1000, 1000, "s").verdict is found
