"""Native threads of this process, for sweeps without an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch import _native
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.recorder import Recorder

# Runs in one batch. A run takes a kilobyte of memory, and threads wait for each other at the end of a batch.
_BATCH = 4096


class NativeThreads:
    """Producer of runs on `threads` native threads (default: one for each processor)."""

    meter = None

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def make(self, grid: Grid, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        """Makes the runs at these positions and passes their figures to `record`, in any order.

        Raises the errors of the native module. Finished runs are recorded before.
        """
        for begin in range(0, len(positions), _BATCH):
            batch = positions[begin : begin + _BATCH]
            if any(point.makes_content for point in grid.points):
                batch = _by_seed(grid, batch)
            with Recorder(batch, record) as recorder:
                # This C method runs no bytecode, so that Ctrl-C cannot interrupt it and lose a result.
                _native.run_batch(_jobs(grid, batch), recorder.finished.__setitem__, threads=self._threads)


def _by_seed(grid: Grid, positions: Sequence[int]) -> list[int]:
    """Returns the positions sorted by seed and scheme, and for each of them with the last point first.

    Generated files depend on the seed only, and a short one is the beginning of a longer one. The native module
    simulates the beginning of consecutive runs that differ in the size of the file only once. Sizes mostly grow along
    an axis.
    """
    count = len(grid.seeds)

    def order(position: int) -> tuple[int, str, int]:
        cell = grid.cells[position // count]
        return position % count, cell.label, -cell.point

    return sorted(positions, key=order)


def _jobs(grid: Grid, positions: Sequence[int]) -> list[tuple[_native.Prepared, int]]:
    prepared: dict[int, _native.Prepared] = {}
    jobs: list[tuple[_native.Prepared, int]] = []
    for position in positions:
        cell = position // len(grid.seeds)
        if cell not in prepared:
            prepared[cell] = grid.prepare(grid.cells[cell])
        jobs.append((prepared[cell], grid.seed_of(position)))
    return jobs
