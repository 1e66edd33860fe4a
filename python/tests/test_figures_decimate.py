"""Decimation: fewer points that draw the same picture."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.figures.decimate import decimate_line, decimate_points


def test_a_line_of_twenty_thousand_points_keeps_its_ends_and_every_extreme():
    random = np.random.default_rng(2)
    values = random.normal(size=20_000).cumsum()
    values[12_345] = 1e6
    values[6_789] = -1e6
    places = decimate_line(values, 2000)
    assert len(places) <= 2000
    assert {0, 6_789, 12_345, 19_999} <= set(places)
    assert (np.diff(places) > 0).all()


def test_each_stretch_keeps_its_least_and_greatest():
    values = np.tile([0.0, 1.0, -1.0, 0.5, 0.25], 1000)
    drawn = values[decimate_line(values, 400)]
    for stretch in np.array_split(drawn, 90):
        assert stretch.max() == 1.0
        assert stretch.min() == -1.0


def test_short_lines_are_drawn_as_they_are():
    assert decimate_line(np.arange(2000.0), 2000).tolist() == list(range(2000))
    assert decimate_line(np.array([])).tolist() == []
    assert decimate_line(np.array([5.0])).tolist() == [0]


def test_values_that_are_missing_hide_no_extreme():
    values = np.full(10_000, np.nan)
    values[1234], values[1235] = 7.0, -7.0
    assert {1234, 1235} <= set(decimate_line(values, 100))


def test_points_that_cover_each_other_are_drawn_once():
    x = np.repeat(np.arange(100.0), 1000)
    y = np.tile(np.arange(10.0), 10_000)
    places = decimate_points(x, y)
    assert {(x[place], y[place]) for place in places} == set(zip(x, y, strict=True))
    assert len(places) == 1000


def test_extremes_are_among_the_points_drawn():
    random = np.random.default_rng(4)
    x, y = random.uniform(size=50_000), random.normal(size=50_000)
    drawn = y[decimate_points(x, y, 50, 50)]
    assert (drawn.min(), drawn.max()) == (y.min(), y.max())
    assert len(drawn) <= 2502
    assert decimate_points(np.zeros(4), np.array([5.0, 0.0, 10.0, 5.0]), 1, 1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_few_points_are_all_drawn(count):
    assert len(decimate_points(np.arange(float(count)), np.zeros(count))) == count


def test_points_on_one_spot_are_one_point():
    assert len(decimate_points(np.zeros(50), np.ones(50))) == 1
