"""Jain's fairness index."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sample_results import frame, losses, two_flows

from anabranch.errors import StatisticsError
from anabranch.statistics import jain_index, jain_indices, summary


@pytest.mark.parametrize(
    ("values", "index"),
    # (1 + 1 + 1)² / (3 · 3), 4² / (2 · 16), (3 + 1)² / (2 · 10), 3² / (2 · 5), and one flow alone.
    [([1, 1, 1], 1.0), ([4, 0], 0.5), ([3, 1], 0.8), ([2, 1], 0.9), ([7], 1.0)],
)
def test_the_index_finds_the_fair_and_the_unfair(values, index):
    assert jain_index(values) == pytest.approx(index, abs=1e-15)


def test_the_index_is_between_one_nth_and_one_and_has_no_unit_and_no_order():
    random = np.random.default_rng(3)
    for _ in range(100):
        values = random.exponential(1000, size=random.integers(1, 12))
        index = jain_index(values)
        assert 1 / len(values) - 1e-12 <= index <= 1 + 1e-12
        assert jain_index(values * 1e6) == pytest.approx(index)
        assert jain_index(random.permutation(values)) == pytest.approx(index)


def test_very_large_and_very_small_values_do_not_overflow():
    assert jain_index([2e300, 1e300]) == pytest.approx(0.9)
    assert jain_index([2e-300, 1e-300]) == pytest.approx(0.9)


def test_fairness_of_zero_shares_is_undefined():
    assert math.isnan(jain_index([0, 0]))


@pytest.mark.parametrize("values", [[], [1, -1], [1, math.nan], [1, math.inf]])
def test_invalid_share_is_refused(values):
    with pytest.raises(StatisticsError, match="Jain"):
        jain_index(values)


def test_the_index_of_each_run_is_that_of_the_engine():
    found = jain_indices(two_flows())
    assert found["flows"].tolist() == [2] * 4
    assert found["jain_index"].tolist() == pytest.approx(two_flows().to_pandas()["jain_index"].tolist(), rel=1e-12)
    assert found[["scheme", "seed"]].values.tolist() == [["cmt,sctp", seed] for seed in range(1, 5)]


def test_indices_can_be_summarised():
    assert summary(jain_indices(two_flows()), "jain_index")["n"].tolist() == [4]
    assert jain_indices(losses())["jain_index"].unique().tolist() == [1.0]


def test_the_index_is_not_taken_over_runs():
    with pytest.raises(StatisticsError, match="frame of their flows"):
        jain_indices(frame({"cmt": [1.0, 2.0]}))
