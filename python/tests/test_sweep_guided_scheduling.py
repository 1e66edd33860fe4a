"""Division of work among workers: little overhead, and no idle workers at the end. All times are simulated."""

from __future__ import annotations

import contextlib
import heapq
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from anabranch.sweeps.guided_scheduling import GuidedScheduler, RunTimes
from anabranch.sweeps.pool import Meter
from anabranch.sweeps.recorder import Recorder
from anabranch.sweeps.unit import Outcome


class Made:
    """Outcome of a simulated sweep."""

    def __init__(self) -> None:
        self.units: list[tuple[float, list[int]]] = []
        self.indices: list[int] = []
        self.wall_s = 0.0
        self.computed_s = 0.0
        self.overhead_s = 0.0
        self.last_ends: dict[int, float] = {}


def simulate(cells: list[int], cost_of: Callable[[int], float], workers: int, handing_over_s: float) -> Made:
    """Simulates workers that take the next unit as soon as they have none, each after the time of its hand-over."""
    times = RunTimes()
    scheduler = GuidedScheduler(cells, times)
    made = Made()
    free = [(0.0, worker) for worker in range(workers)]
    finished: list[tuple[float, list[int], list[float]]] = []
    while scheduler.left:
        now, worker = heapq.heappop(free)
        while finished and finished[0][0] <= now:
            _, unit, seconds = heapq.heappop(finished)
            times.measured((cells[index] for index in unit), seconds)
            times.handed_over(handing_over_s)
        unit = scheduler.take(workers)
        seconds = [cost_of(cells[index]) for index in unit]
        end = now + handing_over_s + sum(seconds)
        heapq.heappush(finished, (end, unit, seconds))
        heapq.heappush(free, (end, worker))
        made.units.append((sum(seconds), unit))
        made.indices += unit
        made.computed_s += sum(seconds)
        made.overhead_s += handing_over_s
        made.wall_s = max(made.wall_s, end)
        made.last_ends[worker] = end
    return made


COSTS: dict[str, Callable[[int], float]] = {
    "short": lambda _: 0.001,
    "medium": lambda _: 0.05,
    "uneven": lambda cell: 0.002 * 3 ** (cell % 5),
    "long": lambda _: 0.8,
}


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("workers", [1, 2, 40])
def test_overhead_stays_under_five_percent_and_workers_end_together(cost: str, workers: int) -> None:
    cost_of = COSTS[cost]
    seeds = max(20, round(workers * 20 / sum(map(cost_of, range(10)))))
    cells = [cell for cell in range(10) for _ in range(seeds)]
    made = simulate(cells, cost_of, workers, handing_over_s=0.005)
    assert sorted(made.indices) == list(range(len(cells))), "each run is made once"
    assert made.overhead_s / made.computed_s < 0.05
    assert made.computed_s / workers / made.wall_s > 0.93
    idle_s = made.wall_s - min(made.last_ends.values())
    assert idle_s < 0.2 + max(map(cost_of, range(10)))


def test_units_have_about_a_second_of_work_in_the_middle() -> None:
    made = simulate([0] * 40_000, lambda _: 0.001, workers=2, handing_over_s=0.004)
    middle = [seconds for seconds, _ in made.units[3:20]]
    assert min(middle) > 0.9
    assert max(middle) < 1.1
    # Small units measure the cost of runs, and small ones fill the end.
    assert len(made.units[0][1]) == 1
    assert made.units[-1][0] < 0.2


def test_units_grow_where_handing_over_is_slow_but_not_without_end() -> None:
    slow = simulate([0] * 200_000, lambda _: 0.001, workers=2, handing_over_s=0.08)
    assert max(seconds for seconds, _ in slow.units) == pytest.approx(2.0, rel=0.05)
    assert slow.overhead_s / slow.computed_s < 0.05
    slower = simulate([0] * 200_000, lambda _: 0.001, workers=2, handing_over_s=5.0)
    assert max(seconds for seconds, _ in slower.units) <= 4.01


def test_one_run_of_each_cell_goes_first() -> None:
    cells = [7] * 5 + [3] * 5 + [9] * 5
    scheduler = GuidedScheduler(cells, RunTimes())
    order = [index for _ in range(15) for index in scheduler.take(1)]
    assert order[:3] == [0, 5, 10]
    assert sorted(order) == list(range(15))
    assert scheduler.left == 0


def test_a_cell_that_was_not_measured_counts_as_a_long_one() -> None:
    times = RunTimes()
    times.measured([0, 0, 1], [0.1, 0.3, 0.2])
    assert times.of(0) == pytest.approx(0.2)
    assert times.of(5) == pytest.approx(0.8)
    times.measured([5], [0.01])
    assert times.of(5) == pytest.approx(0.01)


def outcome(slot: str, *seconds: float) -> Outcome:
    return Outcome([""] * len(seconds), list(seconds), slot)


def test_overhead_is_what_a_worker_does_not_compute_between_its_units() -> None:
    meter = Meter()
    assert meter.overhead is None
    # The first unit of a worker includes its start.
    assert meter.add(outcome("a", 1.0), begun=0.0, ended=5.0) is None
    # The second unit was submitted while the first was computed, so it begins when the first ends.
    assert meter.add(outcome("a", 0.5, 0.5), begun=1.0, ended=6.1) == pytest.approx(0.1)
    # The worker was idle until the hand-over of this unit.
    assert meter.add(outcome("a", 1.0), begun=20.0, ended=21.3) == pytest.approx(0.3)
    assert meter.add(outcome("b", 2.0), begun=0.0, ended=3.0) is None
    assert meter.units == 4
    assert meter.overhead == pytest.approx(0.4 / 2.0)


@contextlib.contextmanager
def default_handler() -> Iterator[None]:
    """Restores the default meaning of Ctrl-C, which shells disable for tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_runs_are_recorded_waits_for_all_of_them() -> None:
    recorded: list[int] = []

    def slow(position: int, _: str) -> None:
        time.sleep(0.002)
        recorded.append(position)

    def make() -> None:
        with Recorder(positions, slow) as recorder:
            recorder.finished.update(dict.fromkeys(range(100), ""))
            threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()

    positions = range(100, 200)
    with default_handler(), pytest.raises(KeyboardInterrupt):
        make()
    assert sorted(recorded) == list(positions)


def test_repeated_entry_is_recorded_once() -> None:
    recorded: list[int] = []
    with Recorder([5, 6], lambda position, _: recorded.append(position)) as recorder:
        recorder.finished[1] = "first"
        while recorder.finished:
            time.sleep(0.001)
        recorder.finished[1] = "again"
    assert recorded == [6]


def test_fault_of_the_recorder_ends_the_runs() -> None:
    def broken(_: int, __: str) -> None:
        raise ZeroDivisionError("of the recorder")

    def make() -> None:
        with Recorder([0], broken) as recorder:
            recorder.finished[0] = ""
            # Code that makes runs checks for signals at such intervals.
            for _ in range(6000):
                time.sleep(0.01)
            pytest.fail("nobody was told")

    with default_handler(), pytest.raises(ZeroDivisionError, match="of the recorder"):
        make()
