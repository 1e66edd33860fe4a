"""Event-loop side of operations that native threads run.

Native threads never enter the interpreter. They write to a pipe that the event loop watches, so that they neither wait
for the interpreter nor delay its exit.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import weakref
from typing import TypeVar

from anabranch import _native
from anabranch.errors import TransferError

T = TypeVar("T")

# Maximum number of operations that may finish at once before other tasks of the loop run.
POLLS = 32

_wakers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[Waker]] = weakref.WeakKeyDictionary()


class Waker:
    """Wakes the tasks of one event loop."""

    __slots__ = ("__weakref__", "_loop", "_numbers", "_pipe", "_polls", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pipe = _native.WakePipe()
        self._numbers = itertools.count()
        self._polls = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        try:
            loop.add_reader(self._pipe.fileno(), self._wake)
        except NotImplementedError as error:
            raise TransferError(
                f"{type(loop).__name__} cannot watch a pipe; use an event loop that can, as asyncio's are on Unix"
            ) from error

    @staticmethod
    def of_running_loop() -> Waker:
        """Returns the waker of the loop that runs in this thread. The loop keeps it until the loop is closed."""
        loop = asyncio.get_running_loop()
        known = _wakers.get(loop)
        waker = known() if known else None
        if waker is None:
            waker = Waker(loop)
            _wakers[loop] = weakref.ref(waker)
        return waker

    def _wake(self) -> None:
        for number in self._pipe.drain():
            waiter = self._waiting.get(number)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    async def outcome(self, operation: _native.Operation[T]) -> T:
        """Waits for an operation, and returns its result.

        The task takes the result in the step in which it resumes. A task that is cancelled cancels the operation before
        it has an effect: no message is taken and lost, and none is sent that was not accepted.
        """
        number = next(self._numbers)
        try:
            self._polls += 1
            if self._polls > POLLS:
                self._polls = 0
                await asyncio.sleep(0)
            while (found := operation.poll(self._pipe, number)) is None:
                self._polls = 0
                waiter = self._waiting[number] = self._loop.create_future()
                await waiter
        except BaseException:
            operation.cancel()
            raise
        finally:
            self._waiting.pop(number, None)
        return found[0]


# The native module aborts associations when the process ends. A forked process has no threads to do so.
atexit.register(_native.end_associations)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.forget_runtime)
