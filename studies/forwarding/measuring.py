"""One run: a client takes a way to the server over emulated links."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.arena.network import PRIORITY, Clock, Network
from studies.forwarding.shaped import ShapedNetwork
from studies.forwarding.ways import Joined, Way

ROOT = Path(__file__).resolve().parents[2]
LINK_PROGRAM = ROOT / "target" / "release" / "arena-link"

READY_S = 8.0
"""Time in which all programs of a run have to be ready."""
SECONDS = 10.0
CUT_S = 4.0
LATE_US = 500
"""Mean delay of the emulator, from which a run is left out because other programs disturbed it."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work of the client over emulated links in the notation of `anabranch relay --link`."""

    name: str
    role: str
    links: tuple[str, ...]
    cut: bool = False
    """Set if the first link loses every packet from `CUT_S` on."""

    def network(self, clock: Clock, folder: Path) -> Network | ShapedNetwork:
        """Builds the links. Files of their traces are written to a folder."""
        links = list(self.links)
        if self.cut:
            trace = folder / "outage.csv"
            trace.write_text(f"time,up\n0,1\n{READY_S + CUT_S:g},0\n3600,1\n", encoding="utf-8")
            links[0] += f',outage_trace=(file="{trace}",repeat=false)'
        return Network(LINK_PROGRAM, links, clock)


@dataclass(frozen=True, slots=True)
class ShapedWork(Work):
    """Work over links of the kernel without delay, whose notations are their rates in Mbit/s."""

    def network(self, clock: Clock, folder: Path) -> Network | ShapedNetwork:
        return ShapedNetwork([float(rate) for rate in self.links])


EQUAL = ("rate=20Mbit,delay=10ms,queue=100ms",) * 2
UNEQUAL = ("rate=50Mbit,delay=10ms,queue=100ms", "rate=5Mbit,delay=75ms,queue=100ms")
FAR = ("rate=20Mbit,delay=25ms,queue=100ms",) * 2

WORKS = (
    Work("equal", "download", EQUAL),
    Work("unequal", "download", UNEQUAL),
    Work("keystrokes", "keystrokes", EQUAL),
    Work("cut", "download", FAR, cut=True),
    ShapedWork("fast", "download", ("300",)),
    ShapedWork("slow", "download", ("80",)),
    ShapedWork("fast and slow", "download", ("300", "80")),
    ShapedWork("two fast", "download", ("300", "300")),
)


def measure(way: Way, work: Work) -> dict[str, Any]:
    """Runs a work once, and returns the figures of the client. A failure of the way is an error among them."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(0.5)
        start_ms = clock.start_ms + round(1000 * READY_S)
        network = work.network(clock, Path(folder))
        try:
            way.prepare(network)
            figures = _run(network, way, work, Path(folder), start_ms)
            late_us = network.late_us()
        finally:
            network.close()
    return {**figures, "late_us": late_us, "load": os.getloadavg()[0]}


def _run(network: Joined, way: Way, work: Work, folder: Path, start_ms: int) -> dict[str, Any]:
    with contextlib.ExitStack() as running:
        program = [sys.executable, "-m", "studies.forwarding.program"]
        server = network.server.command(way.wrapped([*program, "serve"]))
        _line(running.enter_context(_started(server)), READY_S)
        for command, environment in way.helpers(network, folder):
            running.enter_context(_started(command, environment))
            # Neither prints anything at the same moment in all tools.
            time.sleep(0.7)
        options = ["--host", way.host(network), "--seconds", f"{SECONDS:g}", "--start-ms", str(start_ms)]
        cut = ["--cut-s", f"{CUT_S:g}"] if work.cut else []
        client = network.client.command(way.wrapped([*program, work.role, *options, *cut]))
        process = running.enter_context(_started(client))
        _line(process, READY_S)
        if time.monotonic() > start_ms / 1000:
            return {"error": f"its programs were not ready after {READY_S:g} s"}
        figures: dict[str, Any] = json.loads(_line(process, READY_S + SECONDS + 20) or '{"error": "no figures"}')
        return figures


@contextlib.contextmanager
def _started(command: Sequence[str], more: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*PRIORITY, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(more or {})},
    )
    try:
        yield process
    finally:
        process.kill()
        with process:
            pass


def _line(process: subprocess.Popen[str], within_s: float) -> str:
    """Returns the next line of a program, or nothing if none comes in time."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], within_s)
    return process.stdout.readline() if ready else ""
