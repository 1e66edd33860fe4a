"""Verdicts on planted samples: kept, broken and undecided."""

from __future__ import annotations

import doctest
import importlib
import math

import pytest
from studies.alone import MAX_RATIO, best_of, ratio, ratios_left_out

from anabranch.experiments.limits.rules import (
    Judged,
    Verdict,
    at_least,
    at_most,
    median_above,
    share_kept,
    within,
    worst_of,
)

KEPT, BROKEN, UNDECIDED = Verdict.KEPT, Verdict.BROKEN, Verdict.UNDECIDED

MANY = [0.98, 1.0, 1.02, 0.99] * 5
"""Twenty values around 1."""


def test_enough_seeds_at_the_limit_keep_it() -> None:
    judged = at_least(MANY, 0.97)
    assert (judged.verdict, judged.n) == (KEPT, 20)
    assert judged.lower < judged.mean < judged.upper
    assert at_most(MANY, 1.0).verdict is KEPT
    assert within(MANY, 0.8, 1.25).verdict is KEPT


def test_a_limit_is_broken_if_even_the_far_bound_is_beyond_it() -> None:
    assert at_least([value - 0.1 for value in MANY], 0.97).verdict is BROKEN
    assert at_most([value + 0.1 for value in MANY], 1.0).verdict is BROKEN
    assert within([value / 2 for value in MANY], 0.8, 1.25).verdict is BROKEN
    assert within([value * 2 for value in MANY], 0.8, 1.25).verdict is BROKEN


def test_a_mean_slightly_below_its_limit_does_not_break_it() -> None:
    values = [0.88, 1.05] * 10
    judged = at_least(values, 0.97)
    assert judged.mean < 0.97 < judged.upper
    assert judged.verdict is KEPT


def test_few_seeds_can_break_a_limit_and_cannot_keep_it() -> None:
    assert at_least([0.5, 0.51, 0.49], 0.97).verdict is BROKEN
    assert at_least([1.0, 1.01, 1.02], 0.97).verdict is UNDECIDED
    assert at_least([1.0, 1.01, 1.02], 0.97, least_seeds=3).verdict is KEPT


def test_one_seed_gives_no_verdict() -> None:
    judged = at_least([0.1], 0.97)
    assert judged.verdict is UNDECIDED
    assert math.isnan(judged.upper)


def test_the_bound_is_one_sided_and_of_student() -> None:
    judged = at_least([1.0, 2.0, 3.0], 0)
    # t(0.95, 2) = 2.92 from a table.
    assert judged.upper - judged.mean == pytest.approx(2.920 / math.sqrt(3), rel=1e-3)


def test_a_sample_that_is_empty_or_infinite_has_no_mean() -> None:
    for sample in ([], [1.0, math.inf], [math.nan]):
        with pytest.raises(ValueError, match="finite"):
            at_least(sample, 1)


def settings(good: int, bad: int, seeds: int = 20) -> list[Judged]:
    return [at_least([1.0, 1.01] * (seeds // 2), 0.97)] * good + [at_least([0.5, 0.51] * (seeds // 2), 0.97)] * bad


def test_share_of_settings_is_kept_broken_or_undecided() -> None:
    assert share_kept(settings(95, 5), 0.97, 0.95) is KEPT
    assert share_kept(settings(94, 6), 0.97, 0.95) is BROKEN
    assert share_kept(settings(95, 5, seeds=4), 0.97, 0.95) is UNDECIDED
    # Means below the limit whose bounds are above it.
    unclear = [at_least([0.88, 1.05] * 10, 0.97)] * 10
    assert share_kept(settings(90, 0) + unclear, 0.97, 0.95) is UNDECIDED
    assert share_kept([], 0.97, 0.95) is UNDECIDED


def test_median_is_compared_with_its_limit() -> None:
    assert median_above(settings(3, 2), 0.9) is KEPT
    assert median_above(settings(2, 3), 0.9) is BROKEN
    assert median_above(settings(3, 2, seeds=4), 0.9) is UNDECIDED
    assert median_above([], 0.9) is UNDECIDED


def test_one_broken_verdict_breaks_all() -> None:
    assert worst_of([KEPT, UNDECIDED, BROKEN]) is BROKEN
    assert worst_of([KEPT, UNDECIDED]) is UNDECIDED
    assert worst_of([KEPT]) is KEPT
    assert worst_of([]) is UNDECIDED


def test_the_best_path_is_chosen_on_other_seeds() -> None:
    alone = {"first": [10.0, 8.0, 10.0], "second": [9.0, 12.0, 6.0]}
    # On seed 2 the second path is better, but the other seeds select the first; on seed 3 it is the reverse.
    assert ratios_left_out([10, 8, 10], alone) == [1.0, 1.0, pytest.approx(10 / 6)]
    assert best_of({"first": 10.0, "second": 10.0}) == "first"


def test_ratios_stay_finite() -> None:
    assert ratio(0, 0) == 1
    assert ratio(5, 0) == MAX_RATIO
    assert ratio(1, 4) == 0.25


@pytest.mark.parametrize(
    "module", ["studies.alone", "anabranch.experiments.limits.rules", "studies.degradation.setting"]
)
def test_the_examples_in_the_sources_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0
    assert results.failed == 0
