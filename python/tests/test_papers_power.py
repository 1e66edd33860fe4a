"""Detectable differences, compared with published tables of the power of t tests."""

from __future__ import annotations

import pytest

from anabranch.estimate import Estimate
from anabranch.experiments.verdicts.finding import Finding
from anabranch.experiments.verdicts.grades import Direction
from anabranch.experiments.verdicts.power import MAX_SEEDS, detectable, seeds_needed
from anabranch.experiments.verdicts.sizes import Size


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_small_medium_and_large_effects_need_the_pairs_that_tables_print(effect: float, pairs: int) -> None:
    """Compares with Faul et al., G*Power 3: matched pairs, two tails, 5 % and a power of 80 %."""
    assert seeds_needed(1.0, effect) == pairs
    assert detectable(1.0, pairs) <= effect < detectable(1.0, pairs - 1)


def test_statsmodels_finds_the_same_power() -> None:
    from statsmodels.stats.power import TTestPower

    for pairs in (5, 20, 100):
        power = TTestPower().power(detectable(1.0, pairs), pairs, 0.05, alternative="two-sided")
        assert power == pytest.approx(0.8, abs=1e-4)


def test_detectable_difference_scales_with_the_scatter() -> None:
    assert detectable(12.0, 20) == pytest.approx(12 * detectable(1.0, 20))
    assert seeds_needed(12.0, 6.0) == seeds_needed(1.0, 0.5)
    assert seeds_needed(0.0, 1.0) == 2


def test_more_than_the_most_seeds_are_not_asked_for() -> None:
    least = detectable(1.0, MAX_SEEDS)
    assert seeds_needed(1.0, least) == MAX_SEEDS
    assert seeds_needed(1.0, 0.99 * least) is None


def test_zero_scatter_or_difference_is_an_error() -> None:
    with pytest.raises(ValueError, match="two at least"):
        detectable(1.0, 1)
    with pytest.raises(ValueError, match="above 0"):
        seeds_needed(1.0, 0.0)


def finding(direction: Direction, size: Size = Size.FITS, **more: Estimate) -> Finding:
    return Finding(direction, Estimate(34, 1.0, 3.5, 10.0, "interval"), "%", size, **more)


def test_undecided_claim_names_the_detectable_difference() -> None:
    assert finding(Direction.UNCLEAR).detectable == pytest.approx(4.95, abs=0.01)
    assert finding(Direction.HOLDS, Size.WIDE).detectable == pytest.approx(4.95, abs=0.01)
    assert finding(Direction.HOLDS).detectable is None
    assert finding(Direction.AGAINST).detectable is None


def test_of_several_cells_the_widest_counts() -> None:
    wide = Estimate(34, 1.0, 7.0, 20.0, "interval")
    assert finding(Direction.UNCLEAR, undecided=wide).detectable == pytest.approx(9.9, abs=0.02)


def test_one_run_has_no_detectable_difference() -> None:
    single = Estimate(1, 1.0, float("nan"), float("nan"), "single")
    assert Finding(Direction.UNCLEAR, single, "%").detectable is None
