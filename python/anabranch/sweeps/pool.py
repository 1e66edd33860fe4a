"""Runs by an executor, unit by unit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field

from anabranch.errors import ExecutorError
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.guided_scheduling import GuidedScheduler, RunTimes
from anabranch.sweeps.recorder import Recorder
from anabranch.sweeps.unit import Outcome, pack, unpack
from anabranch.sweeps.worker import compute
from anabranch.sweeps.workers import Workers
from anabranch.version import Engine

# Interval of checks of the workers while none of them reports.
_POLL_S = 0.5
# Number of outstanding units for each worker: one is handed over while another is computed.
_AHEAD = 2


@dataclass(slots=True)
class Meter:
    """Overhead: the time of workers between their units, relative to the time in which they compute.

    A slot identifies a worker. A unit takes the time from the end of the slot's last unit (or from the hand-over, if
    that was later) to its own end, measured here. The part in which the worker did not compute is overhead. The first
    unit of a slot is not counted, since it includes the worker's start.
    """

    units: int = 0
    computed_s: float = 0.0
    overhead_s: float = 0.0
    _ended: dict[str, float] = field(default_factory=dict)

    def add(self, outcome: Outcome, begun: float, ended: float) -> float | None:
        """Adds a unit, and returns its overhead in seconds if it is known."""
        self.units += 1
        last = self._ended.get(outcome.slot)
        self._ended[outcome.slot] = ended
        if last is None:
            return None
        computed_s = sum(outcome.seconds)
        overhead_s = max(ended - max(begun, last) - computed_s, 0.0)
        self.computed_s += computed_s
        self.overhead_s += overhead_s
        return overhead_s

    @property
    def overhead(self) -> float | None:
        """Seconds of overhead in a second of computing."""
        return self.overhead_s / self.computed_s if self.computed_s else None


@dataclass(slots=True)
class _Unit:
    indices: list[int]
    begun: float
    ended: float = 0.0

    def end(self, _: Future[bytes]) -> None:
        self.ended = time.perf_counter()


class Pool:
    """Producer of runs with an executor."""

    def __init__(self, workers: Workers, engine: Engine) -> None:
        self.workers = workers
        self.engine = engine
        self.times = RunTimes()
        self.meter = Meter()

    def make(self, grid: Grid, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        """Makes the runs at these positions and passes their figures to `record`, in any order.

        Raises `ExecutorError` if the executor fails; runs that have finished are recorded.
        """
        with Recorder(positions, record) as recorder:
            _Units(self, grid, positions, recorder).run()


class _Units:
    """Units of one call."""

    def __init__(self, pool: Pool, grid: Grid, positions: Sequence[int], recorder: Recorder) -> None:
        self._pool = pool
        self._grid = grid
        self._positions = positions
        self._recorder = recorder
        self._cells = [position // len(grid.seeds) for position in positions]
        self._scheduler = GuidedScheduler(self._cells, pool.times)
        self._under_way: dict[Future[bytes], _Unit] = {}

    def run(self) -> None:
        try:
            while self._scheduler.left or self._under_way:
                self._submit()
                done, _ = wait(self._under_way, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(future)
                self._pool.workers.check(idle=not done)
                self._recorder.wait_for_room()
        except BaseException:
            self._give_up()
            raise

    def _submit(self) -> None:
        # Work for one worker is submitted even before the first worker has connected.
        workers = max(self._pool.workers.count(), 1)
        while self._scheduler.left and len(self._under_way) < _AHEAD * workers:
            unit = _Unit(self._scheduler.take(workers), time.perf_counter())
            work = pack(self._grid, [self._positions[index] for index in unit.indices], self._pool.engine)
            try:
                future = self._pool.workers.executor.submit(compute, work)
            except RuntimeError as error:
                raise ExecutorError(f"the executor no longer accepts work: {error}") from error
            self._under_way[future] = unit
            future.add_done_callback(unit.end)

    def _take(self, future: Future[bytes]) -> None:
        unit = self._under_way[future]
        outcome = self._outcome(future)
        self._recorder.finished.update(zip(unit.indices, outcome.texts, strict=True))
        del self._under_way[future]
        self._pool.times.measured((self._cells[index] for index in unit.indices), outcome.seconds)
        # Waiting for a future may end before its callbacks are called.
        overhead_s = self._pool.meter.add(outcome, unit.begun, unit.ended or time.perf_counter())
        if overhead_s is not None:
            self._pool.times.handed_over(overhead_s)

    def _outcome(self, future: Future[bytes]) -> Outcome:
        try:
            return unpack(future.result())
        except ExecutorError:
            raise
        except (ImportError, AttributeError) as error:
            message = f"a worker cannot load this package ({error}): install the same version on all machines"
            raise ExecutorError(message) from error
        except CancelledError as error:
            raise ExecutorError(self._pool.workers.cancelled()) from error
        except BrokenExecutor as error:
            raise ExecutorError(f"a worker process has died: {error}") from error
        except Exception as error:
            raise ExecutorError(f"a worker failed: {type(error).__name__}: {error}") from error

    def _give_up(self) -> None:
        """Cancels units that have not started, and takes finished ones."""
        for future in self._under_way:
            future.cancel()
        for future, unit in self._under_way.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                with contextlib.suppress(ExecutorError):
                    self._recorder.finished.update(zip(unit.indices, unpack(future.result()).texts, strict=True))
