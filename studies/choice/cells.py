"""The cells of the grid: what is different about each of them, and the most that its links could carry."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from anabranch import Results, Scenario
from anabranch.quantity import numbers_of
from anabranch.scenario import Link, Loss, Path

PAYLOAD = 1468 / 1500
"""Of a full packet, what is DATA chunk with its header of 16 bytes."""

COORDINATES = ("buffer_kib", "rate_ratio", "rtt_ratio", "loss_percent")


def cells(results: Results) -> pd.DataFrame:
    """One row per point of the grid, in its order.

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
    """What is different about a cell, and its limits."""
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
    """The physical limit of goodput, in kbit/s.

    The smaller of what the paths carry together, Σ (rate - background) · (1 - loss) · 1468/1500, and of what the
    receive buffer admits if all data took the quickest path, buffer / RTT. RTT is that of empty links. Losses strike
    behind the queue, so what is lost has taken its time on the link.
    """
    quickest_s = min(rtt_s(path) for path in scenario.paths)
    return min(sum(carried_kbps(path) for path in scenario.paths), _buffer_kbit(scenario) / quickest_s)


def shared_limit_kbps(scenario: Scenario) -> float:
    """The same, but each path takes its own part of the buffer: goodput times the least time to an acknowledgement.

    That is the path's delay and the least delay back of any path, since a SACK may take another path than the data it
    answers. The buffer goes to the quickest path first, as far as that can carry anything, and what is left goes to
    the next.
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
    """What a path carries besides its background, less what it loses, without the packets' headers."""
    background_kbps = sum(in_unit(each.rate, "kbit/s") * (each.count or 1) for each in path.background)
    return (rate_kbps(path) - background_kbps) * (1 - loss(path)) * PAYLOAD


def rate_kbps(path: Path) -> float:
    """The rate of a path in kbit/s."""
    return in_unit(path.rate, "kbit/s")


def rtt_s(path: Path | Link) -> float:
    """The round trip of a path or link that is empty, in seconds."""
    return delay_s(path) + delay_back_s(path)


def delay_s(path: Path | Link) -> float:
    """The delay of a path or link, one way, in seconds."""
    return in_unit(path.delay, "s")


def delay_back_s(path: Path | Link) -> float:
    """The same for the way back."""
    return in_unit(path.reverse.delay, "s") if path.reverse and path.reverse.delay else delay_s(path)


def loss(path: Path) -> float:
    """The part of its packets that a path loses at random.

    Raises `ValueError` for losses that strike before the queue, where they take no time on the link, and for those that
    have no rate: the limit is not that of `limit_kbps` then.
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
    """The number of a quantity in another unit."""
    numbers = numbers_of("quantity", [quantity, f"1 {unit}"])
    if numbers is None:
        raise ValueError(f"{quantity!r} cannot be given in {unit}")
    value, one = numbers.values
    return value / one


def _buffer_bytes(scenario: Scenario) -> float:
    return in_unit(scenario.association.recv_buffer, "B")


def _buffer_kbit(scenario: Scenario) -> float:
    return _buffer_bytes(scenario) * 8 / 1000
