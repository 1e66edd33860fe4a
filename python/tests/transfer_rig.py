"""Common parts of the tests of transfers: event loops of their own, and associations over loopback."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import anabranch
from anabranch.transfer import Association, Listener

# Time limit of a test. Only tests that hang exceed this limit, even on a busy machine.
HANGS_AFTER_S = 60

PACKAGE = Path(anabranch.__file__).parent.parent


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), HANGS_AFTER_S))

    return run


def here(paths: int, node: int = 0) -> list[str]:
    """Returns loopback addresses of one side."""
    return [f"127.0.{node}.{path + 1}" for path in range(paths)]


@contextlib.asynccontextmanager
async def listening(paths: int = 1, **settings: Any) -> AsyncIterator[Listener]:
    async with anabranch.listen([f"{address}:0" for address in here(paths)], **settings) as listener:
        yield listener


@contextlib.asynccontextmanager
async def pair(paths: int = 1, **settings: Any) -> AsyncIterator[tuple[Association, Association]]:
    """Opens an association over `paths` paths, and yields both ends."""
    async with (
        listening(paths, **settings) as listener,
        anabranch.connect(listener.addresses, local=here(paths, 1), **settings) as ours,
        await listener.accept() as theirs,
    ):
        yield ours, theirs


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits until a condition is true, by polling."""
    while not await holds():
        await asyncio.sleep(0.002)


# Small buffers, which little data fills.
SMALL = {"send_buffer_bytes": 64 << 10, "recv_buffer_bytes": 64 << 10}


async def fill(sender: Association, receiver: Association) -> int:
    """Sends until all buffers are full, while neither side reads. Returns the number of accepted bytes."""
    payload = bytes(SMALL["send_buffer_bytes"])
    accepted = 0
    while True:
        timeouts = (await sender.statistics()).timeouts
        sending = asyncio.ensure_future(sender.send(payload))
        while not sending.done() and not await is_stuck(sender, receiver, timeouts):
            await asyncio.sleep(0.002)
        sending.cancel()
        await asyncio.wait({sending})
        if sending.cancelled():
            return accepted
        accepted += len(payload)


async def is_stuck(sender: Association, receiver: Association, timeouts: int) -> bool:
    """Returns `True` if the receive buffer is full, and the sender has had a further time-out since."""
    tried_again = (await sender.statistics()).timeouts > timeouts
    return tried_again and (await receiver.statistics()).recv_buffered_bytes > SMALL["recv_buffer_bytes"] - 6000


async def everything(association: Association) -> list[bytes]:
    return [message.payload async for message in association]


async def leave(association: Association) -> None:
    async with association:
        pass


def script(text: str, *arguments: str) -> list[str]:
    """Returns the command line of a Python program that imports the package."""
    return [sys.executable, "-W", "error", "-c", text, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PACKAGE)}


def run_script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = script(text, *arguments)
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False
    )
