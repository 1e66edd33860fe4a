"""From a grid to results: what is in the cache is taken from there, and the rest is made."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Protocol

from anabranch.engine import Engine
from anabranch.errors import AnabranchError, ExecutorError
from anabranch.results import Results
from anabranch.results.effort import Effort
from anabranch.sweep.cache import Cache
from anabranch.sweep.grid import Grid
from anabranch.sweep.manifest import manifest
from anabranch.sweep.pool import Meter
from anabranch.sweep.precision import Precision
from anabranch.sweep.progress import Progress
from anabranch.sweep.recorder import Recorder
from anabranch.sweep.rounds import Rounds
from anabranch.sweep.rows import Rows


class Backend(Protocol):
    """Makes the runs of a grid: native threads of this process, or an executor."""

    @property
    def meter(self) -> Meter | None:
        """What an executor took; native threads have none."""

    def make(self, grid: Grid, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        """Makes the runs at these positions; hands their figures to `record`, in any order and from one thread."""


class Interrupted(KeyboardInterrupt):
    """A sweep was ended by Ctrl-C. `results` has the runs that were finished; the message says how to go on."""

    def __init__(self, message: str, results: Results) -> None:
        super().__init__(message)
        self.results = results


class StoppedError(ExecutorError):
    """A sweep was ended by its executor. `results` has the runs that were finished; the message says how to go on."""

    def __init__(self, message: str, results: Results) -> None:
        super().__init__(message)
        self.results = results


class Runner:
    """Fills a grid."""

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
    ) -> None:
        self._grid = grid
        self._maker = backend
        self._engine = engine
        self._cache = cache
        self._until = until
        self._progress = progress
        self._notify = notify
        self._rows = Rows(grid)
        self._rounds = Rounds(grid, until)
        self._planned = 0
        self._computed = 0
        self._cached = 0

    def run(self) -> Results:
        """Makes what is wanted, in rounds if there is a stopping rule.

        Raises `Interrupted`, `StoppedError`, or what else makes a run impossible. What was finished is in the cache.
        """
        try:
            while wanted := self._rounds.next():
                self._planned += len(wanted)
                self._progress.add(len(wanted))
                holes = self._look_up(wanted, self._cache) if self._cache else wanted
                if holes:
                    self._maker.make(self._grid, holes, self._record)
        except KeyboardInterrupt as error:
            raise Interrupted(f"interrupted: {self._kept()}", self._results()) from error
        except ExecutorError as error:
            raise StoppedError(f"{error}\n{self._kept()}", self._results()) from error
        except AnabranchError as error:
            raise type(error)(f"{error}\n{self._kept()}") from error
        return self._results()

    def _look_up(self, wanted: Sequence[int], cache: Cache) -> Sequence[int]:
        """Takes from the cache what is there, and gives the rest."""
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
                self._cached += 1
                self._progress.cached()

        with Recorder(wanted, take) as recorder:
            for index, position in enumerate(wanted):
                text = cache.get(self._grid.key_of(position)) if self._grid.cell_of(position).is_kept else None
                if text is None:
                    holes.append(position)
                else:
                    recorder.finished[index] = text
                    recorder.wait_for_room()
        if count := cache.damaged - damaged:
            entries = "1 entry" if count == 1 else f"{count} entries"
            self._notify(f"{entries} of the cache cannot be used, to be computed again: {cache.first_damage}")
        return sorted([*holes, *unusable]) if unusable else holes

    def _record(self, position: int, text: str) -> None:
        """Takes a run that was made."""
        self._grid.files.check_unchanged()
        if (
            self._cache is not None
            and self._grid.cell_of(position).is_kept
            and not self._cache.put(self._grid.key_of(position), text)
            and self._cache.unkept == 1
        ):
            self._notify(
                f"{self._cache.first_failure}: the sweep goes on and keeps finished runs in memory, but a run that "
                "cannot be written to the cache is lost if the sweep is ended before its results are written"
            )
        self._add(position, text)
        self._computed += 1
        self._progress.computed()

    def _add(self, position: int, text: str) -> None:
        self._rounds.add(position, self._rows.add(position, text))

    def _kept(self) -> str:
        """How far it has come, and how to go on."""
        done = self._computed + self._cached
        count = f"{done} of {'at least ' if self._until else ''}{self._planned} runs are finished"
        if self._cache is None:
            return f"{count}; there is no cache that keeps them"
        lost = f", {self._cache.unkept} of them could not be kept" if self._cache.unkept else ""
        return f"{count} and kept in {self._cache.folder}{lost}: the same sweep goes on from there"

    def _results(self) -> Results:
        meter = self._maker.meter
        effort = Effort(
            computed=self._computed,
            cached=self._cached,
            damaged=self._cache.damaged if self._cache else 0,
            unkept=self._cache.unkept if self._cache else 0,
            units=meter.units if meter else 0,
            overhead=meter.overhead if meter else None,
            capped=self._rounds.capped(),
        )
        missing = self._planned - self._rows.runs
        return Results(
            **self._rows.tables(), manifest=manifest(self._grid, self._engine, self._until, missing), effort=effort
        )
