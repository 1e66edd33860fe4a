"""Overhead of Python in a run: the same short runs by the native command and by the native module, taking turns.

    python python/benches/overhead.py --native target/release/anabranch

Prints, for each variant, the median over the rounds: seconds in all, utilisation of the processors, and milliseconds
per run beside the native command. It has no limits.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from anabranch import _native

SCENARIO = """
[run]
duration = "1 s"
schemes = ["cmt"]
[[path]]
rate = "4 Mbit/s"
delay = "10 ms"
loss = 0.01
[[path]]
rate = "1 Mbit/s"
delay = "30 ms"
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of making all runs once."""

    elapsed_s: float
    processor_s: float

    @property
    def busy(self) -> float:
        """Share of the time of all processors."""
        return self.processor_s / self.elapsed_s / len(os.sched_getaffinity(0))


def processor_s() -> float:
    """Returns the processor time of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def cost_of(make_runs: Callable[[], None]) -> Cost:
    processor_before_s, before_s = processor_s(), time.perf_counter()
    make_runs()
    return Cost(time.perf_counter() - before_s, processor_s() - processor_before_s)


def compare(ways: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[Cost]]:
    """Lets the variants take turns, so that other load affects all of them. Each has to make the same runs."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, make_runs in ways.items():
            costs[name].append(cost_of(make_runs))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return costs


def by_the_command(native: Path, scenario: Path, runs: int) -> Callable[[], None]:
    def make_runs() -> None:
        command = [str(native), "run", str(scenario), "--seeds", str(runs), "--json", "--quiet"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    return make_runs


def by_the_module(runs: int, *, read_results: bool) -> Callable[[], None]:
    def make_runs() -> None:
        finished: list[object] = []
        prepared = _native.Prepared(SCENARIO, "cmt")
        read: Callable[[str], object] = json.loads if read_results else len
        jobs = [(prepared, seed) for seed in range(1, runs + 1)]
        _native.run_batch(jobs, lambda _, text: finished.append(read(text)))
        assert len(finished) == runs

    return make_runs


def report(costs: Mapping[str, list[Cost]], runs: int) -> str:
    lines = [f"{'way':34} {'seconds':>8} {'busy':>6} {'ms a run':>9} {'beside the first':>17}"]
    first_s = None
    for name, each in costs.items():
        elapsed_s = statistics.median(cost.elapsed_s for cost in each)
        busy = statistics.median(cost.busy for cost in each)
        first_s = elapsed_s if first_s is None else first_s
        more_ms = (elapsed_s - first_s) / runs * 1000
        lines.append(f"{name:34} {elapsed_s:8.2f} {busy:6.0%} {elapsed_s / runs * 1000:9.3f} {more_ms:+14.3f} ms")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--native", type=Path, default=Path("target/release/anabranch"), help="the native command")
    parser.add_argument("--runs", type=int, default=2000, help="runs a round (2000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    arguments = parser.parse_args()
    if not arguments.native.is_file():
        parser.error(f"{arguments.native}: no such file; build it with: cargo build --release --bin anabranch")
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "short.toml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        ways = {
            "anabranch run --json": by_the_command(arguments.native, scenario, arguments.runs),
            "run_batch": by_the_module(arguments.runs, read_results=False),
            "run_batch, and reading its JSON": by_the_module(arguments.runs, read_results=True),
        }
        print(report(compare(ways, arguments.rounds), arguments.runs))


if __name__ == "__main__":
    main()
