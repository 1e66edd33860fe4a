"""Runs that several rules share. Each run is performed once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from anabranch.experiments.cost import Cost
from anabranch.experiments.points.figures import Figures, read_figures
from anabranch.experiments.points.trial import Trial, grid_of
from anabranch.experiments.progress import progress_of
from anabranch.experiments.sweeps import SweepOptions
from anabranch.sweeps.progress import write_warning
from anabranch.sweeps.steps import fill, open_cache


class Bench:
    """Bench that performs runs, or reads them from the cache, and stores their figures. `cost` counts the runs."""

    def __init__(self, options: SweepOptions) -> None:
        self._options = options
        self._cache = open_cache(options.cache, write_warning)
        self._figures: dict[tuple[Trial, int], Figures] = {}
        self.cost = Cost()

    def run(self, about: str, trials: Iterable[Trial], seeds: Sequence[int]) -> None:
        """Makes the missing runs of these trials. The progress display shows `about`.

        A finished run is stored in the cache at once. Raises the errors of `anabranch.sweep`, and `KeyboardInterrupt`
        with a message on how to resume.
        """
        missing = [
            trial for trial in dict.fromkeys(trials) if any((trial, seed) not in self._figures for seed in seeds)
        ]
        if not missing:
            return
        grid = grid_of(missing, seeds)
        started = time.monotonic()
        with progress_of(len(grid), self._options.progress, about) as bar:

            def keep(position: int, text: str) -> None:
                trial = missing[position // len(grid.seeds)]
                self._figures[trial, grid.seed_of(position)] = read_figures(text)
                bar.update()

            results = fill(
                grid,
                until=None,
                executor=self._options.executor,
                workers=self._options.workers,
                cache=self._cache,
                progress=False,
                notify=write_warning,
                observe=keep,
            )
        self.cost.add(results)
        self.cost.seconds += time.monotonic() - started

    def of(self, trial: Trial, seeds: Sequence[int]) -> list[Figures]:
        """Returns the figures of a trial, seed by seed."""
        return [self._figures[trial, seed] for seed in seeds]
