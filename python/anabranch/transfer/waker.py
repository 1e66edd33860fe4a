"""Waiting in an event loop for what native threads do.

Native threads never touch the interpreter. They write to a pipe that the event loop watches, so that they neither wait
for the interpreter nor keep it from ending.
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

# Operations that may be finished at once, one after the other, before other tasks of the loop are run.
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
        """The one of the loop that runs in this thread. The loop keeps it until it is closed."""
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
        """The result of an operation.

        It is looked at in the very step in which the task goes on. A task that is cancelled gives the operation up
        before it has done anything: no message is taken and lost, and none that was not accepted is sent.
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


# Peers are told when the process ends, and a forked one has no threads of its own to tell them.
atexit.register(_native.end_associations)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.forget_runtime)
