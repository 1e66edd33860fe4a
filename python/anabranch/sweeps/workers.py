"""Workers of an executor, and processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any


class Workers:
    """Executor from the caller, whose workers are known only by its answers."""

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self.executor = executor
        self._workers = workers or getattr(executor, "_max_workers", None) or os.cpu_count() or 1

    def count(self) -> int:
        """Returns the number of units that it works on at once."""
        return self._workers

    def check(self, *, idle: bool) -> None:
        """Raises `ExecutorError` if no worker is left. `idle` is `True` if none has reported recently."""

    def cancelled(self) -> str:
        """Returns the message for a cancelled unit."""
        return "the executor has cancelled work that it had taken: it was shut down"

    def close(self, *, at_once: bool) -> None:
        """Ends the workers that the sweep itself has started."""


class Processes(Workers):
    """Processes of this machine, which belong to the sweep."""

    def __init__(self, workers: int) -> None:
        # A fresh interpreter for each: one that is forked from a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_in_process)
        super().__init__(self._pool, workers)

    def close(self, *, at_once: bool) -> None:
        if at_once:
            # Before Python 3.14 an executor has no public way to end its processes, which may be in a long run.
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _in_process() -> None:
    """Prepares a process: it ignores Ctrl-C, which the sweep's process handles, and ends with that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
