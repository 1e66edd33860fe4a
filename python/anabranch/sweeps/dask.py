"""Workers of a Dask cluster, by way of its scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from typing import Any

import distributed

from anabranch.errors import ExecutorError
from anabranch.sweeps.workers import Workers

# Time limit for the scheduler to connect and to answer.
_ANSWER_S = 10.0
# Interval of queries for its workers.
_ASK_S = 2.0


def connect(address: str, timeout_s: float) -> DaskWorkers:
    """Connects to the scheduler at `dask://HOST:PORT`. Raises `ExecutorError` if it cannot be reached."""
    place = address.removeprefix("dask://")
    try:
        client = distributed.Client(f"tcp://{place}", timeout=_ANSWER_S, set_as_default=False, name="anabranch-sweep")
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise ExecutorError(
            f"{address}: no Dask scheduler answers there ({error}): start one with `dask scheduler`, or name another"
        ) from error
    return DaskWorkers(client, timeout_s, owned=True)


class DaskWorkers(Workers):
    """Workers of a client. Dask itself gives the units of a lost worker to others."""

    def __init__(self, client: distributed.Client, timeout_s: float, *, owned: bool = False) -> None:
        self._client = client
        self._owned = owned
        self._timeout_s = timeout_s
        self._address = str(client.scheduler.address) if client.scheduler else "the scheduler"
        self._threads = 0
        self._asked = -_ASK_S
        # Time since which there have been no workers.
        self._alone = time.monotonic()
        super().__init__(_Tasks(client))

    def count(self) -> int:
        """Returns the number of threads of all workers, which may change."""
        if time.monotonic() - self._asked >= _ASK_S:
            self._ask()
        return self._threads

    def check(self, *, idle: bool) -> None:
        if idle and self.count() == 0 and time.monotonic() - self._alone >= self._timeout_s:
            raise ExecutorError(
                f"{self._address}: has had no workers for {self._timeout_s:g} s: start some with "
                f"`dask worker {self._address}`, or allow more time with worker_timeout_s= or --worker-timeout"
            )

    def _ask(self) -> None:
        scheduler = self._client.scheduler
        if scheduler is None:
            raise ExecutorError(self.cancelled())
        try:
            threads = self._client.sync(scheduler.ncores, workers=None, callback_timeout=_ANSWER_S)
        except (OSError, RuntimeError, asyncio.TimeoutError) as error:
            raise ExecutorError(self.cancelled()) from error
        now = time.monotonic()
        self._threads, self._asked = sum(threads.values()), now
        if self._threads:
            self._alone = now

    def cancelled(self) -> str:
        return f"{self._address}: the scheduler has ended, or has dropped the work: read its output, and restart it"

    def close(self, *, at_once: bool) -> None:
        if self._owned:
            with contextlib.suppress(OSError, RuntimeError, asyncio.TimeoutError):
                self._client.close(timeout=2)


class _Tasks(Executor):
    """Executor that submits calls to the workers of a client.

    Dask's own executor (`Client.get_executor`, in distributed 2026.8) queries the status of a task after it has the
    result. If the worker is lost in between, the task counts as lost, and the result is taken for an error.
    """

    def __init__(self, client: distributed.Client) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        loop = self._client.loop
        if loop is None:
            raise RuntimeError("the client is closed")
        task = self._client.submit(fn, *args, pure=False, **kwargs)
        future: Future[Any] = Future()

        def withdraw(future: Future[Any]) -> None:
            if future.cancelled() and not task.cancelled():
                task.cancel()

        future.add_done_callback(withdraw)
        loop.add_callback(_settle, task, future)
        return future


async def _settle(task: distributed.Future[Any], future: Future[Any]) -> None:
    """Passes the result of a task to a future."""
    # The future may have been cancelled meanwhile.
    with contextlib.suppress(InvalidStateError):
        try:
            result = await task._result()
        except CancelledError:
            future.cancel()
            # Only this call notifies those who wait for the future.
            future.set_running_or_notify_cancel()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
