"""Cells of the grid: their properties, and the maximum goodput of their links."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from anabranch import Results, Scenario
from anabranch.quantity import numbers_of
from anabranch.scenario import Link, Loss, Path

PAYLOAD = 1468 / 1500
"""Part of a full packet that is a DATA chunk, with its header of 16 bytes."""

COORDINATES = ("buffer_kib", "rate_ratio", "rtt_ratio", "loss_percent")


def cells(results: Results) -> pd.DataFrame:
    """Returns a row for each point of the grid, in its order.

    Columns: the swept keys; `buffer_kib`; `rate_ratio` and `rtt_ratio`, of path-2 to path-1; `loss_percent` of path-2;
    `limit_kbps` (see `limit_kbps`) and `shared_limit_kbps` (see `shared_limit_kbps`).
    """
    points = results.to_pandas()[results.over].drop_duplicates().to_dict("records")
    rows = [
        {**point, **described(Scenario.parse(results.scenario_at({str(key): value for key, value in point.items()})))}
        for point in points
    ]
    return pd.DataFrame(rows)


def described(scenario: Scenario) -> dict[str, float]:
    """Returns the properties of a cell and its limits."""
    first, second = scenario.paths
    return {
        "buffer_kib": _buffer_bytes(scenario) / 1024,
        "rate_ratio": round(rate_kbps(second) / rate_kbps(first), 6),
        "rtt_ratio": round(rtt_s(second) / rtt_s(first), 6),
        "loss_percent": round(100 * loss(second), 6),
        "limit_kbps": limit_kbps(scenario),
        "shared_limit_kbps": shared_limit_kbps(scenario),
    }


def limit_kbps(scenario: Scenario) -> float:
    """Returns the physical limit of goodput in kbit/s.

    The limit is the smaller one of two bounds. The paths together carry Σ (rate - background) · (1 - loss) · 1468/1500.
    The receive buffer admits buffer / RTT if all data took the fastest path, with the RTT of empty links. Packets are
    lost behind the queue, so that lost packets use the link too.
    """
    quickest_s = min(rtt_s(path) for path in scenario.paths)
    return min(sum(carried_kbps(path) for path in scenario.paths), _buffer_kbit(scenario) / quickest_s)


def shared_limit_kbps(scenario: Scenario) -> float:
    """Returns the limit if each path uses its own part of the buffer.

    The occupied part is the goodput times the minimum time to an acknowledgement. That time is the path's delay plus
    the smallest return delay of any path, since a SACK may use another path than its data. The fastest path gets as
    much of the buffer as it can use, and the next path the rest.
    """
    back_s = min(delay_back_s(path) for path in scenario.paths)
    left_kbit = _buffer_kbit(scenario)
    reached_kbps = 0.0
    for path in sorted(scenario.paths, key=delay_s):
        held_s = delay_s(path) + back_s
        taken_kbps = min(carried_kbps(path), left_kbit / held_s)
        reached_kbps += taken_kbps
        left_kbit -= taken_kbps * held_s
    return reached_kbps


def carried_kbps(path: Path) -> float:
    """Returns the rate of a path without its background and losses, in user data."""
    background_kbps = sum(in_unit(each.rate, "kbit/s") * (each.count or 1) for each in path.background)
    return (rate_kbps(path) - background_kbps) * (1 - loss(path)) * PAYLOAD


def rate_kbps(path: Path) -> float:
    """Returns the rate of a path in kbit/s."""
    return in_unit(path.rate, "kbit/s")


def rtt_s(path: Path | Link) -> float:
    """Returns the round-trip time of an empty path or link in seconds."""
    return delay_s(path) + delay_back_s(path)


def delay_s(path: Path | Link) -> float:
    """Returns the one-way delay of a path or link in seconds."""
    return in_unit(path.delay, "s")


def delay_back_s(path: Path | Link) -> float:
    """Returns the one-way delay of the direction back in seconds."""
    return in_unit(path.reverse.delay, "s") if path.reverse and path.reverse.delay else delay_s(path)


def loss(path: Path) -> float:
    """Returns the random loss rate of a path.

    Raises `ValueError` for losses before the queue, which use no time of the link, and for those without a rate: they
    have another limit than `limit_kbps`.
    """
    processes = path.loss if isinstance(path.loss, Sequence) and not isinstance(path.loss, str) else [path.loss]
    kept = 1.0
    for process in processes:
        if process is None:
            continue
        if not isinstance(process, Loss) or process.where != "after-queue" or process.rate is None:
            raise ValueError(
                f'{path.name}: the limit is known for losses with a `rate` and `where = "after-queue"` only'
            )
        kept *= 1 - float(process.rate)
    return 1 - kept


def in_unit(quantity: str | None, unit: str) -> float:
    """Returns the number of a quantity in another unit."""
    numbers = numbers_of("quantity", [quantity, f"1 {unit}"])
    if numbers is None:
        raise ValueError(f"{quantity!r} cannot be given in {unit}")
    value, one = numbers.values
    return value / one


def _buffer_bytes(scenario: Scenario) -> float:
    return in_unit(scenario.association.recv_buffer, "B")


def _buffer_kbit(scenario: Scenario) -> float:
    return _buffer_bytes(scenario) * 8 / 1000
