"""Choice of the next runs: all at once, or seeds in rounds until means are precise enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch.sweeps.grid import Grid
from anabranch.sweeps.precision import Precision


class Rounds:
    """Yields positions. With a stopping rule a round begins when the previous one is complete.

    So decisions depend on the figures of whole rounds, and not on the order of runs in them.
    """

    def __init__(self, grid: Grid, until: Precision | None) -> None:
        self._grid = grid
        self._until = until
        self._begun = False
        # Samples of undecided cells, by the index of their seed.
        self._samples: dict[int, dict[int, float | None]] = {cell: {} for cell in range(len(grid.cells))}
        self._capped: list[int] = []

    def add(self, position: int, row: dict[str, Any]) -> None:
        """Adds the figures of a run."""
        if self._until is not None:
            cell, seed = divmod(position, len(self._grid.seeds))
            self._samples[cell][seed] = row[self._until.metric]

    def next(self) -> Sequence[int]:
        """Returns the positions of the next round; none after the last."""
        if self._until is not None:
            return self._more(self._until)
        positions = range(0 if self._begun else len(self._grid))
        self._begun = True
        return positions

    def _more(self, until: Precision) -> list[int]:
        positions: list[int] = []
        for cell, samples in list(self._samples.items()):
            in_order = [samples[seed] for seed in range(len(samples))]
            wanted = until.required_seeds(in_order)
            if wanted > len(in_order):
                first = cell * len(self._grid.seeds)
                positions += range(first + len(in_order), first + wanted)
                continue
            if not until.is_reached(in_order):
                self._capped.append(cell)
            del self._samples[cell]
        return positions

    def capped(self) -> tuple[str, ...]:
        """Returns points with their schemes, as text, that have reached `max_seeds` seeds but not the precision."""
        return tuple(self._grid.in_words(self._grid.cells[cell]) for cell in sorted(self._capped))
