"""Published numbers over our figures: drawn only where a figure shows the same quantity, with its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from papers_planted import GOODPUT, PLANTED, claim, of

from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.claims.value import Number
from anabranch.experiments.drawing.draw import draw
from anabranch.experiments.drawing.published import Published, frame_of, published_values
from anabranch.experiments.model import Figure, Measure
from anabranch.experiments.plan import Scope, Setting, settings_of
from anabranch.experiments.study import Study, read_study

WHOLE = Scope()
WINDOW = Measure("cwnd_mean_bytes", path="path-1")


@pytest.fixture(scope="module")
def paper() -> Study:
    return read_study(PLANTED)


def setting(paper: Study, experiment: str, scope: Scope = WHOLE) -> Setting:
    return settings_of(paper.experiment(experiment), scope)[0]


def number(value: float | tuple[float, float], scheme: str = "CMT", experiment: str = "loss", **more: Any) -> Claim:
    """Returns a claim about a figure or a range of a scheme."""
    low, high = value if isinstance(value, tuple) else (value, value)
    ci95, status = more.pop("ci95", None), more.pop("status", "ok")
    quantity = replace(of(scheme, at=more.pop("at", {})), measure=more.pop("measure", GOODPUT))
    found = claim(Number(quantity, low, high, "kbit/s", ci95), status=status, kind="value")
    return replace(found, experiment=experiment, id=f"{scheme} {value}")


def places(found: list[Published]) -> list[tuple[str, str, float, float]]:
    return [(each.scheme, each.extent, each.x, each.x_end) for each in found]


def figure(paper: Study, experiment: str, name: str = "figure") -> Figure:
    return next(each for each in paper.experiment(experiment).figures if each.name == name)


def test_number_is_drawn_at_its_value_of_the_axis(paper: Study) -> None:
    claims = [number(1000, at={"plr2": (0.2,)}), number(1700, "SCTP", at={"plr2": (0,)})]
    found = published_values(figure(paper, "loss"), setting(paper, "loss"), claims)
    assert places(found) == [("CMT", "point", 20.0, 20.0), ("SCTP", "point", 0.0, 0.0)]
    assert [(each.low, each.high) for each in found] == [(1000, 1000), (1700, 1700)]


def test_a_mean_goes_as_far_as_the_values_that_it_is_of(paper: Study) -> None:
    claims = [number(1200), number(1500, at={"plr2": (0, 0.05)})]
    found = published_values(figure(paper, "loss"), setting(paper, "loss"), claims)
    assert places(found) == [("CMT", "mean", 0.0, 20.0), ("CMT", "mean", 0.0, 5.0)]


def test_quick_leaves_the_numbers_of_the_paper_as_they_are(paper: Study) -> None:
    quick = setting(paper, "loss", Scope(quick=True))
    found = published_values(figure(paper, "loss"), quick, [number(1200), number(9, at={"plr2": (0.05,)})])
    assert places(found) == [("CMT", "mean", 0.0, 20.0), ("CMT", "point", 5.0, 5.0)]


@pytest.mark.parametrize(
    "other",
    [
        number(1000, measure=Measure("timeouts")),
        number(1000, experiment="file"),
        number(1000, "A-CMT"),
        claim(number(1000).statement.a, kind="compare"),
    ],
    ids=["another measure", "another experiment", "a scheme that is not drawn", "no number"],
)
def test_numbers_outside_a_figure_are_not_drawn(paper: Study, other: Claim) -> None:
    assert published_values(figure(paper, "loss"), setting(paper, "loss"), [other]) == []


def test_a_mean_over_another_axis_than_the_figure_averages_is_not_drawn(paper: Study) -> None:
    """Compares a bar of one loss with the mean of all losses."""
    bar = replace(figure(paper, "loss"), kind="bars", x=None)
    claims = [number(1000, at={"plr2": (0.2,)}), number(1200)]
    assert [each.low for each in published_values(bar, setting(paper, "loss"), claims)] == [1200]


def test_figures_over_time_have_windows_of_their_paths(paper: Study) -> None:
    claims = [
        number(9000, experiment="windows", measure=WINDOW),
        number(7000, experiment="windows", measure=replace(WINDOW, window_s=(1.0, 2.0))),
        number(4380, experiment="windows", measure=Measure("cwnd_initial_bytes", path="path-1")),
        number(5000, experiment="windows", measure=replace(WINDOW, path="nowhere")),
        number(800, experiment="windows", measure=Measure("throughput_kbps")),
    ]
    found = published_values(figure(paper, "windows"), setting(paper, "windows"), claims)
    assert [(each.path, each.extent, each.low) for each in found] == [
        ("path-1", "mean", 9000),
        ("path-1", "mean", 7000),
        ("path-1", "point", 4380),
    ]
    assert (found[1].x, found[1].x_end, found[2].x) == (1.0, 2.0, 0.0)


def test_the_table_beside_a_figure_has_the_claims_and_their_intervals(paper: Study) -> None:
    claims = [number((900, 1100), at={"plr2": (0.2,)}, ci95=(850.0, 1150.0), status="derived")]
    found = frame_of(published_values(figure(paper, "loss"), setting(paper, "loss"), claims))
    (row,) = found.to_dict("records")
    assert (row["claim"], row["status"], row["low"], row["high"]) == ("CMT (900, 1100)", "derived", 900, 1100)
    assert (row["ci_low"], row["ci_high"]) == (850, 1150)
    assert list(frame_of([]).columns) == list(found.columns)


def means(schemes: tuple[str, ...], x: tuple[float, ...] = (0.0, 5.0, 20.0)) -> pd.DataFrame:
    """Returns the data of a figure along the axis, in which everything is 100."""
    rows = [{"panel": "", "scheme": scheme, "x": at, "label": f"{at:g}"} for scheme in schemes for at in x]
    return pd.DataFrame(rows).assign(n=4, mean=100.0, half_width=5.0, half_width_normal=4.0, kind="interval")


def drawn(paper: Study, shown: Figure, frame: pd.DataFrame, claims: list[Claim], experiment: str = "loss") -> list[Any]:
    """Returns the panels of a figure."""
    where = setting(paper, experiment)
    made = draw(frame, shown, where, published_values(shown, where, claims))
    assert made is not None
    return list(made.axes)


def named(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_numbers_are_hollow_and_means_are_dashed_and_both_are_named(paper: Study) -> None:
    shown = figure(paper, "loss")
    claims = [number(130, at={"plr2": (0.2,)}), number(70), number(60, "SCTP", status="derived")]
    (axes,) = drawn(paper, shown, means(shown.schemes), claims)
    points = [line for line in axes.lines if list(line.get_ydata()) == [130]]
    assert [(line.get_markerfacecolor(), list(line.get_xdata())) for line in points] == [("none", [20.0])]
    levels = {line.get_ydata()[0]: line for line in axes.lines if len(set(line.get_ydata())) == 1}
    assert levels[70].get_linestyle() == "--"
    assert levels[60].get_linestyle() == ":"
    assert list(levels[70].get_xdata()) == [0.0, 20.0]
    ours = next(line for line in axes.lines if line.get_label() == "CMT")
    assert points[0].get_markeredgecolor() == levels[70].get_color() == ours.get_color()
    assert named(axes) == ["CMT", "CMT-PF", "SCTP", "claimed: value", "claimed: mean", "claimed: mean (derived)"]


def test_a_figure_without_numbers_of_the_paper_is_as_it_was(paper: Study) -> None:
    shown = figure(paper, "loss")
    (axes,) = drawn(paper, shown, means(shown.schemes), [])
    assert named(axes) == ["CMT", "CMT-PF", "SCTP"]
    assert len(axes.lines) == 3


def test_no_number_between_two_ends_is_made_up(paper: Study) -> None:
    shown = figure(paper, "loss")
    (axes,) = drawn(paper, shown, means(shown.schemes), [number((110, 130), at={"plr2": (0.05,)})])
    heights = {height for line in axes.lines for height in line.get_ydata()}
    assert {110, 130} <= heights
    assert 120 not in heights
    assert "claimed: from, to" in named(axes)


def test_a_number_above_ours_has_room(paper: Study) -> None:
    shown = figure(paper, "loss")
    (axes,) = drawn(paper, shown, means(shown.schemes), [number(500, at={"plr2": (0,)})])
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > 500


def test_bars_have_a_mark_with_the_interval_of_the_paper(paper: Study) -> None:
    bars = replace(figure(paper, "loss"), kind="bars", x=None)
    (axes,) = drawn(paper, bars, means(bars.schemes, (0.0,)), [number(90, "SCTP", ci95=(80.0, 200.0))])
    (mark,) = [line for line in axes.lines if list(line.get_ydata()) == [90]]
    bar = axes.patches[bars.schemes.index("SCTP")]
    assert bar.get_x() < mark.get_xdata()[0] < bar.get_x() + bar.get_width()
    assert {80.0, 200.0} <= {line.get_ydata()[0] for line in axes.lines if len(line.get_ydata())}
    assert axes.get_ylim()[1] > 200
    assert named(axes)[-1] == "claimed: value"


def windows(cmt: float, sctp: float) -> pd.DataFrame:
    rows = [
        {"panel": "", "scheme": scheme, "seed": 1, "time_s": time_s, "path": "path-1", "cwnd_bytes": most * time_s}
        for scheme, most in (("CMT", cmt), ("SCTP", sctp))
        for time_s in (0.0, 0.5, 1.0)
    ]
    return pd.DataFrame(rows)


def test_windows_of_all_schemes_fit_the_scale_that_they_share(paper: Study) -> None:
    panels = drawn(paper, figure(paper, "windows"), windows(1000, 9000), [], "windows")
    assert [axes.get_ylim()[0] for axes in panels] == [0, 0]
    assert all(axes.get_ylim()[1] > 9000 for axes in panels)


def test_a_number_is_in_the_panel_of_its_scheme_only(paper: Study) -> None:
    claims = [number(700, "SCTP", "windows", measure=WINDOW)]
    cmt, sctp = drawn(paper, figure(paper, "windows"), windows(1000, 900), claims, "windows")
    levels = [[list(line.get_xdata()) for line in axes.lines if 700 in line.get_ydata()] for axes in (cmt, sctp)]
    assert levels == [[], [[0.0, 1.0]]]
    assert "claimed: mean" in named(sctp)
