"""Makes runs on native threads of this process, for sweeps without an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch import _native
from anabranch.sweep.grid import Cell, Grid
from anabranch.sweep.recorder import Recorder

# Runs handed over at once. What belongs to a run while it is made takes a kilobyte, so this bounds memory; and threads
# wait for each other once in so many runs only.
_BATCH = 4096


class NativeThreads:
    """Makes runs on so many native threads, one for each processor if `None`."""

    meter = None

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def make(self, grid: Grid, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        """Makes the runs at these positions and hands their figures to `record`, in any order.

        Raises what the native module does; runs that were finished by then are recorded.
        """
        for begin in range(0, len(positions), _BATCH):
            batch = positions[begin : begin + _BATCH]
            with Recorder(batch, record) as recorder:
                # No bytecode is run as a result is put in, so Ctrl-C cannot come in between and lose it.
                _native.run_batch(_jobs(grid, batch), recorder.finished.__setitem__, threads=self._threads)


def _jobs(grid: Grid, positions: Sequence[int]) -> list[tuple[_native.Prepared, int]]:
    jobs: list[tuple[_native.Prepared, int]] = []
    last: tuple[Cell, _native.Prepared] | None = None
    for position in positions:
        cell = grid.cell_of(position)
        if last is None or last[0] is not cell:
            last = (cell, grid.prepare(cell))
        jobs.append((last[1], grid.seed_of(position)))
    return jobs
