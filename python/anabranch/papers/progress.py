"""How far a reproduction is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Protocol

from tqdm import tqdm

LINE_EVERY_S = 5.0
"""Seconds between two lines where nobody watches."""


class Progress(Protocol):
    """Counts runs."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def at(self, experiment: str) -> None:
        """The runs from here on belong to this experiment."""

    def update(self, runs: int = 1) -> None:
        """So many runs more are done."""


def progress_of(runs: int, shown: bool | None) -> Progress:
    """Progress on standard error; `shown` is `False` for none."""
    if shown is False:
        return Bar(runs, disable=True)
    return Bar(runs, disable=False) if shown or sys.stderr.isatty() else Lines(runs)


class Bar:
    """For a terminal."""

    def __init__(self, runs: int, *, disable: bool) -> None:
        self._bar = tqdm(total=runs, unit="run", desc="papers", disable=disable, dynamic_ncols=True, smoothing=0.05)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def at(self, experiment: str) -> None:
        self._bar.set_description(experiment)

    def update(self, runs: int = 1) -> None:
        self._bar.update(runs)


class Lines:
    """For a file or a pipe: a line every few seconds, also while a single run takes longer."""

    def __init__(self, runs: int, every_s: float = LINE_EVERY_S) -> None:
        self._runs, self._done, self._experiment = runs, 0, ""
        self._every_s, self._began = every_s, time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Lines:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def at(self, experiment: str) -> None:
        self._experiment = experiment

    def update(self, runs: int = 1) -> None:
        self._done += runs

    def _tell(self) -> None:
        while not self._ended.wait(self._every_s):
            print(self.text(time.monotonic() - self._began), file=sys.stderr, flush=True)

    def text(self, elapsed_s: float) -> str:
        """How it stands after so many seconds."""
        done = f"papers: {self._done} of {self._runs} runs in {elapsed_s:.0f} s"
        if self._done >= self._runs:
            return f"{done}; figures and pages are being made"
        return f"{done}, now {self._experiment}"
