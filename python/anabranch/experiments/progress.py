"""Progress of runs: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tqdm import tqdm

LINE_EVERY_S = 5.0
"""Seconds between two lines if standard error is no terminal."""


class Progress(Protocol):
    """Counter of finished runs."""

    def at(self, experiment: str) -> None:
        """Sets the experiment of the following runs."""

    def update(self, runs: int = 1) -> None:
        """Adds finished runs."""


@contextmanager
def progress_of(runs: int, shown: bool | None, about: str) -> Iterator[Progress]:
    """Shows progress on standard error. `shown` is `True` for a bar in any case, and `False` for no output.

    Lines begin with `about`, which is also the description of a bar before the first experiment.
    """
    if shown is None and not sys.stderr.isatty():
        lines = Lines(runs, about)
        with lines.printed():
            yield lines
        return
    with tqdm(total=runs, unit="run", desc=about, disable=shown is False, dynamic_ncols=True, smoothing=0.05) as bar:
        yield Bar(bar)


class Bar:
    """Bar on a terminal."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def at(self, experiment: str) -> None:
        self._bar.set_description(experiment)

    def update(self, runs: int = 1) -> None:
        self._bar.update(runs)


class Lines:
    """Lines for a file or a pipe."""

    def __init__(self, runs: int, about: str) -> None:
        self._runs, self._about, self._done, self._experiment = runs, about, 0, ""
        self._began = time.monotonic()

    def at(self, experiment: str) -> None:
        self._experiment = experiment

    def update(self, runs: int = 1) -> None:
        self._done += runs

    @contextmanager
    def printed(self, every_s: float = LINE_EVERY_S) -> Iterator[None]:
        """Prints a line every few seconds inside the block, even while a single run takes longer."""
        ended = threading.Event()
        thread = threading.Thread(target=self._print, args=(ended, every_s), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _print(self, ended: threading.Event, every_s: float) -> None:
        while not ended.wait(every_s):
            print(self.text(time.monotonic() - self._began), file=sys.stderr, flush=True)

    def text(self, elapsed_s: float) -> str:
        """Returns the line for this elapsed time."""
        done = f"{self._about}: {self._done} of {self._runs} runs in {elapsed_s:.0f} s"
        if self._done >= self._runs:
            return f"{done}; drawing figures and writing pages"
        return f"{done}, now {self._experiment}" if self._experiment else done
