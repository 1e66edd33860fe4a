"""Sizes of units of work by guided self-scheduling, for small overhead and no idle workers at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Default work in a unit, in seconds.
_USUAL_S = 1.0
# Maximum work in a unit, even if handing one over takes long.
_MAX_S = 4.0
# Minimum ratio of a unit's work to the time of its hand-over, which keeps overhead under 5 %.
_WORK_RATIO = 25
# Number of further units for each worker that the remaining work is divided into.
_SHARES = 3
# Factor of the expected time of runs of a cell that has not been measured.
_UNMEASURED_FACTOR = 4.0


class RunTimes:
    """Times of runs by the number of their cell, and of the hand-over of units."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[float, int]] = {}
        self._seconds = 0.0
        self._runs = 0
        self.handing_over_s = 0.0

    @property
    def mean_s(self) -> float | None:
        """Mean time of all runs; `None` before the first."""
        return self._seconds / self._runs if self._runs else None

    def of(self, cell: int) -> float:
        """Returns the expected time of a run of this cell in seconds."""
        seconds, runs = self._cells.get(cell, (0.0, 0))
        return seconds / runs if runs else _UNMEASURED_FACTOR * (self.mean_s or 0.0)

    def measured(self, cells: Iterable[int], seconds: Iterable[float]) -> None:
        """Adds the times of runs of these cells."""
        for cell, cost in zip(cells, seconds, strict=True):
            so_far, runs = self._cells.get(cell, (0.0, 0))
            self._cells[cell] = (so_far + cost, runs + 1)
            self._seconds += cost
            self._runs += 1

    def handed_over(self, seconds: float) -> None:
        """Adds the time of a unit's hand-over, without its computation. Recent times have a larger weight."""
        weight = 0.3 if self.handing_over_s else 1.0
        self.handing_over_s += weight * (seconds - self.handing_over_s)


class GuidedScheduler:
    """Divides runs into units by the times of earlier runs. `cells` has the number of the cell of each run.

    One run of each cell is scheduled first, to measure it. Sizes shrink with the remaining work (guided
    self-scheduling, Polychronopoulos and Kuck 1987), so that all workers end at about the same time.
    """

    def __init__(self, cells: Sequence[int], times: RunTimes) -> None:
        first = dict.fromkeys(cells)
        first_of_cell: list[int] = []
        others: list[int] = []
        for index, cell in enumerate(cells):
            (first_of_cell if first.pop(cell, cell) is None else others).append(index)
        self._cells = cells
        self._order = first_of_cell + others
        self._next = 0
        self._times = times

    @property
    def left(self) -> int:
        """Number of runs that are in no unit yet."""
        return len(self._order) - self._next

    def take(self, workers: int) -> list[int]:
        """Returns the indices of the runs of the next unit: at least one while any is left."""
        begin = self._next
        goal_s = self._goal_s(workers)
        unit_s = 0.0
        while self.left:
            unit_s += self._times.of(self._cells[self._order[self._next]])
            if self._next > begin and unit_s > goal_s:
                break
            self._next += 1
        return self._order[begin : self._next]

    def _goal_s(self, workers: int) -> float:
        mean_s = self._times.mean_s
        if mean_s is None:
            # A unit is a single run, the smallest unit, until a run has been measured.
            return -1.0
        share_s = self.left * mean_s / (_SHARES * workers)
        least_unit_s = _WORK_RATIO * self._times.handing_over_s
        return min(max(least_unit_s, min(share_s, _USUAL_S)), _MAX_S)
