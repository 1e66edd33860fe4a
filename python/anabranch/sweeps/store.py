"""Storage of finished runs of a sweep: the cache, or a folder until the sweep is complete."""

from __future__ import annotations

from anabranch.sweeps.cache import Cache
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.sources import OPENED_FILES
from anabranch.sweeps.unfinished import Unfinished


class Store:
    """Finds and stores the runs of a grid. A run whose key is incomplete is stored for this sweep only.

    `uncached` counts the runs that later sweeps will not find.
    """

    def __init__(self, grid: Grid, cache: Cache) -> None:
        self.cache = cache
        self.uncached = 0
        self._grid = grid
        cells = [cell.unfinished_key.of(0) for cell in grid.cells if cell.unfinished_key]
        self._unfinished = Unfinished(cache.folder, cells) if cells else None
        if cells:
            OPENED_FILES.begin()

    @property
    def unstored(self) -> int:
        """Number of runs that could not be written."""
        return self.cache.unstored + (self._unfinished.unstored if self._unfinished else 0)

    @property
    def first_failure(self) -> str:
        """First run that could not be written, with the reason."""
        return self.cache.first_failure or (self._unfinished.first_failure if self._unfinished else "")

    def get(self, position: int) -> str | None:
        """Returns the figures of a finished run."""
        key = self._unfinished_key(position)
        if self._unfinished is None or key is None:
            return self.cache.get(self._grid.key_of(position))
        return self._unfinished.get(key)

    def put(self, position: int, figures: str) -> bool:
        """Stores the figures of a run. Returns `False` if that fails."""
        key = self._unfinished_key(position)
        if self._unfinished is None or key is None:
            return self.cache.put(self._grid.key_of(position), figures)
        self.uncached += 1
        return self._unfinished.put(key, figures)

    def end(self, *, is_complete: bool) -> None:
        """Ends the sweep. If it is complete, removes the runs that were stored for it alone."""
        OPENED_FILES.end()
        if is_complete and self._unfinished:
            self._unfinished.remove()

    def _unfinished_key(self, position: int) -> str | None:
        """Returns the key of a run that is stored for this sweep only."""
        cell = self._grid.cell_of(position)
        if cell.is_cacheable or cell.unfinished_key is None:
            return None
        return cell.unfinished_key.of(self._grid.seed_of(position))
