"""Sizes beside the paper's: each grade, and the edges of every tolerance."""

from __future__ import annotations

import math
from typing import Any

import pytest
from papers_planted import around, claim, grid, of

from anabranch.estimate import Estimate, mean_interval
from anabranch.experiments.claims.value import Number
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.verdicts.finding import Finding
from anabranch.experiments.verdicts.grades import Direction, Verdict
from anabranch.experiments.verdicts.rules import number
from anabranch.experiments.verdicts.sizes import Size, Tolerance, size_of

FITS, ABOUT, OFF, WIDE = Size.FITS, Size.ABOUT, Size.OFF, Size.WIDE


def measured(mean: float, half_width: float = 0.0) -> Estimate:
    """Returns a mean with half of its interval; an exact one if that is zero."""
    if half_width == 0:
        return Estimate(20, mean, math.nan, 0.0, "deterministic")
    return Estimate(20, mean, half_width, half_width * 2, "interval")


def size(mean: float, half_width: float, claimed: float, unit: str = "%", **more: Any) -> Size:
    return size_of(measured(mean, half_width), claimed, claimed, Tolerance.of_unit(unit, **more))


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
        (-5.0, -3.0, -2.99),
    ],
)
def test_percentage_is_reproduced_within_wider_of_2_points_and_a_tenth(
    claimed: float, near: float, beyond: float
) -> None:
    assert size(near, 0, claimed) is FITS
    assert size(beyond, 0, claimed) is ABOUT


@pytest.mark.parametrize(
    ("claimed", "inside", "beyond"),
    [
        (10.0, 15.0, 15.01),  # five points are half of it
        (10.0, 5.0, 4.99),
        (40.0, 60.0, 60.01),  # the factors are wider than five points
        (40.0, 26.8, 26.79),
        (-40.0, -60.0, -60.01),
        (-40.0, -26.8, -26.79),
    ],
)
def test_percentage_is_similar_within_wider_of_5_points_and_factors(
    claimed: float, inside: float, beyond: float
) -> None:
    assert size(inside, 0, claimed) is ABOUT
    assert size(beyond, 0, claimed) is OFF


@pytest.mark.parametrize(
    ("mean", "found"),
    [(11.0, FITS), (11.01, ABOUT), (9.0, FITS), (15.0, ABOUT), (15.01, OFF), (6.7, ABOUT), (6.69, OFF)],
)
def test_points_apply_to_percentages_only(mean: float, found: Size) -> None:
    assert size(mean, 0, 10.0, "s") is found


def test_tolerance_widens_the_interval() -> None:
    assert size(110.5, 0.5, 100.0, "s") is FITS
    assert size(110.6, 0.5, 100.0, "s") is ABOUT


def test_about_as_large_compares_means_however_far_the_interval_goes() -> None:
    assert size(150.0, 9.0, 100.0, "s") is ABOUT
    assert size(150.1, 9.0, 100.0, "s") is OFF


def test_interval_wider_than_the_tolerance_is_no_agreement() -> None:
    assert size(100.0, 10.0, 100.0, "s") is FITS
    assert size(100.0, 10.1, 100.0, "s") is ABOUT
    assert size(100.0, 41.5, 100.0, "s") is ABOUT
    assert size(100.0, 41.6, 100.0, "s") is WIDE


def test_wide_interval_far_from_the_claim_is_another_size() -> None:
    assert size(300.0, 60.0, 100.0, "s") is OFF
    assert size(165.0, 60.0, 100.0, "s") is WIDE


@pytest.mark.parametrize(
    ("claimed", "near", "about"),
    [
        (6.0, 8.0, 9.0),  # two points, but three in place of five
        (3.0, 4.5, 4.51),  # half of it for both grades
        (-5.61, -3.61, -2.81),
        (-5.61, -7.61, -8.41),
    ],
)
def test_points_are_at_most_half_of_the_claimed_percentage(claimed: float, near: float, about: float) -> None:
    beyond = 0.02 * math.copysign(1, about - claimed)
    assert size(near, 0, claimed) is FITS
    assert size(about + beyond, 0, claimed) is OFF
    if abs(about - near) > 0.1:
        assert size(near + beyond, 0, claimed) is ABOUT
        assert size(about - beyond, 0, claimed) is ABOUT


@pytest.mark.parametrize("quarter", [-1.6, -1.4, -0.1, 0.0])
def test_quarter_of_claimed_percentage_is_another_size(quarter: float) -> None:
    assert size(quarter, 0.2, -5.61) is OFF


@pytest.mark.parametrize(("mean", "found"), [(0.0, FITS), (1.0, FITS), (-1.0, FITS), (1.01, OFF), (2.0, OFF)])
def test_claimed_zero_is_met_within_one_step_of_the_measure(mean: float, found: Size) -> None:
    assert size(mean, 0, 0.0, "I frames", resolution=1.0) is found
    assert size(mean, 0, 0.0, "%", resolution=1.0) is found


def test_claimed_zero_without_resolution_is_met_by_zero_alone() -> None:
    assert size(0.0, 0, 0.0, "%") is FITS
    assert size(0.5, 0, 0.0, "%") is OFF


def test_every_measure_has_a_resolution() -> None:
    assert all(each.resolution > 0 for each in MEASURES.values())
    assert MEASURES["missing_i_frames"].resolution == 1


@pytest.mark.parametrize(
    ("mean", "found"),
    [(0.85, FITS), (0.8925, FITS), (0.90, ABOUT), (0.75, ABOUT), (0.95, ABOUT), (0.951, OFF), (0.749, OFF)],
)
def test_r_squared_is_about_the_paper_s_within_a_tenth(mean: float, found: Size) -> None:
    assert size_of(measured(mean), 0.85, 0.85, Tolerance.of_correlation()) is found


def test_interval_that_the_paper_prints_decides_nothing() -> None:
    losses = grid({"A": [around(1055, 20)]})
    verdicts = [
        claim(Number(of("A"), 1200, 1200, "kbit/s", ci95), kind="value").judge(lambda *_: losses).verdict
        for ci95 in (None, (1050, 1350))
    ]
    assert verdicts == [Verdict.ABOUT, Verdict.ABOUT]


def test_a_narrower_tolerance_can_be_asked_for() -> None:
    assert size(4400.0, 0, 4380.0, "B", percent=1.0) is FITS
    assert size(4430.0, 0, 4380.0, "B", percent=1.0) is ABOUT


def test_a_range_of_the_paper_is_widened_at_both_ends() -> None:
    def within(mean: float) -> Size:
        return size_of(measured(mean), 100.0, 200.0, Tolerance.of_unit("s"))

    assert [within(mean) for mean in (90, 150, 220)] == [FITS, FITS, FITS]
    assert [within(mean) for mean in (67, 300)] == [ABOUT, ABOUT]
    assert [within(mean) for mean in (66, 301)] == [OFF, OFF]


def test_one_seed_has_no_interval_and_no_size() -> None:
    assert size_of(mean_interval([19.0]), 19.0, 19.0, Tolerance.of_unit("%")) is WIDE


def test_percentage_of_zero_has_another_size() -> None:
    assert size_of(mean_interval([math.nan]), 19.0, 19.0, Tolerance.of_unit("%")) is OFF


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
    assert number(measured(mean, half_width), 1000, 1000, "s", Tolerance()).verdict is found
