"""Sender or receiver of one run: bulk data, a file, or messages, over TCP, MPTCP or an association.

    python -m studies.arena.peer receive --stack tcp --work bulk --seconds 20 --start-ms MS --local 10.91.1.2
    python -m studies.arena.peer send --stack tcp --work bulk --seconds 20 --start-ms MS --remote 10.91.1.2

The same program runs over every stack, so that differences are those of the stacks. It prints `ready`, waits for the
start, prints its figures as one line of JSON, and runs until its standard input ends. All times count from the start.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Awaitable
from typing import Any, Protocol

IPPROTO_MPTCP = 262
BLOCK_BYTES = 1 << 16
BIN_S = 0.1
CONNECT_S = 15.0
# Time after the last message in which late ones still count.
GRACE_S = 5.0
PORT = 9797
STAMP = struct.Struct("!d")


class Clock:
    """Monotonic time since the start of the run."""

    def __init__(self, start_ms: int) -> None:
        self._start = start_ms / 1000

    def now(self) -> float:
        return time.monotonic() - self._start

    async def until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, at_s - self.now()))


class Channel(Protocol):
    """Reliable and ordered bytes to and from the peer."""

    async def send(self, data: bytes) -> None: ...

    async def receive(self) -> bytes:
        """Returns the next bytes, or none at the end."""

    async def finish(self) -> None:
        """Ends the sending direction."""


class TcpChannel:
    """Connection of the kernel's TCP or MPTCP."""

    def __init__(self, connection: socket.socket, listening: socket.socket | None = None) -> None:
        """Takes a listener along, which accepts subflows of MPTCP while it is open."""
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection, self._listening = connection, listening
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._connection, data)

    async def receive(self) -> bytes:
        return await self._loop.sock_recv(self._connection, BLOCK_BYTES)

    async def finish(self) -> None:
        self._connection.shutdown(socket.SHUT_WR)


class AnabranchChannel:
    """Association, with one stream in order."""

    def __init__(self, association: Any) -> None:
        self._association = association

    async def send(self, data: bytes) -> None:
        await self._association.send(data)

    async def receive(self) -> bytes:
        message = await self._association.recv()
        return b"" if message is None else message.payload

    async def finish(self) -> None:
        await self._association.shutdown()


def tcp_socket(options: argparse.Namespace) -> socket.socket:
    protocol = IPPROTO_MPTCP if options.stack == "mptcp" else socket.IPPROTO_TCP
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.control.encode())
    return opened


async def connected(options: argparse.Namespace, clock: Clock) -> Channel:
    """Connects at the start of the run."""
    if options.stack == "anabranch":
        import anabranch

        remotes = [f"{address}:{options.port}" for address in options.remote]
        print("ready", flush=True)
        await clock.until(0)
        opening = anabranch.connect(
            remotes, local=options.local, scheme=options.scheme, insecure=True, connect_timeout_s=CONNECT_S
        )
        return AnabranchChannel(await opening)
    connection, address = tcp_socket(options), (options.remote[0], options.port)
    print("ready", flush=True)
    await clock.until(0)
    # The event loop does not know MPTCP's protocol number.
    await asyncio.wait_for(asyncio.to_thread(connection.connect, address), CONNECT_S)
    return TcpChannel(connection)


async def accepted(options: argparse.Namespace) -> Channel:
    if options.stack == "anabranch":
        import anabranch

        listener = await anabranch.listen([f"{address}:{options.port}" for address in options.local], insecure=True)
        print("ready", flush=True)
        return AnabranchChannel(await listener.accept())
    listening = tcp_socket(options)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((options.bind, options.port))
    listening.listen(8)
    listening.setblocking(False)
    print("ready", flush=True)
    connection, _ = await asyncio.get_running_loop().sock_accept(listening)
    return TcpChannel(connection, listening)


class Arrivals:
    """Bytes that arrived in each tenth of a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bins: dict[int, int] = {}
        self.total = 0
        self.last_s = 0.0

    def count(self, length: int) -> None:
        self.last_s = self._clock.now()
        number = int(self.last_s / BIN_S)
        self._bins[number] = self._bins.get(number, 0) + length
        self.total += length

    def figures(self) -> dict[str, Any]:
        return {"bytes": self.total, "last_s": self.last_s, "bins": sorted(self._bins.items())}


async def within(clock: Clock, end_s: float, work: Awaitable[None]) -> None:
    """Runs a coroutine until it ends, or until a time."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(work, max(0.0, end_s - clock.now()))


async def send_bulk(channel: Channel, clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    async def blocks() -> None:
        block = bytes(BLOCK_BYTES)
        while True:
            await channel.send(block)

    await within(clock, options.seconds, blocks())
    return {}


async def receive_bulk(channel: Channel, clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    arrivals = Arrivals(clock)

    async def all_data() -> None:
        while data := await channel.receive():
            arrivals.count(len(data))

    await within(clock, options.seconds, all_data())
    return arrivals.figures()


async def send_file(channel: Channel, clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    async def file() -> None:
        left = options.bytes
        while left:
            block = bytes(min(left, BLOCK_BYTES))
            await channel.send(block)
            left -= len(block)
        await channel.receive()

    await within(clock, options.seconds, file())
    return {}


async def receive_file(channel: Channel, clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    arrivals = Arrivals(clock)

    async def file() -> None:
        while arrivals.total < options.bytes:
            if not (data := await channel.receive()):
                return
            arrivals.count(len(data))
        await channel.send(b"received")

    await within(clock, options.seconds, file())
    return arrivals.figures()


async def send_messages(channel: Channel, clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    """Sends messages at equal intervals. Each contains the time at which it was due: waiting counts as delay."""
    begin, count = clock.now(), round(options.seconds * options.per_s)

    async def messages() -> None:
        for number in range(count):
            due = begin + number / options.per_s
            await clock.until(due)
            await channel.send(STAMP.pack(due).ljust(options.bytes, b"\0"))

    await within(clock, options.seconds + GRACE_S, messages())
    await clock.until(options.seconds + GRACE_S)
    return {"messages": count}


async def receive_messages(channel: Channel, clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    delays: list[float] = []

    async def messages() -> None:
        buffer = bytearray()
        while data := await channel.receive():
            buffer += data
            while len(buffer) >= options.bytes:
                (due,) = STAMP.unpack_from(buffer)
                delays.append(round(1000 * (clock.now() - due), 2))
                del buffer[: options.bytes]

    await within(clock, options.seconds + GRACE_S, messages())
    return {"delays_ms": delays}


WORKS = {
    ("bulk", "send"): send_bulk,
    ("bulk", "receive"): receive_bulk,
    ("file", "send"): send_file,
    ("file", "receive"): receive_file,
    ("messages", "send"): send_messages,
    ("messages", "receive"): receive_messages,
}


async def run(options: argparse.Namespace) -> None:
    """Runs this side, prints its figures, and waits for the end of standard input."""
    clock = Clock(options.start_ms)
    if options.role == "send":
        channel = await connected(options, clock)
    else:
        limit = options.seconds + CONNECT_S - clock.now()
        channel = await asyncio.wait_for(accepted(options), limit)
    connected_s, before = clock.now(), time.process_time()
    figures = await WORKS[options.work, options.role](channel, clock, options)
    processor_s = time.process_time() - before
    print(json.dumps({**figures, "connected_s": connected_s, "processor_s": processor_s}), flush=True)
    # The peer may still need answers.
    await asyncio.to_thread(sys.stdin.read)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("role", choices=["send", "receive"])
    add("--stack", choices=["tcp", "mptcp", "anabranch"], required=True)
    add("--work", choices=["bulk", "file", "messages"], required=True)
    add("--seconds", type=float, required=True, help="duration; of a file the time after which it is given up")
    add("--bytes", type=int, default=1000, help="of the file, or of each message")
    add("--per-s", type=float, default=50, help="messages per second")
    add("--start-ms", type=int, required=True, help="start of the run in milliseconds of the monotonic clock")
    add("--local", action="append", default=[], help="address of a path")
    add("--remote", action="append", default=[], help="address of the peer")
    add("--bind", default="0.0.0.0", help="address on which TCP listens")
    add("--port", type=int, default=PORT)
    add("--control", default="cubic", help="congestion control of TCP")
    add("--scheme", default="braid")
    options = parser.parse_args()
    try:
        asyncio.run(run(options))
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    # Data that is still queued is discarded with the process.
    os._exit(0)


if __name__ == "__main__":
    main()
