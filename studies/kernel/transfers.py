"""Transfer times of a file over two links: TCP over the first, MPTCP and `anabranch` over both."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from anabranch.experiments.pages.document import Table

from .links import Link, Network
from .peers import Anabranch, Kernel

CUT_LINK, CUT_FROM_S, CUT_TO_S = 1, 2.0, 6.0


@dataclasses.dataclass(frozen=True)
class Setting:
    """Two links, the size of a file, and an outage."""

    links: tuple[Link, Link]
    file_bytes: int
    outage: bool = False

    def __str__(self) -> str:
        text = " + ".join(map(str, self.links))
        return text + (", first link down from 2 to 6 s" if self.outage else "")


PLAIN = (Link(20), Link(8))
SETTINGS = (
    Setting(PLAIN, 20_000_000),
    Setting(PLAIN, 20_000_000, outage=True),
    Setting((Link(50, 150_000, 10), Link(20, 100_000, 20)), 60_000_000),
    Setting((Link(50, 150_000, 10), Link(5, 50_000, 40)), 60_000_000),
    Setting((Link(50, 150_000, 10), Link(20, 100_000, 20, loss=0.01)), 60_000_000),
)


def shown(times: Sequence[float | None]) -> str:
    good = [each for each in times if each is not None]
    if not good:
        return "did not arrive"
    text = f"{statistics.median(good):.1f} s ({min(good):.1f} to {max(good):.1f})"
    return text if len(good) == len(times) else f"{text}, {len(times) - len(good)} of {len(times)} did not arrive"


def measure(setting: Setting, way: Kernel | Anabranch, payload: Path) -> float | None:
    network = Network(setting.links)
    try:
        network.allow_mptcp()
        cut = network.outage(CUT_LINK, CUT_FROM_S, CUT_TO_S) if setting.outage else contextlib.nullcontext()
        with cut:
            return way.send_file(network, payload)
    finally:
        network.close()


def run(program: str, schemes: Sequence[str], rounds: int) -> None:
    """Prints a table: a row for each way, a column for each setting, whose rounds take turns."""
    ways: list[Kernel | Anabranch] = [Kernel("cubic"), Kernel("bbr"), Kernel("cubic", multipath=True)]
    ways += [Anabranch(program, scheme) for scheme in schemes]
    rows: list[list[str]] = [[] for _ in ways]
    for setting in SETTINGS:
        print(f"{setting}: {setting.file_bytes / 1e6:g} MB", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            payload = Path(folder) / "payload.bin"
            payload.write_bytes(os.urandom(setting.file_bytes))
            times: list[list[float | None]] = [[] for _ in ways]
            for _ in range(rounds):
                for way, taken in zip(ways, times, strict=True):
                    taken.append(measure(setting, way, payload))
        for way, taken, row in zip(ways, times, rows, strict=True):
            row.append(shown(taken))
            print(f"  {way!s:20} {row[-1]}", flush=True)
    table = Table(["", *map(str, SETTINGS)], [[str(way), *row] for way, row in zip(ways, rows, strict=True)])
    print(f"\n{table.markdown()}")
