"""Makes runs on native threads of this process, for sweeps without an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch import _native
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.recorder import Recorder

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
            if any(point.makes_content for point in grid.points):
                batch = _by_seed(grid, batch)
            with Recorder(batch, record) as recorder:
                # No bytecode is run as a result is put in, so Ctrl-C cannot come in between and lose it.
                _native.run_batch(_jobs(grid, batch), recorder.finished.__setitem__, threads=self._threads)


def _by_seed(grid: Grid, positions: Sequence[int]) -> list[int]:
    """Runs of one seed one after the other, and of these the last cell first.

    Files that flows make up depend on the seed alone, and a file is the beginning of a longer one. A thread keeps that
    of its latest run; sizes mostly grow along an axis.
    """
    count = len(grid.seeds)
    return sorted(positions, key=lambda position: (position % count, -(position // count)))


def _jobs(grid: Grid, positions: Sequence[int]) -> list[tuple[_native.Prepared, int]]:
    prepared: dict[int, _native.Prepared] = {}
    jobs: list[tuple[_native.Prepared, int]] = []
    for position in positions:
        cell = position // len(grid.seeds)
        if cell not in prepared:
            prepared[cell] = grid.prepare(grid.cells[cell])
        jobs.append((prepared[cell], grid.seed_of(position)))
    return jobs
