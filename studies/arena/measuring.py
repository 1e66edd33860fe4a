"""One run: a stack does a work over the links of a setting."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

from anabranch.errors import AnabranchError
from studies.arena.network import PRIORITY, Clock, Network
from studies.arena.peer import BIN_S, CONNECT_S, GRACE_S
from studies.arena.settings import Setting
from studies.arena.stacks import Stack
from studies.arena.works import Work

ROOT = Path(__file__).resolve().parents[2]
AHEADS_S = (3.0, 10.0, 30.0)
"""Times before the start of a run in which its programs have to be ready; the next one is tried if they are not."""


class Row(TypedDict):
    """Figures of one run. Those that the work does not have are `None`."""

    setting: str
    stack: str
    work: str
    round: int
    error: str | None
    goodput_mbps: float | None
    seconds: float | None
    """Time until the receiver had the whole file."""
    p50_ms: float | None
    p99_ms: float | None
    missing: int | None
    """Messages that arrived later than `GRACE_S` after the last one was due, or never."""
    outage_mbps: float | None
    """Goodput while the first link was down."""
    stalled_s: float | None
    """Longest time without an arrival during the outage."""
    wire_bytes: int
    """Bytes that entered the links, in both directions."""
    user_bytes: int
    processor_s: float | None
    late_mean_us: float
    late_max_us: float
    load: float
    """Load average of the machine after the run."""


def measure(program: Path, setting: Setting, stack: Stack, work: Work, number: int) -> Row:
    """Runs a stack once. A failure of the stack is a row with an error."""
    for ahead_s in AHEADS_S:
        with _network(program, setting, work, ahead_s) as network:
            stack.prepare(network)
            if (ends := _run(network, stack, work)) is not None:
                counters = [link.current(network.clock) for link in network.links]
                return row_of(setting.name, stack.name, work, number, *ends, counters)
    raise AnabranchError(f"{stack.name}: its programs were not ready after {AHEADS_S[-1]:g} s")


@contextlib.contextmanager
def _network(program: Path, setting: Setting, work: Work, ahead_s: float) -> Iterator[Network]:
    with tempfile.TemporaryDirectory() as folder:
        network = Network(program, setting.written(Path(folder), work.outage), Clock(ahead_s))
        try:
            yield network
        finally:
            network.close()


def _run(network: Network, stack: Stack, work: Work) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Returns the figures of sender and receiver, or `None` if they were not ready at the start."""
    limit_s = CONNECT_S + work.seconds + GRACE_S + 10
    with contextlib.ExitStack() as running:
        receiver = running.enter_context(_program(stack.receiver(network, work)))
        sender = running.enter_context(_program(stack.sender(network, work)))
        if network.clock.elapsed_s() > 0:
            return None
        received = _figures(receiver, limit_s)
        # A server without an end of its own ends now.
        _close_input(sender)
        return _figures(sender, limit_s), received


@contextlib.contextmanager
def _program(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Starts a program and waits until it is ready."""
    process = subprocess.Popen(
        [*PRIORITY, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        if (line := process.stdout.readline()) != "ready\n":
            raise AnabranchError(f"{' '.join(command)}: printed {line!r} in place of `ready`")
        yield process
    finally:
        process.kill()
        with process:
            _close_input(process)


def _close_input(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def _figures(process: subprocess.Popen[str], limit_s: float) -> dict[str, Any]:
    """Reads the line of JSON that a program prints at its end."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], limit_s)
    if not ready or not (line := process.stdout.readline()):
        return {"error": "printed no figures"}
    figures: dict[str, Any] = json.loads(line)
    return figures


def row_of(
    setting: str,
    stack: str,
    work: Work,
    number: int,
    sent: dict[str, Any],
    received: dict[str, Any],
    counters: Sequence[dict[str, Any]],
) -> Row:
    """Returns the figures of a run from those of its programs and links."""
    error = sent.get("error") or received.get("error")
    bins = dict(received.get("bins", []))
    is_bulk, is_file = (work.kind == kind and error is None for kind in ("bulk", "file"))
    delays = received.get("delays_ms")
    processor = None if error else sent["processor_s"] + received["processor_s"]
    return {
        "setting": setting,
        "stack": stack,
        "work": work.name,
        "round": number,
        "error": error,
        "goodput_mbps": _mbps(bins, 0, work.seconds) if is_bulk else None,
        "seconds": received["last_s"] if is_file and received["bytes"] == work.size else None,
        "p50_ms": _delay(delays, sent, 0.5),
        "p99_ms": _delay(delays, sent, 0.99),
        "missing": None if delays is None or error else sent["messages"] - len(delays),
        "outage_mbps": _mbps(bins, *work.outage) if is_bulk and work.outage else None,
        "stalled_s": stalled(bins, *work.outage) if is_bulk and work.outage else None,
        "wire_bytes": sum(each[way]["offered"]["bytes"] for each in counters for way in ("forward", "reverse")),
        "user_bytes": received.get("bytes", work.size * len(delays or [])),
        "processor_s": processor,
        "late_mean_us": max(each["late_mean_us"] for each in counters),
        "late_max_us": max(each["late_max_us"] for each in counters),
        "load": os.getloadavg()[0],
    }


def _mbps(bins: dict[int, int], begin_s: float, end_s: float) -> float:
    """Returns the goodput in a time."""
    bits = 8 * sum(length for at, length in bins.items() if begin_s <= at * BIN_S < end_s)
    return bits / (end_s - begin_s) / 1e6


def stalled(bins: dict[int, int], begin_s: float, end_s: float) -> float:
    """Returns the length of the longest part of a time in which nothing arrived."""
    times = [at * BIN_S for at in sorted(bins) if begin_s <= at * BIN_S < end_s]
    gaps = zip([begin_s - BIN_S, *times], [*times, end_s], strict=True)
    return max(0.0, max(later - earlier for earlier, later in gaps) - BIN_S)


def _delay(delays: Sequence[float] | None, sent: dict[str, Any], part: float) -> float | None:
    """Returns a quantile of the delays of all messages, or `None` if the message of that rank is missing."""
    if delays is None or "messages" not in sent:
        return None
    at = int(part * sent["messages"])
    return sorted(delays)[at] if at < len(delays) else None
