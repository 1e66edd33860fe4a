"""Study choice: winner of a cell, equally good schemes, gains, and capacity of the links."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from choice_planted import PLANS, SCHEMES, SEEDS, Goodputs, planted, planted_shares, two_links
from studies.choice.cells import cells, described, in_unit, limit_kbps, shared_limit_kbps
from studies.choice.choosing import advice, named, ranking
from studies.choice.judging import METRIC, exceeding, judge
from studies.choice.samples import interval, samples
from studies.choice.sharing import sharing, taken

from anabranch import Scenario
from anabranch.statistics import paired_difference, summary

CLEAR: Goodputs = {
    "sctp": [3000, 3020, 2990, 3010],
    "cmt": [4000, 4040, 3980, 4020],
    "cmt-pf": [2000, 2040, 1980, 2020],
    "mptcp-ns2": [9000, 9000, 9000, 9000],
}

KEPT = pd.DataFrame({"scheme": SCHEMES, "kept": [0.5, 0.4, 0.45, 0.5]})


def row_of(judged: pd.DataFrame, scheme: str, cell: int = 0) -> pd.Series:
    return judged[(judged["scheme"] == scheme) & (judged["cell"] == cell)].iloc[0]


def tied_in(judged: pd.DataFrame, cell: int = 0) -> list[str]:
    return list(judged[judged["tied"] & (judged["cell"] == cell)]["scheme"])


def test_the_scheme_with_the_highest_mean_wins() -> None:
    judged = judge(planted(CLEAR))
    assert list(judged[judged["winner"]]["scheme"]) == ["cmt"] * 8
    assert tied_in(judged) == ["cmt"]
    assert row_of(judged, "cmt")[METRIC] == 4010
    assert row_of(judged, "sctp")["of_best"] == pytest.approx(3005 / 4010)


def test_scheme_that_no_receiver_supports_cannot_win() -> None:
    judged = judge(planted(CLEAR))
    assert row_of(judged, "mptcp-ns2")[METRIC] == 9000
    assert not row_of(judged, "mptcp-ns2")["winner"]
    assert "mptcp-ns2" not in tied_in(judged)


def test_a_difference_that_may_be_chance_is_a_tie() -> None:
    judged = judge(planted({**CLEAR, "sctp": [4500, 3500, 4300, 3400]}))
    assert tied_in(judged) == ["sctp", "cmt"]
    assert list(judged[judged["winner"]]["scheme"].unique()) == ["cmt"]


def test_a_difference_that_is_sure_is_none_even_if_intervals_overlap() -> None:
    """Compares seeds that differ by more than the scheme's constant deficit of 5 %."""
    wide = [2000.0, 4000.0, 6000.0, 8000.0]
    judged = judge(planted({**CLEAR, "cmt": wide, "sctp": [0.95 * value for value in wide]}))
    assert "sctp" not in tied_in(judged)
    assert row_of(judged, "sctp")["gain"] == pytest.approx(-0.05)
    assert math.isnan(row_of(judged, "sctp")["gain_half_width"])


def test_less_than_a_hundredth_is_no_difference_however_sure() -> None:
    exactly = [4000.0] * SEEDS
    judged = judge(planted({**CLEAR, "cmt": exactly, "sctp": [3961.0] * SEEDS, "cmt-pf": [3959.0] * SEEDS}))
    assert tied_in(judged) == ["sctp", "cmt"]
    assert math.isnan(row_of(judged, "cmt")["half_width_kbps"])


def test_gains_and_means_are_those_of_the_statistics() -> None:
    rng = np.random.default_rng(7)
    results = planted({scheme: list(rng.normal(4000, 300, SEEDS)) for scheme in SCHEMES})
    judged = judge(results).set_index([*results.over, "scheme"])
    compared = paired_difference(results, "cmt", METRIC, relative=True).set_index([*results.over, "scheme"])
    found = judged.loc[compared.index]
    assert found["gain"].to_numpy() == pytest.approx(compared["mean"].to_numpy())
    assert found["gain_half_width"].to_numpy() == pytest.approx(compared["half_width"].to_numpy())
    means = summary(results, METRIC).set_index([*results.over, "scheme"]).loc[judged.index]
    assert judged[METRIC].to_numpy() == pytest.approx(means["mean"].to_numpy())
    assert judged["half_width_kbps"].to_numpy() == pytest.approx(means["half_width"].to_numpy())


def test_one_seed_has_no_interval() -> None:
    mean, half_width = interval(np.array([[5.0], [6.0]]))
    assert list(mean) == [5.0, 6.0]
    assert np.isnan(half_width).all()


def test_a_sweep_that_lacks_runs_is_refused() -> None:
    results = two_links()
    with pytest.raises(ValueError, match="was the sweep stopped"):
        samples(results.to_pandas().iloc[:-1], results.over, METRIC)


def scenario(**settings: object) -> Scenario:
    return Scenario.read(PLANS / "two-links.toml").with_values(
        {key.replace("__", ".").replace("path_", "path-"): value for key, value in settings.items()}
    )


def test_the_limit_is_what_the_paths_carry_if_the_buffer_is_large() -> None:
    given = scenario(
        association__recv_buffer="1 MiB",
        path__path_2__rate="16 Mbit/s",
        path__path_2__background__0__rate="800 kbit/s",
        path__path_2__loss__rate=0.05,
    )
    expected = (3800 + 15200 * 0.95) * 1468 / 1500
    assert limit_kbps(given) == pytest.approx(expected)
    assert shared_limit_kbps(given) == pytest.approx(expected)


def test_the_limit_is_buffer_over_round_trip_if_that_is_less() -> None:
    given = scenario(association__recv_buffer="32 KiB", path__path_2__delay="200 ms")
    assert limit_kbps(given) == pytest.approx(32 * 1024 * 8 / 40)
    # The quick path is full with 3718.9 kbit/s in 40 ms. Data in the rest of the buffer takes 200 ms over the slow
    # path, and its SACKs return over the fast path in 20 ms.
    first = 3800 * 1468 / 1500
    assert shared_limit_kbps(given) == pytest.approx(first + (32 * 1024 * 8 - first * 40) / 220)


def test_the_shared_limit_takes_the_quickest_way_back_of_any_path() -> None:
    given = scenario(association__recv_buffer="32 KiB", path__path_2__reverse={"delay": "10 ms"})
    assert shared_limit_kbps(given) == pytest.approx(min(2 * 3800 * 1468 / 1500, 32 * 1024 * 8 / 30))


def test_no_measured_mean_exceeds_either_limit() -> None:
    """Counts from the start, when the buffer is empty."""
    judged = judge(two_links())
    judged = judged[judged["scheme"] != "mptcp-ns2"]
    assert judged["of_limit"].between(0.01, 1).all()
    assert judged["of_shared_limit"].between(0.01, 1).all()


def test_fastest_path_decides_at_any_position() -> None:
    given = scenario(association__recv_buffer="32 KiB", path__path_2__delay="5 ms", path__path_2__rate="100 Mbit/s")
    assert limit_kbps(given) == pytest.approx(32 * 1024 * 8 / 10)


def test_a_cell_is_described_in_ratios() -> None:
    given = scenario(path__path_2__rate="1 Mbit/s", path__path_2__delay="100 ms", path__path_2__loss__rate=0.001)
    told = described(given)
    assert (told["buffer_kib"], told["rate_ratio"], told["rtt_ratio"]) == (128, 0.25, 5)
    assert told["loss_percent"] == 0.1
    assert in_unit("2 MiB", "KiB") == 2048
    with pytest.raises(ValueError, match="cannot be given in s"):
        in_unit("many", "s")


def test_losses_that_take_no_time_on_the_link_have_no_limit_here() -> None:
    with pytest.raises(ValueError, match="path-2: the limit is known for losses"):
        limit_kbps(scenario(path__path_2__loss=0.05))
    with pytest.raises(ValueError, match="path-2: the limit is known for losses"):
        limit_kbps(scenario(path__path_2__loss__where="before-queue"))


def test_cells_come_in_the_order_of_the_grid() -> None:
    frame = cells(two_links())
    assert list(frame["buffer_kib"]) == [32] * 4 + [1024] * 4
    assert list(frame["loss_percent"]) == [0, 5] * 4
    assert list(frame["rtt_ratio"]) == [1, 1, 5, 5] * 2


def test_value_above_the_limit_is_named() -> None:
    judged = judge(planted(CLEAR, {1: {**CLEAR, "sctp": [8000.0] * SEEDS}}))
    above = exceeding(judged)
    assert set(above["scheme"]) == {"sctp", "mptcp-ns2"}
    assert list(above[above["scheme"] == "sctp"]["cell"]) == [1]


def test_advice_is_the_scheme_that_comes_closest_on_average() -> None:
    """Compares `cmt`, which wins one cell by far, with `sctp`, which wins the other by little."""
    results = planted({**CLEAR, "sctp": [4200, 4250, 4180, 4240]}, {1: {**CLEAR, "sctp": [1000, 1010, 990, 1000]}})
    goodputs, judged = samples(results.to_pandas(), results.over, METRIC), judge(results)
    advised = advice(goodputs, judged, KEPT).set_index(["buffer_kib", "round_trips", "loss"])
    assert list(advised["cells"]) == [1] * 8
    assert advised.loc[(32, "alike", "little"), "use"] == "sctp"
    assert advised.loc[(32, "alike", "much"), "use"] == "cmt"
    assert advised.loc[(32, "alike", "little"), "cmt_of_best"] == pytest.approx(4010 / 4217.5)
    assert advised.loc[(32, "alike", "much"), "fair"] == "cmt-pf"
    assert advised.loc[(32, "alike", "little"), "fair"] == "sctp"
    ranked = ranking(goodputs, judged).set_index("scheme")
    assert list(ranked.index) == ["cmt", "sctp", "cmt-pf", "mptcp-ns2"]
    assert ranked.loc["sctp", "alone"] == 7
    assert ranked.loc["sctp", "worst"] == pytest.approx(1000 / 4010)
    assert ranked.loc["sctp", "most_gain"] == pytest.approx(4217.5 / 4010 - 1, rel=1e-3)
    assert ranked.loc["cmt", "gain"] == 0
    assert list(ranked["outside"]) == [False, False, False, True]


def test_advice_names_those_that_are_as_good_on_average() -> None:
    results = planted({**CLEAR, "cmt-pf": [4001, 4039, 3981, 4019]})
    advised = advice(samples(results.to_pandas(), results.over, METRIC), judge(results), KEPT)
    assert {advised["use"].iloc[0], *advised["as_good"].iloc[0]} == {"cmt", "cmt-pf"}


def test_simplest_of_tied_schemes_represents_the_cell() -> None:
    alike = CLEAR["cmt"]
    all_tie = judge(planted({**CLEAR, "sctp": alike, "cmt-pf": alike}))
    assert set(named(all_tie)) == {"sctp"}
    cmt_ties = judge(planted({**CLEAR, "cmt-pf": alike}))
    assert set(named(cmt_ties)) == {"cmt"}
    alone = judge(planted(CLEAR, {2: {**CLEAR, "cmt-pf": [5000.0] * SEEDS}}))
    assert list(named(alone)) == ["cmt", "cmt", "cmt-pf", *["cmt"] * 5]


def test_scheme_far_behind_represents_no_cell() -> None:
    """Gives `sctp` a variance that makes a deficit of a tenth insignificant."""
    judged = judge(planted({**CLEAR, "sctp": [4600, 2600, 4500, 2700]}))
    assert tied_in(judged) == ["sctp", "cmt"]
    assert set(named(judged)) == {"cmt"}


def test_the_share_that_is_kept_is_of_both_flows_together() -> None:
    results = planted_shares({"sctp": 3000, "cmt": 1500, "cmt-pf": 1000, "mptcp-ns2": 500})
    shares = sharing(results).set_index("scheme")
    assert shares.loc["cmt", "kept"] == pytest.approx((1500 / 4500 + 1510 / 4510) / 2)
    assert (shares.loc["cmt", "rtt_ratio"], shares.loc["cmt", "buffer_kib"], shares.loc["cmt", "n"]) == (2, 1024, SEEDS)
    over_all = taken(results).set_index("scheme")
    assert over_all.loc["cmt", "kept"] == pytest.approx(shares.loc["cmt", "kept"])
    assert over_all.loc["cmt", "half_width"] > 0
