"""Conversion of a grid to results: finished runs come from the cache, and the executor performs the others."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Protocol

from anabranch.counting import counted
from anabranch.errors import AnabranchError, ExecutorError
from anabranch.results import Results
from anabranch.results.effort import Effort
from anabranch.sweeps.cache import Cache
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.manifest import manifest
from anabranch.sweeps.pool import Meter
from anabranch.sweeps.precision import Precision
from anabranch.sweeps.progress import Progress
from anabranch.sweeps.recorder import Recorder
from anabranch.sweeps.resuming import finished_text, resume_text
from anabranch.sweeps.rounds import Rounds
from anabranch.sweeps.rows import Rows
from anabranch.sweeps.store import Store
from anabranch.version import Engine

_REMEDY = 'A `version = "…"` in the class keeps its runs until the text is changed'


class Backend(Protocol):
    """Producer of the runs of a grid: native threads of this process, or an executor."""

    @property
    def meter(self) -> Meter | None:
        """Overhead of an executor; native threads have none."""

    def make(self, grid: Grid, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        """Makes the runs at these positions; passes their figures to `record`, in any order and from one thread."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a sweep. `results` has the finished runs; the message explains how to resume."""

    def __init__(self, message: str, results: Results) -> None:
        super().__init__(message)
        self.results = results


class StoppedError(ExecutorError):
    """The executor ended a sweep. `results` has the finished runs; the message explains how to resume."""

    def __init__(self, message: str, results: Results) -> None:
        super().__init__(message)
        self.results = results


class Runner:
    """Runner of a grid."""

    def __init__(
        self,
        grid: Grid,
        backend: Backend,
        engine: Engine,
        *,
        cache: Cache | None,
        until: Precision | None,
        progress: Progress,
        notify: Callable[[str], None],
        observe: Callable[[int, str], None] | None = None,
    ) -> None:
        self._grid = grid
        self._maker = backend
        self._engine = engine
        self._store = Store(grid, cache) if cache else None
        self._until = until
        self._progress = progress
        self._notify = notify
        self._observe = observe
        self._rows = Rows(grid)
        self._rounds = Rounds(grid, until)
        self._planned = 0
        self._computed = 0
        self._cached = 0
        self._resumed = 0

    def run(self) -> Results:
        """Makes the wanted runs, in rounds if there is a stopping rule.

        Raises `Interrupted`, `StoppedError`, or the error of a run. Finished runs are in the cache.
        """
        is_complete = False
        try:
            while wanted := self._rounds.next():
                self._planned += len(wanted)
                self._progress.add(len(wanted))
                holes = self._look_up(wanted, self._store) if self._store else wanted
                if holes:
                    self._maker.make(self._grid, holes, self._record)
            is_complete = True
        except KeyboardInterrupt as error:
            raise Interrupted(f"interrupted: {self._kept()}", self._results()) from error
        except ExecutorError as error:
            raise StoppedError(f"{error}\n{self._kept()}", self._results()) from error
        except AnabranchError as error:
            raise type(error)(f"{error}\n{self._kept()}") from error
        finally:
            if self._store:
                self._store.end(is_complete=is_complete)
        self._warn_uncached()
        return self._results()

    def _look_up(self, wanted: Sequence[int], store: Store) -> Sequence[int]:
        """Takes finished runs from the store, and returns the positions of the others."""
        cache = store.cache
        holes = array("Q")
        unusable: list[int] = []
        damaged = cache.damaged

        def take(position: int, text: str) -> None:
            try:
                self._add(position, text)
            except (ValueError, LookupError, TypeError):
                cache.count_damage(self._grid.key_of(position), "it has the figures of something else")
                unusable.append(position)
            else:
                is_cached = self._grid.cell_of(position).is_cacheable
                self._cached += is_cached
                self._resumed += not is_cached
                self._progress.cached()

        with Recorder(wanted, take) as recorder:
            for index, position in enumerate(wanted):
                text = store.get(position)
                if text is None:
                    holes.append(position)
                else:
                    recorder.finished[index] = text
                    recorder.wait_for_room()
        if count := cache.damaged - damaged:
            entries = counted(count, "entry", "entries")
            self._notify(f"{entries} of the cache cannot be used, to be computed again: {cache.first_damage}")
        return sorted([*holes, *unusable]) if unusable else holes

    def _record(self, position: int, text: str) -> None:
        """Records a finished run."""
        self._grid.files.check_unchanged()
        if self._store is not None and not self._store.put(position, text) and self._store.unstored == 1:
            self._notify(
                f"{self._store.first_failure}: the sweep continues and keeps finished runs in memory, but a run that "
                "cannot be written to the cache is lost if the sweep is ended before its results are written"
            )
        self._add(position, text)
        self._computed += 1
        self._progress.computed()

    def _add(self, position: int, text: str) -> None:
        self._rounds.add(position, self._rows.add(position, text))
        if self._observe is not None:
            self._observe(position, text)

    def _kept(self) -> str:
        """Returns the number of finished runs, and how to resume, as text."""
        done = self._computed + self._cached + self._resumed
        finished = finished_text(done, self._planned, is_minimum=self._until is not None)
        if self._store is None:
            return f"{finished}; no cache stores them"
        return resume_text(finished, self._store.cache.folder, "sweep", self._store.unstored)

    def _uncached_why(self) -> tuple[str, ...]:
        """Returns each scheme whose runs are not in the cache, with the first reason."""
        if self._store is None:
            return ()
        schemes = self._grid.python_schemes.values()
        return tuple(
            f"{own.name}: {own.cache_permission.reasons[0]}" for own in schemes if not own.cache_permission.is_allowed
        )

    def _warn_uncached(self) -> None:
        """Reports the runs that the same sweep will repeat."""
        why = self._uncached_why()
        count = self._uncached()
        if why and count:
            runs = counted(count, "run is", "runs are")
            self._notify(
                f"{runs} not in the cache, and will be repeated by the next sweep: {'; '.join(why)}. {_REMEDY}"
            )

    def _uncached(self) -> int:
        return self._store.uncached + self._resumed if self._store else 0

    def _results(self) -> Results:
        meter = self._maker.meter
        effort = Effort(
            computed=self._computed,
            cached=self._cached,
            resumed=self._resumed,
            uncached=self._uncached(),
            uncached_reasons=self._uncached_why(),
            damaged=self._store.cache.damaged if self._store else 0,
            unstored=self._store.unstored if self._store else 0,
            units=meter.units if meter else 0,
            overhead=meter.overhead if meter else None,
            capped=self._rounds.capped(),
        )
        missing = self._planned - self._rows.runs
        return Results(
            **self._rows.tables(), manifest=manifest(self._grid, self._engine, self._until, missing), effort=effort
        )
