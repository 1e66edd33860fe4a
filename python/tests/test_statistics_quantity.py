"""Swept values as numbers."""

from __future__ import annotations

import pytest

from anabranch.quantity import numbers_of


@pytest.mark.parametrize(
    ("key", "values", "numbers", "unit"),
    [
        ("path.path-2.delay", ["25 ms", "0.1 s", "100us"], (0.025, 0.1, 0.0001), "s"),
        ("path.path-2.rate", ["10 Mbit/s", "500 kbit/s"], (10.0, 0.5), "Mbit/s"),
        ("association.recv_buffer", ["32 KiB", "1 MiB", "64 KiB"], (0.03125, 1.0, 0.0625), "MiB"),
        ("flow.flow-1.size", ["8 MB", "500 kB"], (8.0, 0.5), "MB"),
        ("path.path-1.queue", ["50 packets", "100 packets"], (50.0, 100.0), "packets"),
        ("path.path-2.loss", [0.0, 0.07, 0.1], (0.0, 7.0, 10.0), "%"),
        ("path.*.loss", ["1 %", 0.05], (1.0, 5.0), "%"),
        ("path.path-2.loss", ["0.02", "0.05"], (2.0, 5.0), "%"),
        ("flow.flow-1.count", [1, 10], (1.0, 10.0), ""),
        ("run.seeds", [5], (5.0,), ""),
    ],
)
def test_quantities_become_numbers_in_one_unit(key, values, numbers, unit):
    found = numbers_of(key, values)
    assert found is not None
    assert found.values == pytest.approx(numbers, abs=1e-12)
    assert found.unit == unit


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("run.profile", ["ns2", "rfc9260"]),
        ("path.path-1.queue", ["50 packets", "64 KiB"]),
        ("path.path-1.delay", ["10 ms", "10 parsecs"]),
        ("path.path-1.delay", ["10 ms", 10]),
        ("path.path-1.delay", [10, "10 ms"]),
        ("association.ordered", [True, False]),
        ("path.path-1.loss", ['{model = "bernoulli", rate = 0.1}']),
        ("path.path-1.loss", []),
    ],
)
def test_mixed_quantities_are_not_a_number(key, values):
    assert numbers_of(key, values) is None
