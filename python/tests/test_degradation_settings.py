"""Settings in which harm is looked for: all of them can be run, and a draw is the same each time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from studies.bounds.points import read_points, scenario_of
from studies.degradation.collapsing import collapsing
from studies.degradation.drawing import draw
from studies.degradation.given import of_plan, of_point
from studies.degradation.neighbours import alone, beside, bottlenecks, one_link_taken, policed, two_alike
from studies.degradation.setting import SUBJECT, Contest, Setting, share_of
from studies.degradation.small_messages import settings as message_settings

from anabranch.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


def every_setting() -> list[Setting]:
    link = bottlenecks()[0]
    return [
        *draw(3, 40, 60),
        *collapsing(60),
        *message_settings(60),
        *[beside(each, "sctp", 4, 60) for each in bottlenecks()],
        two_alike(link, 60),
        alone(link, 60),
        one_link_taken("sctp", 60),
        policed(60),
        *[of_point(point, 60) for group in read_points() for point in group.points],
    ]


@pytest.mark.parametrize("setting", every_setting(), ids=lambda setting: setting.name)
def test_every_setting_can_be_run_with_all_paths_and_with_each_alone(setting: Setting) -> None:
    for way in (None, *setting.paths):
        scenario = Scenario.parse(setting.trial("cmt", way).scenario)
        flow = next(flow for flow in scenario.flows if flow.name == SUBJECT)
        assert tuple(flow.paths or ()) == ((way,) if way else setting.paths)
        assert flow.scheme is None, "its scheme is that of the trial"


def test_the_names_of_settings_differ() -> None:
    names = [setting.name for setting in every_setting()]
    assert len(set(names)) == len(names)


def test_a_draw_is_the_same_each_time_and_a_longer_one_begins_alike() -> None:
    first, longer, other = draw(7, 5, 60), draw(7, 9, 60), draw(8, 5, 60)
    assert [each.table for each in first] == [each.table for each in longer[:5]]
    assert all(one.table != two.table for one, two in zip(first, other, strict=True))


def test_drawn_setting_has_the_required_parts() -> None:
    drawn = [tomllib.loads(setting.trial("cmt").scenario) for setting in draw(1, 200, 60)]
    links = [link for table in drawn for link in table["link"]]

    def number(text: str) -> float:
        value, unit = text.split()
        factors = {"kbit/s": 1.0, "Mbit/s": 1000.0, "bit/s": 0.001, "us": 0.001, "ms": 1.0, "packets": 1.0}
        return float(value) * factors[unit]

    assert {len(table["link"]) for table in drawn} == {2, 3, 4}
    assert all(500 <= number(link["rate"]) <= 40_000 for link in links)
    assert all(3 <= number(link["delay"]) <= 160 for link in links)
    assert all(20 <= number(link["queue"]) <= 200 for link in links)
    losses = [loss for link in links for loss in link["loss"]]
    assert {loss["model"] for loss in losses} == {"bernoulli", "gilbert-elliott"}
    assert all(loss.get("rate", 0) <= 0.1 for loss in losses)
    assert {kind["kind"] for link in links for kind in link.get("background", [])} == {"cbr", "poisson", "pareto"}
    # Each of these occurs, and not always.
    occurs = [
        [bool(link["loss"]) for link in links],
        ["event" in link for link in links],
        ["background" in link for link in links],
        [len(table["flow"]) > 1 for table in drawn],
    ]
    assert all(0.1 < sum(each) / len(each) < 0.8 for each in occurs)


def test_the_mean_loss_of_bursts_is_that_of_single_losses() -> None:
    processes = [
        loss
        for setting in draw(1, 200, 60)
        for link in setting.table["link"]
        if (loss := link.get("loss", {})).get("model") == "gilbert-elliott"
    ]
    rates = [loss["p"] / (loss["p"] + loss["r"]) for loss in processes]
    assert all(0.0009 < rate < 0.101 for rate in rates)
    assert all(2 <= 1 / loss["r"] <= 10.001 for loss in processes)


def test_points_are_the_same_runs_as_those_of_the_limit() -> None:
    point = read_points()[0].points[0]
    assert of_point(point, 60).trial("cmt").scenario == scenario_of(point, 60)
    assert of_point(point, 60).trial("cmt", "path-2").scenario == scenario_of(point, 60, "path-2")


def test_cells_of_a_plan_have_one_flow_and_the_time_of_all_settings() -> None:
    cells = of_plan(ROOT / "studies/choice/plans/grid.toml", 60)
    assert len(cells) == 3 * 3 * 4 * 4
    scenario = Scenario.parse(cells[-1].trial("cmt").scenario)
    assert (scenario.run.duration, [flow.name for flow in scenario.flows]) == ("60 s", [SUBJECT])


def test_shares_count_flows() -> None:
    assert share_of(1, 1, 1) == 1
    assert share_of(3, 1, 1) == 1.5
    assert share_of(2, 4, 4) == pytest.approx(5 / 3)
    assert share_of(0, 0, 1) == 1
    assert Contest(("a",), ("b",)).own_paths == ("a",)
