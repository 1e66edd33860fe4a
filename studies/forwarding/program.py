"""Programs whose connections are forwarded: a server of endless data and of echoes, and its client.

    python -m studies.forwarding.program serve
    python -m studies.forwarding.program download --host 10.91.1.2 --seconds 10 --start-ms MS

Both use plain TCP of the system. `mptcpize` and tunnels change what carries it. Each prints `ready`; the client then
waits for the start, and prints its figures as one line of JSON. All times count from the start.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

DATA_PORT, ECHO_PORT = 7001, 7002
BLOCK_BYTES = 1 << 16
KEY_INTERVAL_S = 0.05
IDLE_KEYS = 40
SETTLED_S = 1.0
"""Time from the start of the bulk data until the first keystroke beside it counts."""


class Clock:
    """Monotonic time since the start of the run."""

    def __init__(self, start_ms: int) -> None:
        self._start = start_ms / 1000

    def now(self) -> float:
        return time.monotonic() - self._start

    def until(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - self.now()))


def serve() -> None:
    """Accepts connections on both ports until the process is ended."""
    servers = [(listening(DATA_PORT), send_for_ever), (listening(ECHO_PORT), echo)]
    print("ready", flush=True)
    threads = [threading.Thread(target=accept, args=server) for server in servers]
    for thread in threads:
        thread.start()


def listening(port: int) -> socket.socket:
    return socket.create_server(("0.0.0.0", port), backlog=64)


def accept(listener: socket.socket, serve_one: Callable[[socket.socket], None]) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=ignore_loss, args=[serve_one, connection], daemon=True).start()


def ignore_loss(serve_one: Callable[[socket.socket], None], connection: socket.socket) -> None:
    """Serves a connection whose client may end it at any time."""
    try:
        serve_one(connection)
    except OSError:
        connection.close()


def send_for_ever(connection: socket.socket) -> None:
    block = bytes(BLOCK_BYTES)
    while True:
        connection.sendall(block)


def echo(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(BLOCK_BYTES):
        connection.sendall(data)


class Download:
    """Endless data of the server, received in a thread."""

    def __init__(self, host: str, clock: Clock) -> None:
        self._clock = clock
        self.arrivals: list[tuple[float, int]] = []
        """Time and length of every read."""
        self.error: OSError | None = None
        """Reason for which the connection ended before all data had arrived."""
        self._connection = connect(host, DATA_PORT)
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            while data := self._connection.recv(BLOCK_BYTES):
                self.arrivals.append((self._clock.now(), len(data)))
        except OSError as error:
            self.error = error


def connect(host: str, port: int) -> socket.socket:
    connection = socket.create_connection((host, port), timeout=15)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)
    return connection


def download(clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    """Receives for some seconds. The gap is the longest time without data after `cut_s`."""
    data = Download(options.host, clock)
    clock.until(options.seconds)
    if data.error:
        raise data.error
    arrivals = [(at, length) for at, length in data.arrivals if at < options.seconds]
    figures = {"mbps": 8e-6 * sum(length for _, length in arrivals) / options.seconds}
    if options.cut_s is None:
        return figures
    before = [at for at, _ in arrivals if at <= options.cut_s]
    times = [*before[-1:], *(at for at, _ in arrivals if at > options.cut_s), options.seconds]
    gap_s = max(later - earlier for earlier, later in itertools.pairwise(times))
    after = sum(length for at, length in arrivals if at > options.cut_s)
    return {**figures, "gap_ms": 1000 * gap_s, "after_mbps": 8e-6 * after / (options.seconds - options.cut_s)}


def keystrokes(clock: Clock, options: argparse.Namespace) -> dict[str, Any]:
    """Measures the time of each echo, first without and then beside a download."""
    typed = connect(options.host, ECHO_PORT)

    def times(until_s: float, count: int) -> list[float]:
        found: list[float] = []
        while clock.now() < until_s and len(found) < count:
            begun = clock.now()
            typed.sendall(b"k")
            if not typed.recv(1):
                raise ConnectionError("the server ended the connection of the echoes")
            found.append(1000 * (clock.now() - begun))
            clock.until(begun + KEY_INTERVAL_S)
        return sorted(found)

    idle = times(options.seconds, IDLE_KEYS)
    data, begun = Download(options.host, clock), clock.now()
    clock.until(begun + SETTLED_S)
    beside = times(options.seconds, 10_000)
    received = 8e-6 * sum(length for _, length in data.arrivals) / (clock.now() - begun)
    return {
        "idle_ms": idle[len(idle) // 2],
        "p50_ms": beside[len(beside) // 2],
        "p99_ms": beside[len(beside) * 99 // 100],
        "mbps": received,
    }


WORKS = {"download": download, "keystrokes": keystrokes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("role", choices=["serve", *WORKS])
    add("--host")
    add("--seconds", type=float)
    add("--start-ms", type=int)
    add("--cut-s", type=float)
    options = parser.parse_args()
    if options.role == "serve":
        return serve()
    clock = Clock(options.start_ms)
    print("ready", flush=True)
    clock.until(0)
    try:
        figures = WORKS[options.role](clock, options)
    except OSError as error:
        figures = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(figures), flush=True)
    # The threads of the download do not end.
    os._exit(0)


if __name__ == "__main__":
    main()
