"""Checks of the study degradation on planted figures: kept, broken, and too few samples."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from studies.bounds.points import read_points
from studies.degradation.given import of_point
from studies.degradation.load import check_queueing, check_wire, queueing_ms, wire_ratio
from studies.degradation.neighbours import Bottleneck
from studies.degradation.one_link import check_one_link
from studies.degradation.published import check_published, overall
from studies.degradation.setting import SUBJECT, Contest, Setting, run_table, subject
from studies.degradation.sharing import (
    check_free_link,
    check_policer,
    check_shares,
    check_two_alike,
    difference,
    dropped,
)
from studies.degradation.small_messages import check_messages

from anabranch.experiments.limits.known import Broken
from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan, as_json, of_json
from anabranch.experiments.limits.pages import blocks, detail_table, summary_table
from anabranch.experiments.limits.rules import Verdict, at_least
from anabranch.experiments.pages.document import markdown
from anabranch.experiments.points import Bench, Figures, MessageDelays, PathFigures, Trial
from anabranch.experiments.sweeps import SweepOptions

KEPT, BROKEN, UNDECIDED = Verdict.KEPT, Verdict.BROKEN, Verdict.UNDECIDED

PLAN = Plan(schemes=("cmt",), seeds=tuple(range(1, 21)), choosing=(101, 102, 103), duration_s=60, least_seeds=20)
FEW = Plan(schemes=("cmt",), seeds=(1, 2, 3), choosing=(101,), duration_s=60, least_seeds=20)


class MadeUp(Bench):
    """Figures from a function of trial and seed, in place of runs."""

    def __init__(self, figures: Callable[[Trial, int], Figures]) -> None:
        super().__init__(SweepOptions(cache=None))
        self._make = figures
        self.seeds: dict[str, set[int]] = {}

    def run(self, what: str, trials: Iterable[Trial], seeds: Sequence[int]) -> None:
        self.seeds.setdefault(what, set()).update(seeds)

    def of(self, trial: Trial, seeds: Sequence[int]) -> list[Figures]:
        return [self._make(trial, seed) for seed in seeds]


def figures(
    goodput: Mapping[str, float],
    paths: Mapping[str, PathFigures] | None = None,
    delivered: int = 1000,
    messages: Mapping[str, MessageDelays] | None = None,
) -> Figures:
    return Figures(dict(goodput), dict.fromkeys(goodput, delivered), dict(paths or {}), dict(messages or {}))


def path(sent: int = 100, dropped_packets: int = 0, size: int = 1500, delay_ms: float | None = None) -> PathFigures:
    arrived = sent - dropped_packets
    return PathFigures(sent, dropped_packets, arrived, arrived * size, delay_ms)


def noise(seed: int) -> float:
    return 1 + (seed % 5 - 2) / 200


def two_links(name: str = "made-up") -> Setting:
    link = {"rate": "1 Mbit/s", "delay": "10 ms"}
    table = {
        "run": run_table(60),
        "path": [{"name": "path-1", **link}, {"name": "path-2", **link}],
        "flow": [subject(["path-1", "path-2"])],
    }
    return Setting(name, table, ("path-1", "path-2"), uneven=True)


def way_of(trial: Trial) -> str:
    """Returns the paths of the subject in a trial's scenario."""
    return next(line for line in trial.scenario.splitlines() if line.startswith("paths = "))


def over(all_paths: float, first: float, second: float) -> Callable[[Trial, int], Figures]:
    """Goodputs over both paths and over each alone."""

    def made(trial: Trial, seed: int) -> Figures:
        way = way_of(trial)
        goodput = all_paths if "path-1" in way and "path-2" in way else first if "path-1" in way else second
        return figures({SUBJECT: goodput * noise(seed)})

    return made


def one_link(bench: Bench, plan: Plan = PLAN) -> CheckOutcome:
    (outcome,) = check_one_link("one-link", "title", 0.97, [two_links()], plan, bench)
    return outcome


@pytest.mark.parametrize(
    ("goodputs", "verdict"), [((1000, 900, 500), KEPT), ((980, 1000, 500), KEPT), ((900, 500, 1000), BROKEN)]
)
def test_goodput_over_all_paths_is_compared_with_the_best_path(
    goodputs: tuple[float, float, float], verdict: Verdict
) -> None:
    outcome = one_link(MadeUp(over(*goodputs)))
    assert outcome.verdict is verdict
    (finding,) = outcome.findings
    assert finding.judged.mean == pytest.approx(goodputs[0] / max(goodputs[1:]))
    assert outcome.broken == ([Broken("cmt", "one-link", "made-up")] if verdict is BROKEN else [])


def test_few_seeds_leave_a_check_undecided() -> None:
    assert one_link(MadeUp(over(1000, 900, 500)), FEW).verdict is UNDECIDED


def test_the_best_path_is_chosen_on_seeds_that_are_not_compared() -> None:
    def made(trial: Trial, seed: int) -> Figures:
        # The second path is better only where nothing is compared.
        better = "path-2" if seed > 100 else "path-1"
        return figures({SUBJECT: 1000.0 if better in way_of(trial) else 100.0})

    bench = MadeUp(made)
    assert one_link(bench).findings[0].judged.mean == pytest.approx(10.0)
    alone, compared = bench.seeds.values()
    assert alone == {101, 102, 103}
    assert compared == set(PLAN.seeds)


def rival_goodputs(**goodputs: float) -> Callable[[Trial, int], Figures]:
    return lambda trial, seed: figures({SUBJECT: goodputs[trial.scheme.replace("-", "_")] * noise(seed)})


def published(count: int, worse: int, uneven: bool = True) -> CheckOutcome:
    """Returns this number of settings, in some of which the scheme is worse than the best rival."""
    names = [f"setting-{number}" for number in range(count)]

    def made(trial: Trial, seed: int) -> Figures:
        bad = int(trial.point.rsplit("-")[-1]) < worse
        ours = 800.0 if bad else 1300.0
        return figures({SUBJECT: {"cmt": ours, "sctp": 900.0, "db-cmt": 1000.0}[trial.scheme] * noise(seed)})

    (outcome,) = check_published([two_links(name) for name in names], ["sctp", "db-cmt", "cmt"], PLAN, MadeUp(made))
    return outcome


def test_scheme_may_lose_to_the_best_rival_in_5_percent_of_settings() -> None:
    outcome = published(40, 2)
    assert outcome.verdict is KEPT
    assert outcome.findings[5].judged.mean == pytest.approx(1.3)
    assert "db-cmt 1000" in outcome.findings[5].note
    assert "38 of 40" in outcome.overall[0].text
    assert published(40, 3).verdict is BROKEN
    assert published(40, 3).broken == [Broken("cmt", "published", "share of settings")]


def test_the_median_counts_where_paths_lose_or_differ() -> None:
    slightly_better = [at_least([1.05, 1.06] * 10, 0.97)] * 5
    share, middle = overall(slightly_better, slightly_better)
    assert (share.verdict, middle.verdict) == (KEPT, BROKEN)
    assert overall(slightly_better, [])[1].verdict is UNDECIDED


def test_rivals_that_take_more_than_their_share_are_not_compared_with() -> None:
    setting = Setting("shared", two_links().table, ("path-1", "path-2"), Contest(("path-1",), ("other",)))

    def made(trial: Trial, seed: int) -> Figures:
        greedy = trial.scheme == "cmt-dfr"
        paths = {"path-1": path(700 if greedy else 400), "other": path(300 if greedy else 500)}
        return figures({SUBJECT: {"cmt": 500.0, "cmt-dfr": 700.0, "db-cmt": 450.0}[trial.scheme]}, paths)

    bench = MadeUp(made)
    (outcome,) = check_published([setting], ["cmt-dfr", "db-cmt"], PLAN, bench)
    assert outcome.findings[0].judged.mean == pytest.approx(500 / 450)
    (outcome,) = check_published([setting], ["cmt-dfr"], PLAN, bench)
    assert outcome.findings == ()
    assert outcome.verdict is UNDECIDED


@pytest.mark.parametrize(
    ("ours", "others", "verdict"), [(5000, 5000, KEPT), (7000, 3000, BROKEN), (2000, 8000, BROKEN)]
)
def test_a_share_has_to_lie_between_its_limits(ours: float, others: float, verdict: Verdict) -> None:
    def made(trial: Trial, seed: int) -> Figures:
        count = 4 if "other-4" in trial.scenario else 1
        # Beside four, the same share.
        mine = ours * noise(seed)
        all_others = others if count == 1 else mine * ((1 + 4) / (2 * mine / (mine + others)) - 1)
        return figures({SUBJECT: mine, **{f"other-{at}": all_others / count for at in range(count)}})

    (outcome,) = check_shares([Bottleneck(42, 20)], ["sctp"], PLAN, MadeUp(made))
    assert outcome.verdict is verdict
    assert [each.judged.mean for each in outcome.findings] == pytest.approx([2 * ours / 10_000] * 2, rel=0.02)


@pytest.mark.parametrize(("second", "verdict"), [(950, KEPT), (800, BROKEN)])
def test_two_flows_of_a_scheme_must_have_equal_shares(second: float, verdict: Verdict) -> None:
    bench = MadeUp(lambda trial, seed: figures({SUBJECT: 1000.0 * noise(seed), "second": second}))
    (outcome,) = check_two_alike([Bottleneck(42, 20)], PLAN, bench)
    assert outcome.verdict is verdict


def test_a_difference_is_relative_to_the_mean() -> None:
    assert difference(figures({SUBJECT: 900, "second": 1100})) == pytest.approx(0.2)
    assert difference(figures({SUBJECT: 0, "second": 0})) == 0


@pytest.mark.parametrize(("both", "verdict"), [(2000, KEPT), (1500, BROKEN)])
def test_beside_a_flow_on_one_of_two_links_the_free_one_is_the_least(both: float, verdict: Verdict) -> None:
    def made(trial: Trial, seed: int) -> Figures:
        own = trial.scenario.split('name = "subject"')[1].split("[[flow]]")[0]
        return figures({SUBJECT: (both if '"taken"' in own else 1900.0) * noise(seed)})

    (outcome,) = check_free_link(["sctp"], PLAN, MadeUp(made))
    assert outcome.verdict is verdict


@pytest.mark.parametrize(
    ("goodput", "dropped_packets", "broken"),
    [(1420, 2, []), (1300, 2, ["policer-1.5-of-10 goodput"]), (1420, 35, ["policer-1.5-of-10 dropped"])],
)
def test_policed_link_requires_use_without_excess_loss(goodput: float, dropped_packets: int, broken: list[str]) -> None:
    bench = MadeUp(
        lambda trial, seed: figures({SUBJECT: goodput * noise(seed)}, {"path-1": path(100, dropped_packets)})
    )
    (outcome,) = check_policer(PLAN, bench)
    assert [each.setting for each in outcome.broken] == broken
    assert dropped(figures({SUBJECT: 1}, {"path-1": path(100, 35)})) == 0.35
    assert dropped(figures({SUBJECT: 0}, {"path-1": path(0)})) == 0


@pytest.mark.parametrize(
    ("delay_ms", "base_ms", "broken"),
    [
        (25, 60, []),
        (60, 25, ["added ms"]),
        # The baseline fills the queue of 50.4 ms: half of that is the most.
        (55, 60, ["of cmt"]),
        # The baseline does not fill the queue, so half of the queue is not the limit.
        (40, 41, []),
    ],
)
def test_queues_are_compared_with_the_baseline(delay_ms: float, base_ms: float, broken: list[str]) -> None:
    plan = dataclasses.replace(PLAN, schemes=("bonded",))

    def made(trial: Trial, seed: int) -> Figures:
        each = path(100, delay_ms=(base_ms if trial.scheme == "cmt" else delay_ms) * noise(seed))
        return figures({SUBJECT: 1}, {"left": each, "right": each})

    (outcome,) = check_queueing([Bottleneck(42, 20)], [], plan, MadeUp(made))
    assert [each.setting.removeprefix("queue-42-delay-20-alone ") for each in outcome.broken] == broken


def test_queueing_is_the_mean_over_packets() -> None:
    made = figures({SUBJECT: 1}, {"a": path(100, delay_ms=30), "b": path(300, delay_ms=50), "c": path(0)})
    assert queueing_ms(made, {"a": 20, "b": 20, "c": 20}) == pytest.approx((100 * 10 + 300 * 30) / 400)
    assert queueing_ms(figures({SUBJECT: 1}, {"c": path(0)}), {"c": 20}) == 0


@pytest.mark.parametrize(("sent", "verdict"), [(100, KEPT), (130, BROKEN)])
def test_bytes_on_the_wire_are_compared_with_losses(sent: int, verdict: Verdict) -> None:
    point = next(each for group in read_points() for each in group.points if each.id == "clean-1")
    bench = MadeUp(lambda trial, seed: figures({SUBJECT: 1}, {"path-1": path(sent), "path-2": path(0)}, 145_200))
    (outcome,) = check_wire([point], PLAN, bench)
    assert outcome.verdict is verdict
    assert of_point(point, 60).paths == ("path-1", "path-2")


def test_lost_bytes_may_be_retransmitted() -> None:
    made = figures({SUBJECT: 1}, {"path-1": path(100, 10)}, 90 * 1452)
    assert wire_ratio(made, {"path-1": 0.1}) == pytest.approx(1500 / 1452)
    assert wire_ratio(made, {"path-1": 0.0}) == pytest.approx(1500 / 1452 / 0.9)


@pytest.mark.parametrize(("p99_ms", "verdict"), [(90, KEPT), (120, BROKEN)])
def test_slowest_small_messages_are_compared_with_the_baseline(p99_ms: float, verdict: Verdict) -> None:
    plan = dataclasses.replace(PLAN, schemes=("bonded",))

    def made(trial: Trial, seed: int) -> Figures:
        p99 = (100.0 if trial.scheme == "cmt" else p99_ms) * noise(seed)
        return figures({SUBJECT: 1}, messages={SUBJECT: MessageDelays(100, 100, 50, p99, 10)})

    (outcome,) = check_messages(plan, MadeUp(made))
    assert outcome.verdict is verdict


def test_figures_with_different_limits_have_no_median() -> None:
    outcome = one_link(MadeUp(over(900, 500, 1000)))
    (finding,) = outcome.findings
    assert summary_table([outcome]).rows[0][7] == "0.90"
    other = dataclasses.replace(finding, setting="dropped", low=0.0, high=0.03)
    assert summary_table([dataclasses.replace(outcome, findings=(finding, other))]).rows[0][7] == ""


def test_tables_have_rows_per_check_and_setting_and_mark_violations() -> None:
    outcome = one_link(MadeUp(over(900, 500, 1000)))
    assert summary_table([outcome]).rows[0][:6] == ["one-link", "`cmt`", "broken", "1", "0", "1"]
    (row,) = detail_table([outcome]).rows
    assert row[0] == "made-up"
    assert str(row[1]).startswith("**0.90 ± ")
    text = markdown(blocks(PLAN, [outcome]))
    assert "## title" in text
    assert "0.97" in text
    (check,) = as_json(PLAN, [outcome])["checks"]
    assert (check["verdict"], check["settings"][0]["high"]) == ("broken", None)


def test_outcome_read_from_json_gives_equal_tables() -> None:
    outcomes = [one_link(MadeUp(over(900, 500, 1000))), one_link(MadeUp(over(900, 500, 1000)), FEW)]
    plan, read = of_json(json.loads(json.dumps(as_json(PLAN, outcomes))))
    assert plan == PLAN
    assert markdown(blocks(plan, read, folded=True)) == markdown(blocks(PLAN, outcomes, folded=True))
    assert [each.broken for each in read] == [each.broken for each in outcomes]


def test_table_of_points_has_limits_that_differ_and_common_notes() -> None:
    judged = at_least([0.9] * 20, 0.5)
    first, second = (Finding(f"point-{at}", judged, at / 10, math.inf, f"bound {at}") for at in (4, 5))
    outcomes = [CheckOutcome("goal", "Goal", "limit", scheme, (first, second)) for scheme in ("cmt", "sctp")]
    table = detail_table(outcomes)
    assert table.header == ["setting", "limit", "`cmt`", "`sctp`", "with"]
    assert list(table.rows[0]) == ["point-4", "≥ 0.4", "0.90 ± 0.00", "0.90 ± 0.00", "bound 4"]
