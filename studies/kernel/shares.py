"""Shares of one link between a TCP of the kernel and an association."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from anabranch.experiments.pages.document import Table

from .links import Link, Network
from .peers import Anabranch, Kernel

RATE_MBPS = 10
DELAY_MS = 20
# 10, 42 and 200 packets of 1500 bytes.
QUEUES_BYTES = (15_000, 63_000, 300_000)
OMIT_S, SECONDS = 5.0, 30.0


def measure(first: Kernel | Anabranch, second: Kernel, queue_bytes: int) -> tuple[float, float]:
    """Returns the Mbit/s of both."""
    network = Network([Link(RATE_MBPS, queue_bytes, DELAY_MS)])
    try:
        with ThreadPoolExecutor(2) as pool:
            both = [
                pool.submit(way.carry, network, OMIT_S, SECONDS, port)
                for port, way in enumerate((first, second), start=9797)
            ]
            ours, theirs = (each.result() for each in both)
            return ours, theirs
    finally:
        network.close()


def shown(pairs: Sequence[tuple[float, float]]) -> str:
    ours = statistics.mean(pair[0] for pair in pairs)
    theirs = statistics.mean(pair[1] for pair in pairs)
    return f"{ours:.1f} : {theirs:.1f}"


def run(program: str, schemes: Sequence[str], rounds: int) -> None:
    """Prints a table: Mbit/s of each flow beside one of CUBIC and one of BBR, for each queue."""
    ways: list[Kernel | Anabranch] = [Kernel("cubic"), Kernel("bbr")]
    ways += [Anabranch(program, scheme) for scheme in schemes]
    columns = [(Kernel(control), queue) for control in ("cubic", "bbr") for queue in QUEUES_BYTES]
    rows = []
    for way in ways:
        rows.append([str(way), *(shown([measure(way, *column) for _ in range(rounds)]) for column in columns)])
        print(*rows[-1], sep="  ", flush=True)
    table = Table(["", *(f"{other}, queue of {queue / 1000:g} kB" for other, queue in columns)], rows)
    print(f"\n{table.markdown()}")
