"""What is run next: everything at once, or seeds in rounds until means are exact enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch.sweep.grid import Grid
from anabranch.sweep.precision import Precision


class Rounds:
    """Hands out positions. With a stopping rule a round begins when the one before it is complete.

    So what is decided depends on the figures of whole rounds, whoever was first in them.
    """

    def __init__(self, grid: Grid, until: Precision | None) -> None:
        self._grid = grid
        self._until = until
        self._begun = False
        # The samples of cells that are not decided, by the index of their seed.
        self._samples: dict[int, dict[int, float | None]] = {cell: {} for cell in range(len(grid.cells))}
        self._capped: list[int] = []

    def add(self, position: int, row: dict[str, Any]) -> None:
        """Takes in the figures of a run."""
        if self._until is not None:
            cell, seed = divmod(position, len(self._grid.seeds))
            self._samples[cell][seed] = row[self._until.metric]

    def next(self) -> Sequence[int]:
        """The positions of the next round; none if this was the last."""
        if self._until is not None:
            return self._more(self._until)
        positions = range(0 if self._begun else len(self._grid))
        self._begun = True
        return positions

    def _more(self, until: Precision) -> list[int]:
        positions: list[int] = []
        for cell, samples in list(self._samples.items()):
            in_order = [samples[seed] for seed in range(len(samples))]
            wanted = until.wanted(in_order)
            if wanted > len(in_order):
                first = cell * len(self._grid.seeds)
                positions += range(first + len(in_order), first + wanted)
                continue
            if not until.is_reached(in_order):
                self._capped.append(cell)
            del self._samples[cell]
        return positions

    def capped(self) -> tuple[str, ...]:
        """Points with their schemes, in words, that have all the seeds they may have and are not exact enough."""
        return tuple(self._grid.in_words(self._grid.cells[cell]) for cell in sorted(self._capped))
