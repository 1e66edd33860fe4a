"""Runs that several checks share: each is made once, and looked up after that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from studies.trials.figures import Figures
from studies.trials.measuring import Options, Trial, measure


class Bench:
    """Makes runs and remembers their figures."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._figures: dict[tuple[Trial, int], Figures] = {}

    def run(self, what: str, trials: Iterable[Trial], seeds: Sequence[int]) -> None:
        """Makes the runs of these trials that were not made yet. `what` names them in messages."""
        missing = [
            trial for trial in dict.fromkeys(trials) if any((trial, seed) not in self._figures for seed in seeds)
        ]
        self._figures |= measure(what, missing, seeds, self._options).figures

    def of(self, trial: Trial, seeds: Sequence[int]) -> list[Figures]:
        """The figures of a trial, seed by seed."""
        return [self._figures[trial, seed] for seed in seeds]
