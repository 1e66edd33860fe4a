"""Verdicts: with samples that are planted, every verdict occurs, and a wrong sign is caught."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from papers_planted import GOODPUT, LOSS, around, axis, claim, grid, of

from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.claims.compare import Compare
from anabranch.experiments.claims.deferred import Deferred
from anabranch.experiments.claims.gain_trend import GainTrend, Point
from anabranch.experiments.claims.order import Order
from anabranch.experiments.claims.quantity import Grids
from anabranch.experiments.claims.regression import Regression
from anabranch.experiments.claims.trend import Trend
from anabranch.experiments.claims.value import Number
from anabranch.experiments.samples import SampleGrid
from anabranch.experiments.verdicts import rules
from anabranch.experiments.verdicts.estimates import complete, estimate, sign
from anabranch.experiments.verdicts.finding import Judgement, decided
from anabranch.experiments.verdicts.grades import Verdict

R, A, D, X, C = (
    Verdict.REPRODUCED,
    Verdict.ABOUT,
    Verdict.DIRECTION_ONLY,
    Verdict.DIFFERS,
    Verdict.CANNOT_TELL,
)


def judge(claim: Claim, grids: Grids) -> Judgement:
    return claim.judge(grids)


def verdict(statement: Any, samples: SampleGrid, **more: Any) -> Verdict:
    return judge(claim(statement, **more), lambda experiment, measure: samples).verdict


def pair(a: float, b: float, spread: float = 10.0) -> SampleGrid:
    """Returns two schemes whose samples are independent."""
    return grid({"A": [around(a, spread, seed=1)], "B": [around(b, spread, seed=2)]})


def curve(*means: float, spread: float = 10.0) -> SampleGrid:
    """Returns one scheme along an axis."""
    along = axis(tuple(0.01 * i for i in range(len(means))))
    return grid({"A": [around(mean, spread, seed=i) for i, mean in enumerate(means)]}, along)


def curves(a: tuple[float, ...], b: tuple[float, ...], spread: float = 10.0) -> SampleGrid:
    """Returns two schemes along an axis."""
    along = axis(tuple(0.01 * i for i in range(len(a))))
    return grid(
        {
            "A": [around(mean, spread, seed=i) for i, mean in enumerate(a)],
            "B": [around(mean, spread, seed=100 + i) for i, mean in enumerate(b)],
        },
        along,
    )


HIGHER = Compare(of("A"), of("B"), "higher", percent=20)
LOWER = Compare(of("A"), of("B"), "lower", percent=20)


@pytest.mark.parametrize(
    ("a", "b", "spread", "found"),
    [
        (1200, 1000, 10, R),
        (1250, 1000, 10, A),
        (1095, 1000, 10, D),
        (1500, 1000, 10, D),
        (800, 1000, 10, X),
        (1010, 1000, 200, C),
    ],
)
def test_a_claim_that_one_is_higher_gets_every_verdict(a: float, b: float, spread: float, found: Verdict) -> None:
    assert verdict(HIGHER, pair(a, b, spread)) is found


@pytest.mark.parametrize(
    ("a", "b", "spread", "found"),
    [(800, 1000, 10, R), (970, 1000, 10, D), (1200, 1000, 10, X), (990, 1000, 200, C)],
)
def test_a_claim_that_one_is_lower_gets_every_verdict(a: float, b: float, spread: float, found: Verdict) -> None:
    assert verdict(LOWER, pair(a, b, spread)) is found


def test_percentage_divides_by_the_base_of_its_convention() -> None:
    samples = pair(500, 1000, 1)
    of_b = judge(claim(Compare(of("A"), of("B"), "lower", 50, "of_b")), lambda *_: samples)
    of_a = judge(claim(Compare(of("A"), of("B"), "lower", 100, "of_a")), lambda *_: samples)
    drop = judge(claim(Compare(of("A"), of("B"), "lower", 50, "drop")), lambda *_: samples)
    figures = [each.parts[0].finding.ours.mean for each in (of_b, of_a, drop)]
    assert figures == pytest.approx([-50, -100, -50])
    assert [each.verdict for each in (of_b, of_a, drop)] == [R, R, R]


@pytest.mark.parametrize(
    ("relation", "a", "spread", "found"),
    [
        ("about", 1010, 10, R),
        ("about", 1200, 10, X),
        ("about", 800, 10, X),
        ("about", 1050, 10, C),
        ("not-lower", 1200, 10, R),
        ("not-lower", 990, 10, R),
        ("not-lower", 800, 10, X),
        ("not-lower", 1000, 300, C),
        ("not-higher", 800, 10, R),
        ("not-higher", 1010, 10, R),
        ("not-higher", 1200, 10, X),
        ("not-higher", 1000, 300, C),
    ],
)
def test_about_the_same_is_within_five_percent(relation: Any, a: float, spread: float, found: Verdict) -> None:
    assert verdict(Compare(of("A"), of("B"), relation), pair(a, 1000, spread)) is found


def test_schemes_that_do_the_same_in_every_run_are_not_one_above_the_other() -> None:
    same = around(1000)
    samples = grid({"A": [same], "B": [same]})
    assert verdict(HIGHER, samples) is X
    assert verdict(Compare(of("A"), of("B"), "about"), samples) is R


def test_paired_comparison_finds_differences_below_the_scatter() -> None:
    common = around(1000, spread=300, seed=1)
    samples = grid({"A": [common + around(100, spread=5, seed=2)], "B": [common]})
    assert verdict(Compare(of("A"), of("B"), "higher"), samples) is R
    shuffled = grid({"A": [samples.values[0][::-1]], "B": [common]})
    assert verdict(Compare(of("A"), of("B"), "higher"), shuffled) is C


@pytest.mark.parametrize(
    ("mean", "spread", "found"),
    [(1100, 50, R), (1400, 50, A), (600, 50, X), (1600, 50, X), (1510, 150, C), (1000, 2000, C)],
)
def test_a_number_gets_every_verdict(mean: float, spread: float, found: Verdict) -> None:
    assert verdict(Number(of("A"), 1000, 1000, "kbit/s"), pair(mean, 0, spread), kind="value") is found


def test_a_number_below_zero_has_a_band_as_well() -> None:
    assert verdict(Number(of("A"), -100, -100, "x"), pair(-110, 0, 5), kind="value") is R
    assert verdict(Number(of("A"), -100, -100, "x"), pair(110, 0, 5), kind="value") is X


@pytest.mark.parametrize(
    ("means", "spread", "found"),
    [
        ((1000, 900, 800, 700), 10, R),
        ((1000, 900, 905, 700), 30, R),
        ((1000, 700, 850, 600), 10, D),
        ((700, 800, 900, 1000), 10, X),
        ((1000, 400, 500, 1100), 10, X),
        ((1000, 400, 500, 990), 2, X),
        ((1000, 990, 995, 985), 300, C),
    ],
)
def test_a_trend_gets_every_verdict(means: tuple[float, ...], spread: float, found: Verdict) -> None:
    assert verdict(Trend(of("A"), LOSS, "falling"), curve(*means, spread=spread), kind="trend") is found


def test_a_rise_is_not_taken_for_a_fall() -> None:
    rising = curve(700, 800, 900)
    assert verdict(Trend(of("A"), LOSS, "rising"), rising, kind="trend") is R
    assert verdict(Trend(of("A"), LOSS, "falling"), rising, kind="trend") is X


def test_rise_from_zero_is_shown_as_absolute_value() -> None:
    rising = claim(Trend(of("A"), LOSS, "rising"), kind="trend")
    found = judge(rising, lambda *_: curve(0, 40, 90, spread=0)).parts[0].finding
    assert (found.ours.mean, found.unit) == (90, "from 0 on")


@pytest.mark.parametrize(
    ("means", "spread", "found"),
    [((1000, 1010, 990), 10, R), ((1000, 1200, 900), 10, X), ((1000, 1000, 1000), 400, C)],
)
def test_constant_trend_stays_within_five_percent_of_its_mean(
    means: tuple[float, ...], spread: float, found: Verdict
) -> None:
    assert verdict(Trend(of("A"), LOSS, "flat"), curve(*means, spread=spread), kind="trend") is found


def three(a: float, b: float, c: float, spread: float = 10.0) -> SampleGrid:
    samples = {"A": a, "B": b, "C": c}
    return grid({name: [around(mean, spread, seed=seed)] for seed, (name, mean) in enumerate(samples.items())})


@pytest.mark.parametrize(
    ("means", "spread", "found"),
    [
        ((1200, 1100, 1000), 10, R),
        ((1200, 1000, 1100), 10, D),
        ((1000, 1100, 1200), 10, X),
        ((1000, 1200, 1100), 10, X),
        ((1010, 1005, 1000), 200, C),
        ((1200, 1100, 1099), 10, D),
        ((1200, 1195, 1190), 20, C),
    ],
)
def test_an_order_gets_every_verdict(means: tuple[float, float, float], spread: float, found: Verdict) -> None:
    assert verdict(Order(of("A", "B", "C")), three(*means, spread=spread), kind="order") is found


POINTS = tuple(Point(f"{i}", {LOSS: (0.01 * i,)}) for i in range(4))
GAIN = GainTrend(of("A"), of("B"), POINTS, "rising")


def test_a_gain_can_be_a_difference() -> None:
    samples = curves((1100, 1210, 1330), (1000, 1100, 1210), spread=0.5)
    points = POINTS[:3]
    absolute = GainTrend(of("A"), of("B"), points, "rising", "difference")
    found = judge(claim(absolute, kind="gain-trend"), lambda *_: samples)
    assert found.verdict is R
    assert found.parts[0].finding.ours.mean == pytest.approx(20, abs=0.5)
    assert found.parts[0].finding.unit == "kbit/s"
    assert found.parts[0].finding.detail.startswith("gains +100.")
    assert verdict(GainTrend(of("A"), of("B"), points, "rising"), samples, kind="gain-trend") is not R


PRINTED = GainTrend(of("A"), of("B"), POINTS, "rising", gains=(10, 20, 30, 40))


@pytest.mark.parametrize(
    ("leads", "found"),
    [
        ((10, 20, 30, 40), R),
        ((13, 25, 36, 50), A),
        ((1, 2, 3, 4), D),  # it grows, but is a tenth of the paper's
        ((-2, 20, 30, 40), D),  # no gain at one point
        ((-5, -4, 3, 8), D),  # a loss at first
        ((-40, -30, -20, -2), X),  # it grows and is none
        ((-40, -30, -20, 2), X),  # none on average
        ((40, 30, 20, 10), X),
    ],
)
def test_a_growing_gain_has_a_sign_and_a_size(leads: tuple[float, ...], found: Verdict) -> None:
    samples = curves(tuple(1000 + 10 * lead for lead in leads), (1000,) * 4, spread=1)
    assert verdict(PRINTED, samples, kind="gain-trend") is found


def test_growing_lead_that_is_a_deficit_is_not_reproduced() -> None:
    absolute = GainTrend(of("A"), of("B"), POINTS, "rising", "difference")
    deficits = curves((997, 998, 999, 999.8), (1000,) * 4, spread=0.1)
    assert verdict(absolute, deficits, kind="gain-trend") is X
    assert verdict(replace(absolute, sign="any"), deficits, kind="gain-trend") is R


def test_claimed_gain_of_zero_has_no_sign() -> None:
    statement = GainTrend(of("A"), of("B"), POINTS[:3], "rising", "difference", (-100, -50, 0))
    assert verdict(statement, curves((900, 950, 1000), (1000,) * 3, spread=1), kind="gain-trend") is R
    assert verdict(statement, curves((1100, 1150, 1200), (1000,) * 3, spread=1), kind="gain-trend") is X


def test_shrinking_gain_has_its_sign_at_the_first_point() -> None:
    shrinking = GainTrend(of("A"), of("B"), POINTS, "falling")
    assert verdict(shrinking, curves((1300, 1200, 1100, 1050), (1000,) * 4, 5), kind="gain-trend") is R
    assert verdict(shrinking, curves((990, 900, 800, 700), (1000,) * 4, 5), kind="gain-trend") is X


@pytest.mark.parametrize(
    ("a", "spread", "found"),
    [
        ((1000, 1100, 1200, 1300), 5, R),
        ((1000, 1200, 1100, 1300), 5, D),
        ((1300, 1200, 1100, 1000), 5, X),
        ((1010, 1000, 1005, 1015), 200, C),
    ],
)
def test_a_gain_along_an_axis_gets_every_verdict(a: tuple[float, ...], spread: float, found: Verdict) -> None:
    assert verdict(GAIN, curves(a, (1000,) * 4, spread), kind="gain-trend") is found


def test_gain_is_relative_and_smaller_difference_can_be_larger_gain() -> None:
    samples = curves((1100, 550, 275, 140), (1000, 480, 230, 110), spread=0.5)
    assert verdict(GAIN, samples, kind="gain-trend") is R


@pytest.mark.parametrize(
    ("means", "spread", "found"),
    [
        ((1000, 900, 800, 700), 5, R),
        ((1000, 800, 600, 400), 5, D),
        ((700, 800, 900, 1000), 5, X),
        ((1000, 900, 800, 700), 150, A),
        ((1000, 900, 800, 700), 400, C),
    ],
)
def test_the_slope_of_a_line_gets_every_verdict(means: tuple[float, ...], spread: float, found: Verdict) -> None:
    statement = Regression(of("A"), LOSS, "slope", -100, -100)
    assert verdict(statement, curve(*means, spread=spread), kind="regression") is found


@pytest.mark.parametrize(
    ("statistic", "value", "means", "found"),
    [
        ("intercept", 1000, (1000, 900, 800, 700), R),
        ("intercept", 2000, (1000, 900, 800, 700), X),
        ("r2", 0.99, (1000, 900, 800, 700), R),
        ("r2", 0.99, (1000, 600, 950, 650), X),
        ("multiple_r", 0.99, (1000, 900, 800, 700), R),
    ],
)
def test_other_figures_of_a_line_are_numbers(
    statistic: Any, value: float, means: tuple[float, ...], found: Verdict
) -> None:
    statement = Regression(of("A"), LOSS, statistic, value, value)
    assert verdict(statement, curve(*means, spread=2), kind="regression") is found


@pytest.mark.parametrize(("status", "rank"), [("inconsistent", "H"), ("misprint", "S"), ("suspect", "X")])
def test_claim_that_contradicts_its_paper_is_shown_but_not_counted(status: Any, rank: Any) -> None:
    judgement = judge(claim(HIGHER, rank, status), lambda *_: pair(800, 1000))
    assert judgement.verdict is Verdict.CONTRADICTORY
    assert judgement.parts[0].finding.ours.mean == pytest.approx(-20)


def test_suspect_claim_is_judged() -> None:
    assert verdict(HIGHER, pair(800, 1000), status="suspect", rank="W") is X
    assert verdict(HIGHER, pair(1200, 1000), status="derived", rank="S") is R


def test_claim_that_needs_a_video_stays_open() -> None:
    judgement = judge(claim(Deferred("needs a codec"), kind="deferred"), lambda *_: pair(0, 0))
    assert judgement.verdict is Verdict.OPEN
    assert judgement.detail == "needs a codec"


def test_a_claim_about_several_schemes_is_as_good_as_the_worst_of_them() -> None:
    statement = Compare(of("A"), of("B", "C"), "higher")
    assert verdict(statement, three(1200, 1000, 1100)) is R
    assert verdict(statement, three(1200, 1000, 1300)) is X
    assert verdict(statement, three(1200, 1000, 1200, spread=20)) is C
    judgement = judge(claim(statement), lambda *_: three(1200, 1000, 1300))
    assert [part.label for part in judgement.parts] == ["A to B", "A to C"]


def test_a_claim_for_each_scheme_compares_a_scheme_with_itself() -> None:
    at_first, at_last = {LOSS: (0.0,)}, {LOSS: (0.01,)}
    statement = Compare(of("A", "B", at=at_last), of("A", "B", at=at_first), "lower", each=True)
    assert verdict(statement, curves((1000, 800), (900, 700))) is R
    assert verdict(statement, curves((1000, 800), (900, 950))) is X


def test_a_claim_in_each_cell_holds_if_it_does_in_all() -> None:
    statement = Compare(of("A"), of("B"), "higher", at_each=(LOSS,))
    assert verdict(statement, curves((1100, 1100, 1100), (1000, 1000, 1000))) is R
    assert verdict(statement, curves((1200, 1200, 900), (1000, 1000, 1000))) is D
    assert verdict(statement, curves((1020, 900, 900), (1000, 1000, 1000))) is X
    assert verdict(statement, curves((1200, 1200, 1001), (1000, 1000, 1000))) is D
    assert verdict(statement, curves((1200, 1001, 1001), (1000, 1000, 1000))) is C


def test_a_claim_in_most_cells_may_fail_in_some() -> None:
    statement = Compare(of("A"), of("B"), "higher", at_each=(LOSS,), share=0.7)
    assert verdict(statement, curves((1200, 1200, 1200, 900), (1000,) * 4)) is R
    assert verdict(statement, curves((1200, 1200, 900, 900), (1000,) * 4)) is D
    assert verdict(statement, curves((1010, 900, 900, 900), (1000,) * 4)) is X


def test_trends_and_orders_can_be_claimed_in_each_cell() -> None:
    two = (axis((0.0, 0.1)), axis(("32 KB", "64 KB"), "rbuf"))

    def cells(a: list[list[float]], b: list[list[float]]) -> SampleGrid:
        values = np.array([[[around(m, 5, seed=int(m)) for m in row] for row in s] for s in (a, b)])
        return SampleGrid(("A", "B"), two, tuple(range(20)), values, two)

    samples = cells([[1000, 1100], [700, 800]], [[900, 1000], [750, 650]])
    trend = Trend(of("A"), LOSS, "falling", at_each=("rbuf",))
    assert verdict(trend, samples, kind="trend") is R
    assert verdict(Order(of("A", "B"), at_each=("rbuf",)), samples, kind="order") is R
    assert verdict(Order(of("A", "B"), at_each=("rbuf", LOSS)), samples, kind="order") is D


def test_noise_in_one_of_many_cells_does_not_speak_against_a_claim() -> None:
    # At 95 % this cell alone would: of twenty cells one does by chance.
    borderline = around(0, 10, seed=3)
    borderline = borderline - borderline.mean() - 5.0
    a = [around(1100, 10, seed=i) for i in range(19)] + [1000 + borderline]
    b = [around(1000, 0.0, seed=99)] * 20
    along = axis(tuple(0.01 * i for i in range(20)))
    samples = grid({"A": a, "B": b}, along)
    alone = rules.compare(a[-1], b[-1], "higher")
    assert alone.verdict is X
    judged = judge(claim(Compare(of("A"), of("B"), "higher", at_each=(LOSS,))), lambda *_: samples)
    assert judged.parts[0].finding.detail == "holds in 19 of 20 cells, the contrary in 0"


def test_single_seed_gives_no_verdict() -> None:
    samples = grid({"A": [np.array([1200.0])], "B": [np.array([1000.0])]})
    for statement in (HIGHER, Number(of("A"), 1200, 1200, "kbit/s"), Order(of("A", "B"))):
        assert verdict(statement, samples) is C


def test_runs_without_a_value_are_left_out_with_their_pairs() -> None:
    a, b = around(1200), around(1000)
    a[3] = np.nan
    b[7] = np.nan
    judgement = judge(claim(HIGHER), lambda *_: grid({"A": [a], "B": [b]}))
    assert judgement.verdict is R
    assert judgement.parts[0].finding.ours.n == 18


def test_missing_values_give_no_verdict() -> None:
    nothing = np.full(20, np.nan)
    samples = grid({"A": [nothing], "B": [around(1000)]})
    for statement in (HIGHER, Number(of("A"), 1200, 1200, "kbit/s"), Order(of("A", "B"))):
        judgement = judge(claim(statement), lambda *_, samples=samples: samples)
        assert judgement.verdict is C
    empty = grid({"A": [nothing, nothing, nothing]}, axis())
    assert verdict(Trend(of("A"), LOSS, "falling"), empty, kind="trend") is C
    assert verdict(Regression(of("A"), LOSS, "slope", 1, 1), empty, kind="regression") is C


def test_a_division_by_zero_is_no_size() -> None:
    zero = np.zeros(20)
    assert verdict(Compare(of("A"), of("B"), "higher", percent=10), grid({"A": [around(5, 1)], "B": [zero]})) is D
    assert verdict(Compare(of("A"), of("B"), "about"), grid({"A": [zero], "B": [zero]})) is R


def test_omitted_value_is_reported() -> None:
    whole = axis((0.0, 0.05, 0.1))
    samples = grid(
        {"A": [around(1200), around(900)], "B": [around(1000), around(800)]}, axis((0.0, 0.1)), whole=(whole,)
    )
    at = {LOSS: (0.05,)}
    judgement = judge(claim(Compare(of("A", at=at), of("B", at=at), "higher")), lambda *_: samples)
    assert (judgement.verdict, judgement.detail) == (C, "plr = 0.05 was omitted")
    assert verdict(Compare(of("A"), of("B"), "higher"), samples) is R
    mean = judge(claim(Number(of("A"), 1050, 1050, "kbit/s")), lambda *_: samples)
    assert (mean.verdict, mean.detail) == (C, "of plr, 1 of 3 values were omitted")
    assert verdict(Number(of("A", at={LOSS: (0.0, 0.1)}), 1050, 1050, "kbit/s"), samples) is R
    line = judge(claim(Regression(of("A"), LOSS, "slope", -30, -30)), lambda *_: samples)
    assert line.detail == "of plr, 1 of 3 values were omitted"


def test_counts_of_shorter_runs_are_not_compared_with_the_paper() -> None:
    from anabranch.experiments.claims.quantity import Quantity
    from anabranch.experiments.model import Measure

    samples = grid({"A": [around(100, 1)]}, shortened=True)
    count = Quantity(("A",), Measure("timeouts"))
    assert verdict(Number(count, 100, 100, "count"), samples) is C
    assert verdict(Number(of("A"), 100, 100, "kbit/s"), samples) is R


def test_quantities_of_two_experiments_are_paired_by_common_seeds() -> None:
    common = around(1000, 300, seeds=20)
    grids = {"only": grid({"A": [common[:10] + 50]}), "other": grid({"B": [common]})}
    statement = Compare(of("A"), of("B", experiment="other"), "higher")
    judgement = judge(claim(statement), lambda experiment, measure: grids[experiment])
    assert judgement.verdict is R
    assert judgement.parts[0].finding.ours.n == 10


def test_a_gain_can_be_compared_between_experiments() -> None:
    grids = {"only": pair(1100, 1000, 5), "other": pair(1300, 1000, 5)}
    points = (Point("only", {}), Point("other", {}, "other"))
    statement = GainTrend(of("A"), of("B"), points, "rising")
    assert judge(claim(statement, kind="gain-trend"), lambda experiment, _: grids[experiment]).verdict is R


def judged(found: Verdict) -> Judgement:
    return Judgement(found)


@pytest.mark.parametrize(
    ("default", "variants", "found", "depends_on"),
    [
        (R, {}, R, ()),
        (R, {"v": R}, R, ()),
        (R, {"v": D}, R, ()),
        (D, {"v": R}, D, ()),
        (R, {"v": X}, C, ("v",)),
        (X, {"v": R, "w": X}, C, ("v",)),
        (X, {"v": D}, C, ("v",)),
        (R, {"v": C}, R, ()),
        (C, {"v": R}, C, ()),
        (C, {"v": R, "w": X}, C, ("v", "w")),
        (Verdict.CONTRADICTORY, {"v": X}, Verdict.CONTRADICTORY, ()),
        (Verdict.OPEN, {}, Verdict.OPEN, ()),
    ],
)
def test_claim_that_depends_on_a_plausible_value_is_undecided(
    default: Verdict, variants: dict[str, Verdict], found: Verdict, depends_on: tuple[str, ...]
) -> None:
    judgements = {name: judged(each) for name, each in variants.items()}
    assert decided(judged(default), judgements) == (found, depends_on)


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    from anabranch.statistics import mean_interval

    sample = around(1234, 56, seeds=7)
    ours, students = estimate(lambda each: float(each.mean()), sample), mean_interval(sample)
    assert ours.mean == pytest.approx(students.mean)
    assert ours.half_width == pytest.approx(students.half_width)
    assert sign(ours) == 1


def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(300):
        b = random.normal(1000, 100, size=20)
        both = np.stack([1.16 * b + random.normal(0, 80, size=20), b])
        found = estimate(rules.percent_above, both)
        covered += found.low <= 16 <= found.high
    assert 0.90 < covered / 300 < 0.99


def test_a_constant_difference_of_scattered_values_is_deterministic() -> None:
    b = around(1e6 / 3, 1e5)
    found = estimate(lambda each: float((each[0] - each[1]).mean()), np.stack([b + 0.1, b]))
    assert found.kind == "deterministic"
    assert found.mean == pytest.approx(0.1)
    assert sign(estimate(lambda each: float((each[0] - each[1]).mean()), np.stack([b, b]))) == 0


def test_estimate_of_zero_has_no_sign() -> None:
    assert sign(estimate(lambda each: float(each.mean()), np.empty(0))) is None
    assert math.isnan(estimate(lambda each: math.nan, around(1)).mean)
    assert complete(np.array([1.0, np.nan]))[0].tolist() == [1.0]


def test_measure_is_read_from_the_grid_that_has_it() -> None:
    asked = []

    def grids(experiment: str, measure: Any) -> SampleGrid:
        asked.append((experiment, measure))
        return pair(1200, 1000)

    judge(claim(HIGHER), grids)
    assert set(asked) == {("only", GOODPUT)}
