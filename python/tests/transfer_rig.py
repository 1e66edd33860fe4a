"""What the tests of transfers have in common: event loops of their own, and associations over loopback."""

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

# So long nothing takes here, however busy the machine is: whoever waits longer hangs.
HANGS_AFTER_S = 60

PACKAGE = Path(anabranch.__file__).parent.parent


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), HANGS_AFTER_S))

    return run


def here(paths: int, node: int = 0) -> list[str]:
    """Loopback addresses of one side."""
    return [f"127.0.{node}.{path + 1}" for path in range(paths)]


@contextlib.asynccontextmanager
async def listening(paths: int = 1, **settings: Any) -> AsyncIterator[Listener]:
    async with anabranch.listen([f"{address}:0" for address in here(paths)], **settings) as listener:
        yield listener


@contextlib.asynccontextmanager
async def pair(paths: int = 1, **settings: Any) -> AsyncIterator[tuple[Association, Association]]:
    """The two ends of an association over so many paths."""
    async with (
        listening(paths, **settings) as listener,
        anabranch.connect(listener.addresses, local=here(paths, 1), **settings) as ours,
        await listener.accept() as theirs,
    ):
        yield ours, theirs


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits until something holds that nobody is told of."""
    while not await holds():
        await asyncio.sleep(0.002)


async def fill(association: Association, payload: bytes = bytes(65536)) -> int:
    """Sends until the association takes nothing more, and gives the bytes that it has accepted."""
    accepted = 0
    while True:
        sending = asyncio.ensure_future(association.send(payload))
        done, _ = await asyncio.wait({sending}, timeout=0.5)
        if not done:
            sending.cancel()
            await asyncio.wait({sending})
            return accepted
        sending.result()
        accepted += len(payload)


def script(text: str, *arguments: str) -> list[str]:
    """The command line of a Python program that has the package."""
    return [sys.executable, "-W", "error", "-c", text, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PACKAGE)}


def run_script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = script(text, *arguments)
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False
    )
