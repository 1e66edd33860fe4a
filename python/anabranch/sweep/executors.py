"""Who makes the runs: an executor of any kind, and what is known about its workers."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any, TypeAlias

from anabranch.errors import ExecutorError

ExecutorLike: TypeAlias = "str | Executor | Any | None"

_EXPECTED = (
    "expected `threads:N`, `processes:N` or `dask://HOST:PORT`, a concurrent.futures.Executor or a distributed.Client"
)


class Workers:
    """An executor that was handed to the sweep: nothing is known about it but what it tells."""

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self.executor = executor
        self._workers = workers or getattr(executor, "_max_workers", None) or os.cpu_count() or 1

    def count(self) -> int:
        """Units that it works on at once."""
        return self._workers

    def check(self, *, idle: bool) -> None:
        """Raises `ExecutorError` if there is nobody left to wait for; `idle` if nothing has come from them of late."""

    def cancelled(self) -> str:
        """What it means that a unit was cancelled."""
        return "the executor has cancelled work that it had taken: it was shut down"

    def close(self, *, at_once: bool) -> None:
        """Ends what the sweep itself has begun."""


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
    """Readies a process: the sweep's process decides what Ctrl-C means, and this one ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def native_threads(executor: ExecutorLike, workers: int | None) -> tuple[bool, int | None]:
    """Whether native threads of this process make the runs, and how many (one for each processor if `None`)."""
    if executor is None:
        return True, workers
    if isinstance(executor, str) and (chosen := re.fullmatch(r"threads:([1-9]\d{0,3})", executor)):
        return True, int(chosen[1])
    return False, None


def open_workers(executor: ExecutorLike, workers: int | None, timeout_s: float) -> Workers:
    """The workers behind what was given as `executor`. Raises `ExecutorError` if there are none."""
    if isinstance(executor, str):
        if chosen := re.fullmatch(r"processes:([1-9]\d{0,3})", executor):
            return Processes(int(chosen[1]))
        if executor.startswith("dask://"):
            connected: Workers = _dask().connect(executor, timeout_s)
            return connected
        raise ExecutorError(f"there is no executor `{executor}`: {_EXPECTED}")
    # Executors of Dask know their client; clients can make an executor. The name tells without importing Dask.
    client = getattr(executor, "_client", executor)
    if type(client).__module__.split(".")[0] == "distributed" and hasattr(client, "get_executor"):
        seen: Workers = _dask().DaskWorkers(client, timeout_s)
        return seen
    if not isinstance(executor, Executor):
        raise ExecutorError(f"{executor!r} is no executor: {_EXPECTED}")
    return Workers(executor, workers)


def _dask() -> Any:
    try:
        from anabranch.sweep import dask
    except ImportError as error:
        raise ExecutorError(f"Dask is not installed ({error}): pip install 'anabranch[dask]'") from error
    return dask
