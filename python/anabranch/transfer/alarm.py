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

# Operations that need not wait before other tasks of the loop have their turn.
TURNS = 32

_alarms: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[Alarm]] = weakref.WeakKeyDictionary()


class Alarm:
    """Wakes the tasks of one event loop."""

    __slots__ = ("__weakref__", "_bell", "_loop", "_numbers", "_turns", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._bell = _native.Bell()
        self._numbers = itertools.count()
        self._turns = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        try:
            loop.add_reader(self._bell.fileno(), self._answer)
        except NotImplementedError as error:
            raise TransferError(
                f"{type(loop).__name__} cannot watch a pipe; use an event loop that can, as asyncio's are on Unix"
            ) from error

    @staticmethod
    def of_running_loop() -> Alarm:
        """The one of the loop that runs in this thread. The loop keeps it until it is closed."""
        loop = asyncio.get_running_loop()
        known = _alarms.get(loop)
        alarm = known() if known else None
        if alarm is None:
            alarm = Alarm(loop)
            _alarms[loop] = weakref.ref(alarm)
        return alarm

    def _answer(self) -> None:
        for number in self._bell.answer():
            waiter = self._waiting.get(number)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    async def outcome(self, operation: _native.Operation[T]) -> T:
        """What comes of an operation.

        It is looked at in the very step in which the task goes on. A task that is cancelled gives the operation up
        before it has done anything: no message is taken and lost, and none that was not accepted is sent.
        """
        number = next(self._numbers)
        try:
            self._turns += 1
            if self._turns > TURNS:
                self._turns = 0
                await asyncio.sleep(0)
            while (found := operation.poll(self._bell, number)) is None:
                self._turns = 0
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
