"""Differences under common seeds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sample_results import LOSS, frame, losses, points, two_flows, without_chance

from anabranch.errors import StatisticsError
from anabranch.statistics import as_text, paired_difference, summary

# Additional hours of sleep under two drugs, ten patients: Student 1908, The probable error of a mean.
SLEEP = {
    "one": [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    "two": [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
}


def test_students_sleep_data_give_the_published_interval_and_p_value():
    row = paired_difference(frame(SLEEP, "hours"), "two", "hours").iloc[0]
    assert (row["scheme"], row["baseline"], row["n"], row["unpaired"]) == ("one", "two", 10, 0)
    assert row["mean"] == pytest.approx(-1.58)
    assert row["low"] == pytest.approx(-2.4598858, abs=1e-6)
    assert row["high"] == pytest.approx(-0.7001142, abs=1e-6)
    assert row["p_value"] == pytest.approx(0.00283289, abs=1e-7)
    assert row["kind"] == "interval"


def test_confidence_level_changes_the_interval_and_not_the_p_value():
    wide = paired_difference(frame(SLEEP, "hours"), "two", "hours", confidence=0.99).iloc[0]
    # t(0.995, 9) = 3.249836, s of the differences is 1.229995.
    assert wide["half_width"] == pytest.approx(3.249836 * 1.229995 / math.sqrt(10), abs=1e-5)
    assert wide["p_value"] == pytest.approx(0.00283289, abs=1e-7)


def test_paired_interval_is_narrower_when_values_depend_on_seeds():
    random = np.random.default_rng(1)
    channel = random.normal(1000, 200, 20)
    runs = frame({"cmt": channel + random.normal(0, 5, 20), "cmt-pf": channel + 20 + random.normal(0, 5, 20)})
    difference = paired_difference(runs).iloc[0]
    assert difference["half_width"] < summary(runs)["half_width"].min() / 10
    assert difference["low"] > 0


def test_seeds_that_only_one_side_has_are_left_out_and_counted():
    runs = frame({"cmt": [10.0, 20.0, 30.0, 40.0], "cmt-pf": [11.0, 22.0, 33.0]})
    row = paired_difference(runs).iloc[0]
    assert (row["n"], row["mean"], row["unpaired"]) == (3, 2.0, 1)
    runs = frame({"cmt": [10.0, math.nan, 30.0], "cmt-pf": [11.0, 22.0, 35.0]})
    row = paired_difference(runs).iloc[0]
    assert (row["n"], row["mean"], row["unpaired"]) == (2, 3.0, 1)


def test_no_seed_in_common_is_an_error_that_names_the_point_and_the_scheme():
    runs = pd.concat([frame({"cmt": [1.0, 2.0]}), frame({"cmt-pf": [1.0]}).assign(seed=9)]).assign(**{LOSS: 0.05})
    with pytest.raises(StatisticsError, match=r"path\.path-2\.loss 0\.05, scheme cmt-pf.*baseline `cmt`"):
        paired_difference(runs)


def test_equal_differences_are_deterministic():
    row = paired_difference(frame({"cmt": [10.0, 20.0, 30.0], "cmt-pf": [10.1, 20.1, 30.1]})).iloc[0]
    assert (row["n"], row["kind"], row["std"]) == (3, "deterministic", 0.0)
    assert row["mean"] == pytest.approx(0.1)
    assert math.isnan(row["half_width"])
    assert math.isnan(row["p_value"])
    same = paired_difference(without_chance(), "cmt")
    assert (same["kind"].tolist(), same["mean"].tolist()) == (["deterministic"], [0.0])


def test_a_single_pair_has_no_interval():
    row = paired_difference(frame({"cmt": [10.0], "cmt-pf": [12.0]})).iloc[0]
    assert (row["n"], row["mean"], row["kind"]) == (1, 2.0, "single")
    assert math.isnan(row["p_value"])


def test_relative_differences_are_relative_to_the_baseline_of_their_seed():
    runs = frame({"cmt": [100.0, 200.0, 400.0], "cmt-pf": [110.0, 240.0, 360.0]})
    row = paired_difference(runs, relative=True).iloc[0]
    assert row["mean"] == pytest.approx(np.mean([0.1, 0.2, -0.1]))
    assert row["std"] == pytest.approx(np.std([0.1, 0.2, -0.1], ddof=1))
    assert bool(row["relative"])
    proportional = frame({"cmt": [100.0, 300.0], "cmt-pf": [110.0, 330.0]})
    assert paired_difference(proportional, relative=True).iloc[0]["kind"] == "deterministic"


def test_relative_difference_to_zero_is_undefined():
    with pytest.raises(StatisticsError, match="is 0"):
        paired_difference(frame({"cmt": [0.0, 1.0], "cmt-pf": [1.0, 1.0]}), relative=True)


def test_unknown_baseline_is_an_error_that_lists_the_schemes():
    with pytest.raises(StatisticsError, match=r"`sctp`.*`cmt`, `cmt-pf`"):
        paired_difference(frame({"cmt": [1.0], "cmt-pf": [1.0]}), "sctp")
    with pytest.raises(StatisticsError, match="only scheme"):
        paired_difference(frame({"cmt": [1.0, 2.0]}))
    with pytest.raises(StatisticsError, match="has to have `scheme`"):
        paired_difference(losses(), by=LOSS)


def test_each_point_is_compared_with_the_baseline_at_that_point():
    table = paired_difference(losses())
    assert table[LOSS].tolist() == [loss for loss in (0.0, 0.02, 0.05, 0.1) for _ in range(2)]
    assert table["scheme"].tolist() == ["sctp", "cmt-pf"] * 4
    runs = losses().to_pandas()
    at = runs[runs[LOSS] == 0.05].set_index(["scheme", "seed"])["goodput_kbps"]
    expected = (at["sctp"] - at["cmt"]).mean()
    assert table[(table[LOSS] == 0.05) & (table["scheme"] == "sctp")]["mean"].iloc[0] == pytest.approx(expected)


def test_over_left_out_points_the_means_of_seeds_are_compared():
    runs = points(
        {
            0.0: {"cmt": [10.0, 20.0], "cmt-pf": [20.0, 26.0]},
            0.1: {"cmt": [2.0, 4.0], "cmt-pf": [4.0, 10.0]},
        }
    )
    row = paired_difference(runs, by="scheme").iloc[0]
    assert (row["n"], row["mean"]) == (2, 6.0)
    assert row["kind"] == "deterministic"
    gain = paired_difference(runs, by="scheme", relative=True).iloc[0]
    assert gain["mean"] == pytest.approx((6 / 6 + 6 / 12) / 2)


def test_flows_are_compared_flow_by_flow():
    flows = two_flows().to_pandas("flows")
    twice = pd.concat([flows, flows.assign(scheme="cmt-pf", goodput_kbps=flows["goodput_kbps"] * 1.1)])
    table = paired_difference(twice, "cmt,sctp", relative=True)
    assert table["flow"].tolist() == ["multipath", "single-path"]
    assert table["mean"].tolist() == pytest.approx([0.1, 0.1])


def test_differences_are_printed_like_means():
    assert as_text(paired_difference(frame(SLEEP, "hours"), "two", "hours")) == ["-1.58 ± 0.88 (n = 10)"]
