"""Means and their intervals."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sample_results import LOSS, ROOT, frame, losses, made, points, transfers, two_flows, without_chance

from anabranch.errors import AnabranchError, StatisticsError
from anabranch.statistics import Estimate, as_text, mean_interval, summary


def test_the_t_interval_is_what_a_table_of_student_gives():
    # s = 54, t(0.975, 2) = 4.302653: 4.302653 * 54 / sqrt(3).
    found = mean_interval([1180, 1234, 1288])
    assert found.mean == 1234
    assert found.std == 54
    assert found.half_width == pytest.approx(134.1439, abs=1e-3)
    assert (found.low, found.high) == (found.mean - found.half_width, found.mean + found.half_width)
    # t(0.95, 2) = 2.919986.
    assert mean_interval([1180, 1234, 1288], confidence=0.9).half_width == pytest.approx(91.0363, abs=1e-3)


@pytest.mark.parametrize(
    ("confidence", "z"), [(0.80, 1.282), (0.90, 1.645), (0.95, 1.96), (0.98, 2.326), (0.99, 2.576)]
)
def test_the_normal_interval_has_the_z_that_the_papers_print(confidence, z):
    found = mean_interval([1.0, 2.0, 3.0, 4.0], "normal", confidence)
    assert found.half_width == pytest.approx(z * math.sqrt(5 / 3) / 2, rel=1e-12)


def test_normal_interval_of_ten_loss_rates_equals_the_db_cmt_paper():
    # 1837.27 to 2311.50 for CMT: a half-width of 237.1, with the standard deviation of 382.6 that follows from it.
    ten = np.linspace(-1, 1, 10)
    means = 2074.385 + ten / ten.std(ddof=1) * 382.56
    runs = points({loss: {"cmt": [mean - 5, mean + 5]} for loss, mean in enumerate(means, 1)})
    row = summary(runs, by="scheme", interval="normal", samples="points").iloc[0]
    assert row["n"] == 10
    assert row["low"] == pytest.approx(1837.27, abs=0.1)
    assert row["high"] == pytest.approx(2311.50, abs=0.1)


def test_identical_samples_are_deterministic_and_a_single_one_is_single():
    same = mean_interval([0.1] * 7)
    assert (same.n, same.mean, same.std, same.kind) == (7, 0.1, 0.0, "deterministic")
    assert math.isnan(same.half_width)
    assert math.isnan(same.low)
    one = mean_interval([5.0])
    assert (one.n, one.mean, one.kind) == (1, 5.0, "single")
    assert math.isnan(one.half_width)
    assert math.isnan(one.std)
    none = mean_interval([math.nan])
    assert (none.n, none.kind) == (0, "none")
    assert math.isnan(none.mean)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1180, 1234, 1288], "1234 ± 134 (n = 3)"),
        ([1234.0, 1234.0], "1234 (deterministic)"),
        ([1234.0], "1234 (n = 1)"),
        ([], "no value"),
        ([334, 336], "335.0 ± 12.7 (n = 2)"),
        ([0.9, 0.92, 0.94], "0.92 ± 0.05 (n = 3)"),
        ([0.001234, 0.001238], "0.00124 ± 0.00003 (n = 2)"),
        ([0.0, 0.0], "0.00 (deterministic)"),
        ([-0.001, 0.001], "0.00 ± 0.01 (n = 2)"),
        ([-1500.4], "-1500 (n = 1)"),
        ([-0.0], "0.00 (n = 1)"),
    ],
)
def test_estimates_are_printed_with_the_digits_they_can_bear(values, text):
    assert str(mean_interval(values)) == text


def test_missing_values_are_left_out_and_counted():
    runs = frame({"cmt": [1.0, math.nan, 3.0], "sctp": [math.nan] * 3})
    table = summary(runs).set_index("scheme")
    assert table.loc["cmt", ["n", "mean", "left_out"]].tolist() == [2, 2.0, 1]
    assert table.loc["sctp", ["n", "kind", "left_out"]].tolist() == [0, "none", 3]
    assert as_text(table.reset_index()) == ["2.00 ± 12.71 (n = 2)", "no value"]


def test_complete_sample_omits_no_value():
    assert summary(frame({"cmt": [1.0, 2.0]}))["left_out"].tolist() == [0]


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinite_value_has_no_mean(value):
    with pytest.raises(StatisticsError, match="infinite"):
        mean_interval([1.0, value])
    with pytest.raises(StatisticsError, match="goodput_kbps"):
        summary(frame({"cmt": [1.0, value]}))


def test_wrong_kinds_of_interval_are_refused():
    with pytest.raises(StatisticsError, match="'t', 'normal'"):
        mean_interval([1.0, 2.0], "z")
    for confidence in (0, 1, 95, -0.5):
        with pytest.raises(StatisticsError, match=r"0\.95"):
            mean_interval([1.0, 2.0], confidence=confidence)
    with pytest.raises(StatisticsError, match="'seeds' or 'points'"):
        summary(frame({"cmt": [1.0]}), samples="runs")


def test_statistics_errors_are_errors_of_the_package():
    assert issubclass(StatisticsError, AnabranchError)


def test_a_repeated_seed_is_not_taken_for_another_sample():
    runs = frame({"cmt": [1.0, 2.0]})
    with pytest.raises(StatisticsError, match=r"scheme cmt, seed 1.*gives no new sample"):
        summary(pd.concat([runs, runs]))
    with_profile = pd.concat([runs.assign(profile="ns2"), runs.assign(profile="rfc9260")])
    assert summary(with_profile, by=["profile", "scheme"])["n"].tolist() == [2, 2]


def test_an_unknown_metric_is_answered_with_those_that_exist():
    with pytest.raises(
        StatisticsError, match=r"`goodput`; did you mean `goodput_kbps`\? choose one of `goodput_kbps`$"
    ):
        summary(frame({"cmt": [1.0]}), "goodput")
    with pytest.raises(StatisticsError, match=r"`retransmissions`.*`transfer_s`.*`share`"):
        summary(losses(), "resent")
    with pytest.raises(StatisticsError, match="`failure` does not contain numbers"):
        summary(frame({"cmt": [1.0]}).assign(failure="lost"), "failure")


def test_an_unknown_column_to_group_by_is_answered_with_those_that_exist():
    with pytest.raises(StatisticsError, match=r"`delay`.*`scheme`"):
        summary(frame({"cmt": [1.0]}), by="delay")
    with pytest.raises(StatisticsError, match="no column to group by"):
        summary(frame({"cmt": [1.0]}), by=[])
    with pytest.raises(StatisticsError, match="unknown column `seed`"):
        summary(frame({"cmt": [1.0]}).drop(columns="seed"))


def test_only_results_or_a_frame_are_accepted():
    with pytest.raises(StatisticsError, match="not list"):
        summary([1.0, 2.0])


def test_rows_come_point_by_point_and_scheme_by_scheme_as_in_the_results():
    table = summary(losses())
    assert table[[LOSS, "scheme"]].drop_duplicates().shape[0] == len(table) == 12
    assert table[LOSS].tolist() == sorted(table[LOSS])
    assert table["scheme"].tolist() == ["sctp", "cmt", "cmt-pf"] * 4
    assert set(table["n"]) == {5}
    assert set(table["metric"]) == {"goodput_kbps"}
    assert summary(losses(), by="scheme")["scheme"].tolist() == ["sctp", "cmt", "cmt-pf"]
    assert summary(losses(), by="scheme", samples="points")["scheme"].tolist() == ["sctp", "cmt", "cmt-pf"]


def test_metrics_of_flows_and_paths_are_found_in_their_tables():
    share = summary(losses(), "share", by=["scheme", LOSS, "path"])
    assert share.groupby([LOSS, "scheme"])["mean"].sum().tolist() == pytest.approx([1.0] * 12)
    times = summary(transfers(), "transfer_s")
    assert times["flow"].unique().tolist() == ["flow-1"]
    assert (times["n"] == 4).all()
    of_flows = summary(two_flows(), table="flows")
    assert of_flows["flow"].tolist() == ["multipath", "single-path"]
    assert of_flows["mean"].sum() == pytest.approx(summary(two_flows())["mean"][0], rel=1e-6)


def test_a_mean_over_flows_or_schemes_is_refused():
    with pytest.raises(StatisticsError, match="leaves out `flow`"):
        summary(two_flows(), by="scheme", table="flows")
    with pytest.raises(StatisticsError, match="leaves out `scheme`"):
        summary(losses(), by=LOSS)


def test_left_out_points_are_averaged_for_each_seed_first():
    runs = points({0.0: {"cmt": [10.0, 20.0, 30.0]}, 0.1: {"cmt": [2.0, 4.0, 9.0]}})
    row = summary(runs, by="scheme").iloc[0]
    assert row["n"] == 3
    assert row["mean"] == pytest.approx(np.mean([6.0, 12.0, 19.5]))
    assert row["std"] == pytest.approx(np.std([6.0, 12.0, 19.5], ddof=1))


def test_a_seed_that_lacks_a_point_is_left_out_of_the_mean_over_points():
    runs = points({0.0: {"cmt": [10.0, 20.0, 30.0]}, 0.1: {"cmt": [2.0, 4.0]}})
    row = summary(runs, by="scheme").iloc[0]
    assert (row["n"], row["mean"], row["left_out"]) == (2, 9.0, 1)
    runs = points({0.0: {"cmt": [10.0, 20.0]}, 0.1: {"cmt": [math.nan, 4.0]}})
    row = summary(runs, by="scheme").iloc[0]
    assert (row["n"], row["mean"], row["left_out"]) == (1, 12.0, 1)


def test_seeds_can_be_kept_separate():
    runs = points({0.0: {"cmt": [10.0, 20.0]}, 0.1: {"cmt": [2.0, 4.0]}})
    assert summary(runs, by=["scheme", "seed"])["mean"].tolist() == [6.0, 12.0]


def test_points_as_samples_need_points():
    with pytest.raises(StatisticsError, match="leaves out none"):
        summary(losses(), samples="points")


def test_runs_without_chance_are_printed_as_deterministic():
    table = summary(without_chance())
    assert table["kind"].tolist() == ["deterministic", "deterministic"]
    assert all(text.endswith("(deterministic)") for text in as_text(table))


def test_a_table_that_is_no_summary_has_no_text():
    with pytest.raises(StatisticsError, match="`mean`"):
        as_text(frame({"cmt": [1.0]}))


def native(*arguments: str) -> str:
    """Returns the output of the native command."""
    code = "import sys; from anabranch import _native; sys.exit(_native.command(['anabranch', *sys.argv[1:]]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_intervals_are_those_that_anabranch_run_prints():
    results = made("two-path.toml", {}, ("sctp", "cmt", "cmt-pf"), 5, run__duration="3 s")
    printed = native("run", "scenarios/two-path.toml", "--set", "run.duration=3 s", "--seeds", "5", "--quiet")
    for text, scheme in zip(as_text(summary(results)), results.schemes, strict=True):
        row = next(line.split() for line in printed.splitlines() if line.startswith(f"{scheme} "))
        assert f"{row[2]} ± {row[4]} (n = {row[1]})" == text


def test_the_mean_over_points_is_that_of_anabranch_run_sweep():
    results = made("two-path.toml", {LOSS: [0.0, 0.05]}, ("cmt",), 4, run__duration="3 s")
    printed = native(
        "run",
        "scenarios/two-path.toml",
        *("--schemes", "cmt", "--set", "run.duration=3 s", "--seeds", "4", "--quiet"),
        *("--sweep", f"{LOSS}=0.0,0.05"),
    )
    row = next(line.split() for line in printed.splitlines() if line.startswith("cmt "))
    assert as_text(summary(results, by="scheme")) == [f"{row[-3]} ± {row[-1]} (n = 4)"]
    assert as_text(summary(results))[0] == f"{row[1]} ± {row[3]} (n = 4)"


def test_t_interval_has_nominal_coverage_and_normal_interval_less():
    random = np.random.default_rng(20261121)
    samples = random.normal(100.0, 7.0, size=(600, 5))
    covered = {
        kind: np.mean(
            [abs(found.mean - 100) <= found.half_width for found in (mean_interval(s, kind) for s in samples)]
        )
        for kind in ("t", "normal")
    }
    assert covered["t"] == pytest.approx(0.95, abs=0.02)
    # With five values, 1.96 covers 87.8 % of the means.
    assert covered["normal"] == pytest.approx(0.878, abs=0.025)


def test_intervals_move_and_stretch_with_their_samples():
    random = np.random.default_rng(7)
    for _ in range(50):
        sample = random.lognormal(2, 1, size=random.integers(2, 40))
        shift, factor = random.normal(0, 100), random.uniform(0.1, 50)
        plain, moved = mean_interval(sample), mean_interval(sample * factor + shift)
        assert moved.mean == pytest.approx(plain.mean * factor + shift)
        assert moved.half_width == pytest.approx(plain.half_width * factor)
        assert mean_interval(sample, "normal").half_width < plain.half_width


def test_an_estimate_can_be_made_by_hand():
    assert str(Estimate(4, 10.0, 1.5, 1.0, "interval")) == "10.00 ± 1.50 (n = 4)"
