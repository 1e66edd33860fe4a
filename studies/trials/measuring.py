"""Makes the runs of trials, or takes them from the cache that sweeps use too."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch import _native
from anabranch.counting import counted
from anabranch.sweeps.axis import Axis
from anabranch.sweeps.cache import Cache
from anabranch.sweeps.files import Files
from anabranch.sweeps.given_scenario import GivenScenario
from anabranch.sweeps.grid import Cell, Grid, Point
from anabranch.sweeps.key import CellKey
from anabranch.sweeps.native import NativeThreads
from anabranch.sweeps.progress import Progress
from anabranch.version import engine
from studies.trials.figures import Figures, read_figures


@dataclass(frozen=True, slots=True)
class Trial:
    """A scenario, as canonical text, with a scheme for those of its flows that have none of their own.

    The text may not name files. `setting` is what messages and tables call it.
    """

    setting: str
    scenario: str
    scheme: str


@dataclass(frozen=True, slots=True)
class Options:
    """How runs are made, which changes no results. `progress` is `None` for a bar on a terminal and lines elsewhere."""

    cache: Cache | None = None
    workers: int | None = None
    progress: bool | None = None


@dataclass(slots=True)
class Measured:
    """The figures of trials, by trial and seed."""

    figures: dict[tuple[Trial, int], Figures] = field(default_factory=dict)
    computed: int = 0
    cached: int = 0

    def of(self, trial: Trial, seeds: Iterable[int]) -> list[Figures]:
        """The figures of a trial, seed by seed."""
        return [self.figures[trial, seed] for seed in seeds]


def measure(what: str, trials: Sequence[Trial], seeds: Sequence[int], options: Options) -> Measured:
    """Runs every trial with every seed. `what` names them in messages.

    A run that is finished is kept at once, so the same call goes on where an earlier one stopped. Raises what the
    native module does for a scenario or a scheme that is wrong, and `KeyboardInterrupt` that says how to go on.
    """
    measured = Measured()
    distinct = list(dict.fromkeys(trials))
    if not distinct:
        return measured
    grid = _grid(distinct, seeds)
    holes = [at for at in range(len(grid)) if not _from_cache(grid, at, distinct, measured, options.cache)]
    _say(f"{what}: {counted(len(grid), 'run')}, {measured.cached} of them kept from before", options)
    lines = _Lines(what, len(holes), options)
    with Progress(options.progress) as bar:
        bar.add(len(holes))

        def record(position: int, text: str) -> None:
            if options.cache is not None:
                options.cache.put(grid.key_of(position), text)
            _add(grid, position, distinct, measured, read_figures(text))
            measured.computed += 1
            bar.computed()
            lines.computed(measured.computed)

        try:
            NativeThreads(options.workers).make(grid, holes, record)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(_stopped(what, measured, len(grid), options)) from stop
    return measured


class _Lines:
    """Tells how far it is where there is no terminal for a bar."""

    def __init__(self, what: str, runs: int, options: Options) -> None:
        self._what, self._runs = what, runs
        self._shown = options.progress is None and not sys.stderr.isatty()
        self._last = time.monotonic()

    def computed(self, runs: int) -> None:
        """So many runs are made."""
        if self._shown and time.monotonic() - self._last >= LINE_EVERY_S:
            self._last = time.monotonic()
            print(f"{self._what}: {runs} of {counted(self._runs, 'run')} made", file=sys.stderr, flush=True)


LINE_EVERY_S = 20.0
"""Seconds between two lines."""


def _say(text: str, options: Options) -> None:
    if options.progress is not False:
        print(text, file=sys.stderr, flush=True)


def _stopped(what: str, measured: Measured, runs: int, options: Options) -> str:
    done = f"{what}: {measured.computed + measured.cached} of {counted(runs, 'run is', 'runs are')} finished"
    if options.cache is None:
        return f"{done}; there is no cache that keeps them"
    return f"{done} and kept in {options.cache.folder}: the same command goes on from there"


def _from_cache(grid: Grid, position: int, trials: Sequence[Trial], measured: Measured, cache: Cache | None) -> bool:
    text = cache.get(grid.key_of(position)) if cache else None
    if text is None or cache is None:
        return False
    try:
        figures = read_figures(text)
    except (ValueError, LookupError, TypeError):
        cache.count_damage(grid.key_of(position), "it has the figures of something else")
        return False
    _add(grid, position, trials, measured, figures)
    measured.cached += 1
    return True


def _add(grid: Grid, position: int, trials: Sequence[Trial], measured: Measured, figures: Figures) -> None:
    measured.figures[trials[position // len(grid.seeds)], grid.seed_of(position)] = figures


def _grid(trials: Sequence[Trial], seeds: Sequence[int]) -> Grid:
    """A grid with a point and a cell for each trial."""
    folder = Path().absolute()
    fingerprint = engine().fingerprint
    points = tuple(Point((str(at),), trial.scenario, {}) for at, trial in enumerate(trials))
    cells = []
    for at, trial in enumerate(trials):
        label = _native.Prepared(trial.scenario, trial.scheme, folder, trial.setting, None).scheme
        key = CellKey(fingerprint=fingerprint, scenario=trial.scenario, scheme=label, files={})
        cells.append(Cell(at, trial.scheme, label, key))
    return Grid(
        given=GivenScenario(trials[0].scenario, "trials", "trials", folder),
        overrides=(),
        axes=(Axis(("setting",), tuple(point.values for point in points)),),
        points=points,
        cells=tuple(cells),
        seeds=tuple(seeds),
        files=Files(folder),
    )
