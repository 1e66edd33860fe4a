"""Executors of a sweep, selected by name or object."""

from __future__ import annotations

import re
from concurrent.futures import Executor
from typing import Any, TypeAlias

from anabranch.errors import ExecutorError
from anabranch.sweeps.workers import Processes, Workers

ExecutorLike: TypeAlias = "str | Executor | Any | None"

_EXPECTED = (
    "expected `threads:N`, `processes:N` or `dask://HOST:PORT`, a concurrent.futures.Executor or a distributed.Client"
)


def native_threads(executor: ExecutorLike, workers: int | None) -> tuple[bool, int | None]:
    """Returns `True` if native threads of this process make the runs, and their number (`None`: one per processor)."""
    if executor is None:
        return True, workers
    if isinstance(executor, str) and workers is not None:
        raise ExecutorError(f"`workers`: has no effect, since `{executor}` makes the runs: omit it")
    if isinstance(executor, str) and (chosen := re.fullmatch(r"threads:([1-9]\d{0,3})", executor)):
        return True, int(chosen[1])
    return False, None


def open_workers(executor: ExecutorLike, workers: int | None, timeout_s: float) -> Workers:
    """Returns the workers of a given `executor`. Raises `ExecutorError` if it is invalid."""
    if isinstance(executor, str):
        if chosen := re.fullmatch(r"processes:([1-9]\d{0,3})", executor):
            return Processes(int(chosen[1]))
        if executor.startswith("dask://"):
            connected: Workers = _dask().connect(executor, timeout_s)
            return connected
        raise ExecutorError(f"unknown executor `{executor}`: {_EXPECTED}")
    # Executors of Dask have a client, and clients can make an executor. The module's name avoids importing Dask.
    client = getattr(executor, "_client", executor)
    if type(client).__module__.split(".")[0] == "distributed" and hasattr(client, "get_executor"):
        seen: Workers = _dask().DaskWorkers(client, timeout_s)
        return seen
    if not isinstance(executor, Executor):
        raise ExecutorError(f"{executor!r} is not an executor: {_EXPECTED}")
    return Workers(executor, workers)


def _dask() -> Any:
    try:
        from anabranch.sweeps import dask
    except ImportError as error:
        raise ExecutorError(f"Dask is not installed ({error}): pip install 'anabranch[dask]'") from error
    return dask
