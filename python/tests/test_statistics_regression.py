"""Regression lines and their table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sample_results import LOSS, frame, losses, points, transfers, two_flows

from anabranch.errors import StatisticsError
from anabranch.statistics import linear_regression, regression_table, regressions

# Anscombe 1973, Graphs in statistical analysis.
ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE = {
    "I": (ANSCOMBE_X, [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68], 0.6665, 1.237),
    "II": (ANSCOMBE_X, [9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74], 0.6662, 1.237),
    "III": (ANSCOMBE_X, [7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73], 0.6663, 1.236),
    "IV": (
        [8] * 7 + [19] + [8] * 3,
        [6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89],
        0.6667,
        1.236,
    ),
}


@pytest.mark.parametrize("name", ANSCOMBE)
def test_anscombes_quartet_has_one_line(name):
    x, y, r_squared, standard_error = ANSCOMBE[name]
    line = linear_regression(x, y)
    assert line.n == 11
    assert line.slope == pytest.approx(0.500, abs=5e-4)
    assert line.intercept == pytest.approx(3.00, abs=5e-3)
    assert line.r_squared == pytest.approx(r_squared, abs=5e-5)
    assert line.multiple_r == pytest.approx(math.sqrt(r_squared), abs=5e-5)
    assert line.adjusted_r_squared == pytest.approx(1 - (1 - line.r_squared) * 10 / 9)
    assert line.standard_error == pytest.approx(standard_error, abs=5e-4)


def test_the_first_of_the_quartet_has_the_published_errors_and_p_values():
    x, y, *_ = ANSCOMBE["I"]
    line = linear_regression(x, y)
    assert line.f == pytest.approx(17.99, abs=5e-3)
    assert line.p_value == pytest.approx(0.00217, abs=5e-6)
    slope, intercept = line.coefficients.loc["x"], line.coefficients.loc["intercept"]
    assert slope["standard_error"] == pytest.approx(0.1179, abs=5e-5)
    assert slope["t"] == pytest.approx(4.241, abs=5e-4)
    assert slope["p_value"] == pytest.approx(line.p_value)
    assert intercept["standard_error"] == pytest.approx(1.1247, abs=5e-5)
    assert intercept["p_value"] == pytest.approx(0.02573, abs=5e-6)
    # t(0.975, 9) = 2.262157.
    assert slope["high"] - slope["estimate"] == pytest.approx(2.262157 * slope["standard_error"], rel=1e-6)
    assert slope["estimate"] - slope["low"] == pytest.approx(2.262157 * slope["standard_error"], rel=1e-6)


def test_several_regressors_give_the_certified_values_of_longley():
    """Compares with NIST, Statistical Reference Datasets, Longley, certified to fifteen digits."""
    from statsmodels.datasets import longley

    data = longley.load_pandas()
    line = linear_regression(data.exog, data.endog)
    certified = {
        "intercept": -3482258.63459582,
        "GNPDEFL": 15.0618722713733,
        "GNP": -0.0358191792925910,
        "UNEMP": -2.02022980381683,
        "ARMED": -1.03322686717359,
        "POP": -0.0511041056535807,
        "YEAR": 1829.15146461355,
    }
    assert line.coefficients["estimate"].to_dict() == pytest.approx(certified, rel=1e-6)
    assert line.standard_error == pytest.approx(304.854073561965, rel=1e-7)
    assert line.r_squared == pytest.approx(0.995479004577296, rel=1e-9)
    assert line.f == pytest.approx(330.285339234588, rel=1e-6)
    with pytest.raises(StatisticsError, match="no one slope"):
        _ = line.slope


def test_the_line_of_the_db_cmt_paper_reads_as_printed():
    x = np.arange(11)
    bent = 6 * (x - 5) ** 2 - 60
    line = linear_regression(x, 1465.1 - 115.63 * x + bent)
    assert line.equation() == "y = -115.63x + 1465.1"
    assert line.correlation == pytest.approx(-line.multiple_r)
    # Eleven equal steps: the line passes through the mean, 886.95 at 5.
    assert line.predict([5.0])["mean"].iloc[0] == pytest.approx(886.95)


def test_the_text_has_all_that_the_papers_table_has():
    text = str(linear_regression(*ANSCOMBE["I"][:2]))
    for part in ("Multiple R", "0.8164", "R²", "0.6665", "Adjusted R²", "0.6295", "Observations", "11", "0.00217"):
        assert part in text


def test_the_band_is_narrowest_in_the_middle_and_holds_the_line():
    line = linear_regression(*ANSCOMBE["I"][:2])
    band = line.predict([4.0, 9.0, 14.0])
    width = (band["high"] - band["low"]).tolist()
    assert width[1] < width[0] == pytest.approx(width[2])
    assert ((band["low"] < band["mean"]) & (band["mean"] < band["high"])).all()
    # At the mean of x the error is that of the mean of y: s / √11.
    assert width[1] / 2 == pytest.approx(2.262157 * line.standard_error / math.sqrt(11), rel=1e-6)
    assert linear_regression(*ANSCOMBE["I"][:2], confidence=0.5).predict([9.0])["high"].iloc[0] < band["high"][1]


def test_a_perfect_fit_has_no_errors_rather_than_those_of_rounding():
    line = linear_regression([1, 2, 3, 4], [2.1, 4.2, 6.3, 8.4])
    assert (line.r_squared, line.adjusted_r_squared, line.p_value, line.standard_error) == (1.0, 1.0, 0.0, 0.0)
    assert math.isinf(line.f)
    assert (line.coefficients["standard_error"] == 0).all()


def test_constant_y_has_a_flat_line_and_no_r_squared():
    line = linear_regression([1, 2, 3, 4], [1343.9712] * 4)
    assert (line.slope, line.intercept, line.standard_error) == (0.0, 1343.9712, 0.0)
    assert line.equation() == "y = 0x + 1344"
    for figure in (line.r_squared, line.multiple_r, line.adjusted_r_squared, line.f, line.p_value):
        assert math.isnan(figure)
    assert line.predict([2.5])["mean"].iloc[0] == pytest.approx(1343.9712)


def test_fits_agree_with_numpy_and_residuals_sum_to_zero():
    random = np.random.default_rng(11)
    for _ in range(30):
        x = random.normal(0, 10, 12)
        y = random.normal(3, 1) * x + random.normal(0, 5, 12)
        line = linear_regression(x, y)
        assert [line.slope, line.intercept] == pytest.approx(np.polyfit(x, y, 1).tolist())
        assert abs((y - line.predict(x)["mean"]).sum()) < 1e-9
        assert line.correlation == pytest.approx(np.corrcoef(x, y)[0, 1])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2], [1, 2], "2 points are too few for 2 coefficients"),
        ([], [], "0 points"),
        ([3, 3, 3], [1, 2, 3], "`x` is 3 at all points"),
        ([1, 2, math.nan], [1, 2, 3], "`x` has a value that is NaN"),
        ([1, 2, 3], [1, math.inf, 3], "`y` has a value that is NaN or infinite"),
        ([1, 2, 3], [1, 2], "`x` has 3 values and y has 2"),
        ([[1, 2], [3, 4]], [1, 2], "sequence of numbers"),
        ({}, [1, 2, 3], "no regressor is given"),
        ({"a": [1, 2, 3, 5], "b": [2, 4, 6, 10]}, [1, 2, 4, 3], "`a`, `b` one follows"),
        ({"a": [1, 2, 3], "b": [2, 4, 5]}, [1, 2, 4], "3 points are too few for 3 coefficients"),
    ],
)
def test_data_without_a_fit_is_refused_with_the_reason(x, y, message):
    with pytest.raises(StatisticsError, match=message):
        linear_regression(x, y)


def test_predictions_need_every_regressor():
    line = linear_regression({"a": [1, 2, 3, 5, 8], "b": [2, 1, 4, 3, 5]}, [1, 2, 4, 3, 9])
    assert line.predict({"b": [1.0], "a": [2.0]}).shape == (1, 3)
    with pytest.raises(StatisticsError, match="no values of `b`"):
        line.predict({"a": [1.0]})
    with pytest.raises(StatisticsError, match="`a`, `b`"):
        line.predict([1.0])


def test_results_are_regressed_on_the_swept_key_through_means_over_seeds():
    lines = regressions(losses())
    assert list(lines) == ["sctp", "cmt", "cmt-pf"]
    line = lines["cmt"]
    means = losses().to_pandas().query("scheme == 'cmt'").groupby(LOSS)["goodput_kbps"].mean()
    # A loss counts in per cent.
    assert [line.slope, line.intercept] == pytest.approx(np.polyfit(means.index * 100, means, 1).tolist())
    assert (line.n, line.y, line.units) == (4, "goodput_kbps", {LOSS: "%"})


def test_every_run_can_be_a_point():
    line = regressions(losses(), LOSS, points="runs")["cmt"]
    assert line.n == 20
    means = regressions(losses())["cmt"]
    # With the same number of seeds at each point, the line is the same and only its errors differ.
    assert line.slope == pytest.approx(means.slope)
    assert line.r_squared < means.r_squared


def test_quantities_count_in_their_unit():
    line = regressions(transfers(), metric="transfer_s")["cmt"]
    times = transfers().to_pandas("flows").query("scheme == 'cmt'")
    means = times.groupby("flow.flow-1.size", sort=False)["transfer_s"].mean()
    assert line.slope == pytest.approx(np.polyfit([0.1, 0.4, 1], means, 1)[0])
    assert line.units == {"flow.flow-1.size": "MB"}


def test_every_scheme_has_the_same_unit_even_if_it_lacks_a_point():
    runs = points(
        {
            size: {"cmt": [time], "sctp": [2 * time]}
            for size, time in (("500 kB", 1), ("1 MB", 2), ("2 MB", 5), ("4 MB", 9))
        },
        "flow.flow-1.size",
    )
    lines = regressions(runs[(runs["scheme"] == "cmt") | (runs["flow.flow-1.size"] != "500 kB")])
    assert lines["sctp"].units == lines["cmt"].units == {"flow.flow-1.size": "MB"}


def test_several_keys_can_be_regressors():
    random = np.random.default_rng(5)
    runs = pd.concat(
        [
            frame({"cmt": 1000 - 50 * 100 * loss - 2 * delay + random.normal(0, 1, 3)}).assign(
                **{LOSS: loss, "path.path-2.delay": f"{delay} ms"}
            )
            for loss in (0.0, 0.01, 0.02)
            for delay in (20, 50, 100)
        ]
    )
    line = regressions(runs, [LOSS, "path.path-2.delay"])["cmt"]
    assert line.n == 9
    assert line.coefficients["estimate"].tolist() == pytest.approx([1000, -50, -2], rel=0.01)
    with pytest.raises(StatisticsError, match="has to name the regressors"):
        regressions(runs)


def test_the_table_has_a_row_for_each_scheme():
    table = regression_table(regressions(losses()))
    assert table.columns.tolist() == [
        *("scheme", "n", "intercept", f"slope {LOSS}", "multiple_r", "r_squared", "adjusted_r_squared"),
        *("standard_error", "f", "p_value"),
    ]
    assert table["scheme"].tolist() == ["sctp", "cmt", "cmt-pf"]
    assert (table["multiple_r"] ** 2).tolist()[1:] == pytest.approx(table["r_squared"].tolist()[1:])
    # The scheme does not use the second path, so losses on that path change nothing.
    assert table.iloc[0].isna()["r_squared"]


def test_column_that_cannot_be_regressed_is_named():
    with pytest.raises(
        StatisticsError, match=r"'path\.path-1\.loss' is not a swept key; swept are `path\.path-2\.loss`"
    ):
        regressions(losses(), "path.path-1.loss")
    words = points({"rtx-cwnd": {"cmt": [1.0]}, "rtx-same": {"cmt": [2.0]}}, "scheme.mine.expression")
    with pytest.raises(StatisticsError, match="no numbers: `rtx-cwnd`, `rtx-same`"):
        regressions(words)
    with pytest.raises(StatisticsError, match="`goodput_kbps` of cmt: 2 points are too few"):
        regressions(points({0.0: {"cmt": [1.0]}, 0.1: {"cmt": [2.0]}}))
    with pytest.raises(StatisticsError, match="of cmt: `y` has a value that is NaN"):
        regressions(points({0.0: {"cmt": [1.0]}, 0.1: {"cmt": [2.0]}, 0.2: {"cmt": [math.nan]}}))
    with pytest.raises(StatisticsError, match="'points' or 'runs'"):
        regressions(losses(), points="seeds")
    with pytest.raises(StatisticsError, match="for each flow"):
        regressions(two_flows().to_pandas("flows").assign(**{LOSS: 0.1}))
