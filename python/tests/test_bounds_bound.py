"""Bounds of goodput, compared with independent figures and with known results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from studies.bounds.bound import bound_of
from studies.bounds.points import LimitPoint, PointPath, read_points, scenario_of

from anabranch.errors import PlanError
from anabranch.scenario import Scenario

POINTS = {point.id: point for group in read_points() for point in group.points}

# Capacity, bound and bound of the best path alone in kbit/s, by another program with the same definitions.
INDEPENDENT = {
    "loss10-0": (17714, 5647, 5647),
    "loss10-1": (17724, 4745, 4745),
    "loss10-2": (17733, 4231, 4231),
    "loss10-5": (17763, 3501, 3501),
    "loss10-8": (17792, 3101, 3101),
    "loss10-10": (17812, 2895, 2895),
    "loss1-1": (1279, 1279, 688),
    "loss1-3": (1287, 1287, 688),
    "loss1-5": (1295, 1295, 688),
    "loss1-10": (1314, 1314, 688),
    "loss10b-1": (18895, 4745, 4745),
    "loss10b-3": (18903, 4745, 4745),
    "loss10b-5": (18911, 4745, 4745),
    "loss10b-10": (18930, 4745, 4745),
    "delay-10": (1957, 1957, 979),
    "delay-30": (1957, 1957, 979),
    "delay-60": (1957, 1957, 979),
    "delay-100": (1957, 1957, 979),
    "bw-100": (1077, 1077, 979),
    "bw-300": (1272, 1272, 979),
    "bw-500": (1468, 1468, 979),
    "bw-1000": (1957, 1957, 979),
    "rbuf-32": (19573, 2556, 2556),
    "rbuf-128": (19573, 8658, 8658),
    "rbuf-256": (19573, 15436, 9787),
    "clean-1": (1957, 1957, 979),
    "clean-2": (2936, 2936, 1957),
    "qa45-0": (10910, 5647, 5647),
    "qa45-0.02": (10935, 4231, 4231),
    "qa45-0.05": (10971, 3501, 3501),
    "qa45-0.1": (11032, 2895, 2895),
    "qa200-0": (10910, 1287, 1287),
    "qa200-0.02": (10935, 964, 964),
    "qa200-0.05": (10971, 798, 798),
    "qa200-0.1": (11032, 660, 660),
}


@pytest.mark.parametrize("point_id", INDEPENDENT)
def test_bounds_are_those_of_an_independent_computation(point_id: str) -> None:
    bound = bound_of(POINTS[point_id])
    found = (bound.capacity_kbps, bound.kbps, max(bound.alone_kbps))
    # Both simulate: their bounds with losses are exact to half a per cent.
    assert found == pytest.approx(INDEPENDENT[point_id], rel=0.01)


def point(*paths: PointPath, buffer_bytes: int = 65536) -> LimitPoint:
    return LimitPoint("made-up", "made-up", 90, buffer_bytes, paths)


def test_a_large_buffer_leaves_the_capacity() -> None:
    path = PointPath(1000, 20, 0.05, cbr_kbps=100)
    bound = bound_of(point(path, path, buffer_bytes=1 << 22))
    assert bound.kbps == pytest.approx(bound.capacity_kbps)
    # Cross traffic loses a twentieth before the queue too.
    assert bound.capacity_kbps == pytest.approx(2 * (1000 - 95) * 1468 / 1500)


def test_a_buffer_without_losses_is_filled_once_in_a_round_trip() -> None:
    path = PointPath(10_000, 100, 0.0)
    # 10 packets of 1468 B in 2 x 100 ms, 1.2 ms to send one, and the time of the access links.
    kbps = bound_of(point(path, path, buffer_bytes=10 * 1468 + 1)).kbps
    assert kbps == pytest.approx(10 * 1468 * 8 / (201.2 + 0.29), rel=1e-3)


def test_buffer_used_by_the_fastest_path_is_unavailable_to_others() -> None:
    near, far = PointPath(1000, 10, 0.0), PointPath(10_000, 100, 0.0)
    first_kbps = 1000 * 1468 / 1500
    left = 20 - first_kbps / (1468 * 8) * (10 + 10 + 12 + 0.29)
    second_kbps = left * 1468 * 8 / (100 + 10 + 1.2 + 0.29)
    kbps = bound_of(point(far, near, buffer_bytes=20 * 1468)).kbps
    assert kbps == pytest.approx(first_kbps + second_kbps, rel=1e-3)


def test_losses_cost_most_where_the_buffer_binds() -> None:
    binds = [bound_of(point(PointPath(10_000, 45, loss))).kbps for loss in (0.0, 0.01, 0.05, 0.2)]
    assert binds == sorted(binds, reverse=True)
    assert binds[3] < 0.6 * binds[0]
    free = [bound_of(point(PointPath(1000, 45, loss), buffer_bytes=1 << 20)).kbps for loss in (0.0, 0.2)]
    assert free[0] == free[1]


def test_a_buffer_smaller_than_a_packet_carries_nothing() -> None:
    assert bound_of(point(PointPath(1000, 10, 0.1), buffer_bytes=1000)).kbps == 0


def test_every_point_makes_a_scenario_with_all_paths_and_with_each_alone() -> None:
    for each in POINTS.values():
        whole = Scenario.parse(scenario_of(each, 30))
        assert list(whole.flows[0].paths or ()) == each.path_names
        assert whole.association.recv_buffer in (f"{each.buffer_bytes} B", f"{each.buffer_bytes // 1024} KiB")
        alone = Scenario.parse(scenario_of(each, 30, each.path_names[-1]))
        assert list(alone.flows[0].paths or ()) == each.path_names[-1:]
        assert len(alone.paths) == len(each.paths), "what is not used is still there"


def test_the_goals_are_those_of_every_point() -> None:
    goals = {group.name: sorted({each.goal_percent for each in group.points}) for group in read_points()}
    assert goals["loss10"] == [88]
    assert goals["buffer"] == [75, 80, 92]
    assert len(POINTS) == 37


def of_point(**keys: str) -> str:
    """Returns a class with the same point twice, whose keys have these values."""
    given = {"id": '"x"', "goal_percent": "90", "paths": "[{ rate_kbps = 10, delay_ms = 1, loss = 0 }]", **keys}
    point = ", ".join(f"{key} = {value}" for key, value in given.items())
    return f'[[class]]\nname = "a"\nabout = "b"\npoint = [{{ {point} }}, {{ {point} }}]\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[class]\n", "cannot be read"),
        ('[[class]]\nname = "a"\nabout = "b"\npoint = [{ id = "x", paths = [] }]\n', "goal_percent"),
        (
            '[[class]]\nname = "a"\nabout = "b"\ngoal_percent = 90\n'
            'point = [{ id = "x", paths = [{ rate_kbps = 10, delay_ms = 1, loss = 0, cbr_kbps = 10 }] }]\n',
            "x: every path needs",
        ),
        ('[[class]]\nname = "a"\nabout = "b"\npoint = []\n', "class a has no point"),
        (of_point(), "there are two points x"),
        (of_point(goal_percent='"90"'), "x: `goal_percent`: expected a number from 0 to 100, found '90'"),
        (of_point(buffer_bytes="3000000000"), "x: `buffer_bytes`: expected a number from 1500 to"),
        (of_point(buffer_bytes="nan"), "x: `buffer_bytes`"),
        (of_point(id="7"), "`id`: expected text, found 7"),
        (of_point(paths='[{ rate_kbps = 10, delay_ms = "5", loss = 0 }]'), "x: `delay_ms`"),
        (of_point(paths="[{ rate_kbps = inf, delay_ms = 5, loss = 0 }]"), "x: `rate_kbps`"),
        (of_point(paths="[{ rate_kbps = 10, delay_ms = 5 }]"), "loss"),
    ],
)
def test_a_file_of_points_that_is_wrong_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "points.toml"
    file.write_text(text)
    with pytest.raises(PlanError, match=says) as caught:
        read_points(file)
    assert str(file) in str(caught.value)


def test_cross_traffic_takes_its_rate_less_what_is_lost_before_the_queue() -> None:
    path = PointPath(1000, 10, 0.5, cbr_kbps=400)
    assert path.free_kbps == 800
    assert dataclasses.replace(path, cbr_kbps=0.0, pareto_load=0.1).free_kbps == 950
