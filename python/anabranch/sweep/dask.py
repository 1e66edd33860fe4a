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
from anabranch.sweep.workers import Workers

# How long the scheduler may take to be reached, or to answer.
_ANSWER_S = 10.0
# How often it is asked for its workers.
_ASK_S = 2.0


def connect(address: str, timeout_s: float) -> DaskWorkers:
    """The cluster whose scheduler is at `dask://HOST:PORT`. Raises `ExecutorError` if it cannot be reached."""
    place = address.removeprefix("dask://")
    try:
        client = distributed.Client(f"tcp://{place}", timeout=_ANSWER_S, set_as_default=False, name="anabranch-sweep")
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise ExecutorError(
            f"{address}: no Dask scheduler answers there ({error}): start one with `dask scheduler`, or name another"
        ) from error
    return DaskWorkers(client, timeout_s, owned=True)


class DaskWorkers(Workers):
    """The workers that a client sees. Dask itself gives the units of a lost worker to others."""

    def __init__(self, client: distributed.Client, timeout_s: float, *, owned: bool = False) -> None:
        self._client = client
        self._owned = owned
        self._timeout_s = timeout_s
        self._address = str(client.scheduler.address) if client.scheduler else "the scheduler"
        self._threads = 0
        self._asked = -_ASK_S
        # Since when there have been no workers.
        self._alone = time.monotonic()
        super().__init__(_Tasks(client))

    def count(self) -> int:
        """Threads of all workers; workers may come and go."""
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
        return (
            f"{self._address}: the scheduler is gone, or has dropped the work: look at its output, and start it again"
        )

    def close(self, *, at_once: bool) -> None:
        if self._owned:
            with contextlib.suppress(OSError, RuntimeError, asyncio.TimeoutError):
                self._client.close(timeout=2)


class _Tasks(Executor):
    """Has calls made by the workers that a client sees.

    The executor of Dask (`Client.get_executor`, in distributed 2026.8) asks how a task ended after it has its result.
    If the worker is lost in between, the task counts as lost, and it takes the result for an error.
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
    """Gives a future what its task ended with."""
    # It may have been cancelled meanwhile.
    with contextlib.suppress(InvalidStateError):
        try:
            result = await task._result()
        except CancelledError:
            future.cancel()
            # Whoever waits for it hears of that only then.
            future.set_running_or_notify_cancel()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
