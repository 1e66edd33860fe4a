"""Delays and drops frames between two interfaces, as `netem` does in kernels that have it.

    python3 bridge.py one1 one2 --delay-ms 20 --loss 0.01 --seed 1

Ethernet frames of either interface are sent to the other one after the delay and in order, so that the two
links behave as one. Rates and queues are the kernel's, by `tc` on the interfaces. SIGUSR1 interrupts the link without
a notification of either end, and SIGUSR2 restores it. Runs until its standard input ends.
"""

from __future__ import annotations

import argparse
import collections
import random
import select
import signal
import socket
import sys
import time

ALL_PROTOCOLS = 0x0003
OUTGOING = 4
LONGEST_FRAME = 1 << 16
BUFFER_BYTES = 8 << 20
# Maximum number of delayed frames: a second of 1 Gbit/s. More are dropped, as by any queue.
MAX_WAITING = 100_000


def listen(interface: str) -> socket.socket:
    """Returns a socket for all frames that arrive at an interface."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    raw.bind((interface, 0))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    raw.setblocking(False)
    return raw


class Direction:
    """Delayed frames from one interface to the other."""

    def __init__(self, source: socket.socket, sink: socket.socket, delay_s: float, loss: float, seed: int) -> None:
        self.source = source
        self._sink = sink
        self._delay_s = delay_s
        self._loss = loss
        self._random = random.Random(seed)
        self._waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        self._is_up = True

    def set_up(self, is_up: bool) -> None:
        """Lets frames pass, or drops all, including delayed ones."""
        self._is_up = is_up

    def due(self) -> float | None:
        """Returns the time at which the next frame is sent, if one waits."""
        return self._waiting[0][0] if self._waiting else None

    def take(self, now: float) -> None:
        """Reads all frames that have arrived."""
        while True:
            try:
                frame, (_, _, kind, *_) = self.source.recvfrom(LONGEST_FRAME)
            except BlockingIOError:
                return
            # The socket also receives the frames that the other direction sends.
            if kind == OUTGOING or self._random.random() < self._loss or len(self._waiting) >= MAX_WAITING:
                continue
            self._waiting.append((now + self._delay_s, frame))

    def give(self, now: float) -> None:
        """Sends all frames that are due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, frame = self._waiting.popleft()
            if not self._is_up:
                continue
            try:
                self._sink.send(frame)
            except OSError:
                # The queue of the interface is full: the frame is lost there.
                continue


def run(directions: list[Direction]) -> None:
    while True:
        dues = [due for due in (direction.due() for direction in directions) if due is not None]
        wait = max(0.0, min(dues) - time.monotonic()) if dues else None
        ready, _, _ = select.select([sys.stdin, *(direction.source for direction in directions)], [], [], wait)
        if sys.stdin in ready:
            return
        now = time.monotonic()
        for direction in directions:
            if direction.source in ready:
                direction.take(now)
            direction.give(now)


def set_up(directions: list[Direction], is_up: bool) -> None:
    for direction in directions:
        direction.set_up(is_up)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("interfaces", nargs=2)
    parser.add_argument("--delay-ms", type=float, default=0.0, help="each way")
    parser.add_argument("--loss", type=float, default=0.0, help="of frames that enter by the first interface; 0 to 1")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    first, second = (listen(interface) for interface in options.interfaces)
    delay_s = options.delay_ms / 1000
    directions = [
        Direction(first, second, delay_s, options.loss, options.seed),
        Direction(second, first, delay_s, 0.0, options.seed),
    ]
    signal.signal(signal.SIGUSR1, lambda *_: set_up(directions, False))
    signal.signal(signal.SIGUSR2, lambda *_: set_up(directions, True))
    print("bridged", flush=True)
    run(directions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
