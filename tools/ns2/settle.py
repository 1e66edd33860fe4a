"""Shows with ns-2.35 itself which settings the papers must have used, and which faults its CMT agent has.

    python3 tools/ns2/settle.py links --seeds 30
    python3 tools/ns2/settle.py all

A question is one of: links, delays, direction, stall, hang, timeouts. The book's chapter on ns-2 shows
the output of each question. ns-2.35 is required: on Debian, `apt-get install ns2`. Runs use all processors, and Ctrl-C
ends them.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("cmt.tcl")
CHUNK_BYTES = 1468
START_S = 0.5
SEEDS = 12

COUNTED_AT_FIRST = 2
"""Value of ns-2's counter before any time-out."""

HANGS_AFTER_S = 60.0
"""Time limit of a run, which usually takes less than a second."""

T_95 = {4: 3.182, 8: 2.365, 12: 2.201, 20: 2.093, 30: 2.045}
"""Student's quantile for intervals of 95 %, by the number of runs; 1.96 for more."""


@dataclass(frozen=True, slots=True)
class Link:
    """Bottleneck of a path, in ns-2's notation for rates and delays."""

    rate: str
    delay: str
    loss: float = 0.0
    cross: str = "0"
    direction: str = "forward"

    def words(self) -> str:
        return f"{self.rate} {self.delay} {self.loss} {self.cross} {self.direction}"


@dataclass(frozen=True, slots=True)
class Run:
    """Result of one run. `arrived_s` contains the first arrival time of each TSN."""

    duration_s: float
    arrived_s: tuple[float, ...]
    retransmissions: int
    timeout_count: int

    @property
    def goodput_kbps(self) -> float:
        """Unique DATA chunks that arrived, headers included, over the time after the start."""
        return len(self.arrived_s) * CHUNK_BYTES * 8 / 1000 / (self.duration_s - START_S)

    @property
    def expired(self) -> int:
        """Time-outs, without the initial value of the counter."""
        return self.timeout_count - COUNTED_AT_FIRST

    def arrived_by(self, time_s: float) -> int:
        """Returns the number of TSNs that had arrived by a time."""
        return sum(time <= time_s for time in self.arrived_s)


def run(paths: Sequence[Link], seed: int, duration_s: float = 200, **more: object) -> Run | None:
    """Makes one run. Returns `None` if ns-2 does not finish it."""
    with tempfile.NamedTemporaryFile(suffix=".tr") as trace:
        arguments = {"paths": " ".join(path.words() for path in paths), "seed": seed, "duration": duration_s, **more}
        words = [str(word) for pair in (*arguments.items(), ("trace", trace.name)) for word in pair]
        try:
            done = subprocess.run(
                ["ns", SCRIPT, *words], capture_output=True, text=True, check=False, timeout=HANGS_AFTER_S
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            raise SystemExit(f"settle: ns-2 ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
        printed = [line.split("=") for line in done.stdout.splitlines() if "=" in line]
        interfaces = {value for name, value in printed if name == "interface"}
        counters = {name: int(value) for name, value in printed if name != "interface"}
        arrived, again = _read(Path(trace.name), interfaces)
        return Run(duration_s, tuple(arrived), again, counters["timeouts"])


def _read(trace: Path, interfaces: set[str]) -> tuple[list[float], int]:
    """Returns the first arrival of each TSN, and the number of retransmitted DATA chunks."""
    first: dict[str, float] = {}
    sent: set[str] = set()
    again = 0
    with trace.open() as lines:
        for line in lines:
            words = line.split()
            # Event, time, from, to, type, size, flags, flow, source, destination, sequence, TSN: "D" marks DATA.
            if len(words) < 12 or words[4] != "sctp" or "D" not in words[6]:
                continue
            event, time_s, to, tsn = words[0], float(words[1]), words[3], words[11]
            if event == "r" and to in interfaces:
                first.setdefault(tsn, time_s)
            elif event == "+" and words[2] == words[8].split(".")[0]:
                again += tsn in sent
                sent.add(tsn)
    return list(first.values()), again


class Runs:
    """Makes runs in parallel, one per processor."""

    def __init__(self, seeds: int) -> None:
        self.seeds = range(1, seeds + 1)
        self._pool = ThreadPoolExecutor()

    def of(self, paths: Sequence[Link], duration_s: float = 200, **more: object) -> list[Run | None]:
        """Returns one run per seed."""
        return list(self._pool.map(lambda seed: run(paths, seed, duration_s, **more), self.seeds))

    def finished(self, paths: Sequence[Link], duration_s: float = 200, **more: object) -> list[Run]:
        """Returns the runs that ns-2 finishes."""
        return [each for each in self.of(paths, duration_s, **more) if each is not None]


def mean(values: Sequence[float]) -> str:
    """Returns a mean with its interval of 95 %."""
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "none"
    half = T_95.get(len(values), 1.96) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.fmean(values):.1f} ± {half:.1f}"


def links(runs: Runs) -> Iterator[tuple[str, ...]]:
    """Tests candidates for DB-CMT's missing table of links, with CMT at 11 loss rates of PATH-2.

    PATH-1 has a loss rate of 10 %.
    """
    yield "links", "mean", "no loss", "10 %", "kbit/s per %", "R²"
    yield "published", "888", "1773", "455", "-115.6", "0.85"
    for rate, delay in (("10Mb", "45ms"), ("10Mb", "30ms"), ("10Mb", "55ms"), ("5Mb", "45ms"), ("2.5Mb", "25ms")):
        means = []
        for percent in range(11):
            paths = [Link(rate, delay, 0.10, "1Mb"), Link(rate, delay, percent / 100, "1Mb")]
            means.append(statistics.fmean(each.goodput_kbps for each in runs.finished(paths)))
        slope = statistics.linear_regression(range(11), means).slope
        r2 = statistics.correlation(range(11), means) ** 2
        figures = statistics.fmean(means), means[0], means[-1]
        yield f"{rate}, {delay}", *[f"{figure:.0f}" for figure in figures], f"{round(slope, 1) + 0.0:.1f}", f"{r2:.2f}"


def delays(runs: Runs) -> Iterator[tuple[str, ...]]:
    """Tests candidates for CMT-QA's delays, and whether its counts of retransmissions are totals, on its three paths
    with equal losses."""
    yield "delays in ms", "TSNs by 10 s, 2 %", "retransmissions, 10 %", "mean per path"
    yield "published", "862", "134", ""
    for milliseconds in ((45, 45, 90), (200, 200, 400)):

        def paths(loss: float, each: Sequence[int] = milliseconds) -> list[Link]:
            rates = ("387Kb", "10Mb", "2Mb")
            return [Link(rate, f"{delay}ms", loss, "pareto:0.1") for rate, delay in zip(rates, each, strict=True)]

        early = [each.arrived_by(10) for each in runs.finished(paths(0.02), 12, primary=1)]
        late = [each.retransmissions for each in runs.finished(paths(0.10), 100, primary=1)]
        name = "/".join(map(str, milliseconds))
        yield name, mean(early), mean(late), mean([count / 3 for count in late])


def direction(runs: Runs) -> Iterator[tuple[str, ...]]:
    """Tests the direction of PATH-2's cross traffic in the comparison with MPTCP: gain of CMT-PF over CMT on slow
    second paths."""
    yield "cross traffic of PATH-2", "rate of PATH-2", "CMT", "CMT-PF", "CMT-PF to CMT"
    yield "published", "0.1Mb", "", "", "+17 %"
    yield "published", "0.2Mb", "", "", "+13 %"
    for way in ("reverse", "forward"):
        for rate in ("0.1Mb", "0.2Mb"):
            paths = [Link("1Mb", "45ms", 0.01, "300Kb"), Link(rate, "45ms", 0.01, "400Kb", way)]
            found = [[each.goodput_kbps for each in runs.finished(paths, pf=pf)] for pf in (0, 1)]
            cmt, failed = map(statistics.fmean, found)
            said = {"reverse": "against the data", "forward": "along the data"}[way]
            yield said, rate, mean(found[0]), mean(found[1]), f"{round(100 * (failed / cmt - 1), 1) + 0.0:+.1f} %"


def stall(_: Runs) -> Iterator[tuple[str, ...]]:
    """Shows that the agent may stop once 65,536 chunks were sent, on two links of 10 Mbit/s for 200 s, with one run of
    each scheme."""
    yield "links", "delivery", "chunks arrived", "the last new one", "time-outs"
    for delay, loss in (("45ms", 0.0), ("45ms", 0.001), ("5ms", 0.0), ("5ms", 0.001)):
        for unordered in (0, 1):
            found = run([Link("10Mb", delay, loss)] * 2, 1, unordered=unordered)
            if found:
                counts = str(len(found.arrived_s)), f"{max(found.arrived_s):.1f} s", str(found.expired)
                yield f"{delay}, {100 * loss:g} % loss", "unordered" if unordered else "ordered", *counts


def hang(runs: Runs) -> Iterator[tuple[str, ...]]:
    """Shows that CMT-PF sometimes loops forever, on CMT-QA's paths with delays of 200, 200 and 400 ms."""
    yield "agent", "loss", "runs", f"not finished after {HANGS_AFTER_S:.0f} s"
    for pf, name in ((0, "CMT"), (1, "CMT-PF")):
        for loss in (0.05, 0.10):
            rates = (("387Kb", "200ms"), ("10Mb", "200ms"), ("2Mb", "400ms"))
            paths = [Link(rate, delay, loss, "pareto:0.1") for rate, delay in rates]
            found = runs.of(paths, 100, pf=pf, primary=1)
            yield name, f"{100 * loss:.0f} %", str(len(found)), str(found.count(None))


def timeouts(runs: Runs) -> Iterator[tuple[str, ...]]:
    """Shows that `timeoutCount_` begins at two, on links without losses."""
    yield "links", "chunks arrived", "retransmissions", "timeoutCount_"
    found = run([Link("1Mb", "45ms"), Link("1Mb", "45ms")], 1, 30)
    if found:
        yield "2 x 1 Mbit/s, no loss", str(len(found.arrived_s)), str(found.retransmissions), str(found.timeout_count)


Question = Callable[[Runs], Iterator[tuple[str, ...]]]
QUESTIONS: Mapping[str, Question] = {
    question.__name__: question for question in (links, delays, direction, stall, hang, timeouts)
}


def show(question: Question, runs: Runs) -> None:
    """Prints the table of a question, each row as soon as it is known."""
    print(f"{question.__name__}: {(question.__doc__ or '').strip()}")
    widths: list[int] = []
    for row in question(runs):
        widths = widths or [max(len(cell), 16) for cell in row]
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("question", choices=[*QUESTIONS, "all"])
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each setting ({SEEDS})")
    given = parser.parse_args()
    if not 2 <= given.seeds <= 1000:
        parser.error("--seeds: has to be from 2 to 1000")
    if shutil.which("ns") is None:
        print("settle: `ns` is not there: install ns-2.35, on Debian with `apt-get install ns2`", file=sys.stderr)
        return 2
    runs = Runs(given.seeds)
    for name in QUESTIONS if given.question == "all" else [given.question]:
        show(QUESTIONS[name], runs)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
