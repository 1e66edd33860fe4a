"""Measures the simulator beside ns-2 in the same run, as ratios, and compares them with those stored beside this file.

Time is processor time of a process from start to exit, on which other programs have little effect. A row whose
ratio is more than a twentieth worse than stored is reported, and does not fail. Rates and seconds are printed and not
stored, because they belong to one machine.

Usage: beside_ns2.py check | store [--anabranch PROGRAM] [--window-cost PROGRAM] [--rounds N]
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import windows
from ratios import Row, Table, report, spent, store

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRIPT = ROOT / "tools" / "ns2" / "cmt.tcl"

DB_CMT = ROOT / "scenarios" / "db-cmt-fig6.toml"
WIDE = HERE / "wide.toml"
WIDE_BUFFER_BYTES = 4 << 20
LARGE_BUFFER_BYTES = 16 << 20
# Settings of both scenarios as arguments of cmt.tcl, whose source starts after half a second.
NS2_DB_CMT = ("paths", "10Mb 45ms 0.10 1Mb forward 10Mb 45ms 0.05 1Mb forward", "duration", "200", "rbuf", "65536")
NS2_WIDE = (
    *("paths", "100Mb 20ms 0 0 forward 100Mb 20ms 0 0 forward", "rbuf", str(WIDE_BUFFER_BYTES)),
    *("queue", "10000", "access", "10000Mb", "burst", "10000"),
)
NS2_START_S = 0.5
# Duration in which about 40,000 data packets are sent under profile `ns2`, and by ns-2.
SHORT_S = 6.7
LONG_S = 100
# Seeds in a round: a run of DB-CMT's setting takes only tens of milliseconds.
DB_CMT_SEEDS = 10
SHORT_RUNS = 5
# Runs of the sweep that is measured with one thread and with two.
SWEEP_SEEDS = 100
WATCH_EVERY_S = 0.01


@dataclass(frozen=True)
class Cost:
    """Processor time of a process, and the number of packets with DATA that it sent."""

    processor_s: float
    packets: int


DB_CMT_ROW = Row("DB-CMT's setting, one run / ns-2", 0.20)
SHORT_ROW = Row("40,000 data packets over 2 x 100 Mbit/s / ns-2", 0.15)
PACKET_ROW = Row("a data packet, 4 MiB receive buffer, 100 s / ns-2")
LARGE_ROW = Row("rate with 16 MiB / rate with 4 MiB", 0.8, more_is_better=True)
# Difference of large numbers, which varies by a megabyte from process to process.
MEMORY_ROW = Row("MB of a run, 4 MiB receive buffer", 5.0, slack=1.0)
LARGE_MEMORY_ROW = Row("MB of a run, 16 MiB receive buffer", 5.0, slack=1.0)
THREADS_ROW = Row("runs a second, two threads / one", 1.9, more_is_better=True)


def run_of(program, scenario, seeds, settings=(), threads=1):
    words = [word for key, value in dict(settings).items() for word in ("--set", f"{key}={value}")]
    return [
        program,
        "run",
        scenario,
        "--schemes",
        "cmt",
        "--seeds",
        seeds,
        *words,
        "--threads",
        str(threads),
        "-q",
        "--json",
    ]


def packets_in(printed):
    """Returns the number of packets with DATA sent in the runs of a command that printed JSON."""
    return sum(path["sent_packets"] for line in printed.splitlines() for path in json.loads(line)["paths"])


def ours(program, scenario, seed=1, settings=()):
    processor_s, printed = spent(run_of(program, scenario, f"{seed},", settings))
    return Cost(processor_s, packets_in(printed))


def ns2(seed, *words, counted=False):
    """Runs ns-2. Packets are counted only with `counted`, because counting takes time."""
    processor_s, printed = spent(["ns", str(SCRIPT), "seed", str(seed), "count", str(int(counted)), *words])
    return Cost(processor_s, sum(int(number) for number in re.findall(r"^packets=(\d+)", printed, re.M)))


def wide_for(seconds):
    return (*NS2_WIDE, "duration", str(seconds + NS2_START_S))


def beside_ns2(table, program, rounds):
    """Adds the rows that compare with ns-2. Both programs run in turn."""
    short = {"run.profile": "ns2", "run.duration": f"{SHORT_S} s"}
    long = {"run.profile": "ns2", "run.duration": f"{LONG_S} s"}
    their_packets = ns2(1, *wide_for(SHORT_S), counted=True).packets
    for _ in range(rounds):
        own, theirs = taking_turns(
            DB_CMT_SEEDS, lambda seed: ours(program, DB_CMT, seed), lambda seed: ns2(seed, *NS2_DB_CMT)
        )
        table.add(DB_CMT_ROW, sum_s(own) / sum_s(theirs))
        db_cmt_ms = [1000 * sum_s(costs) / DB_CMT_SEEDS for costs in (own, theirs)]
        own, theirs = taking_turns(
            SHORT_RUNS, lambda _: ours(program, WIDE, settings=short), lambda _: ns2(1, *wide_for(SHORT_S))
        )
        # Both send nearly the same number of packets; the cost per packet is compared.
        table.add(SHORT_ROW, sum_s(own) / own[0].packets / (sum_s(theirs) / their_packets))
        short_ms = [1000 * sum_s(costs) / SHORT_RUNS for costs in (own, theirs)]
    table.notes += [
        f"DB-CMT's setting: {db_cmt_ms[0]:.0f} ms, ns-2 {db_cmt_ms[1]:.0f} ms",
        f"{own[0].packets:,} data packets: {short_ms[0]:.0f} ms, {their_packets:,} with ns-2: {short_ms[1]:.0f} ms",
    ]
    # ns-2 takes about a minute for one.
    theirs = ns2(1, *wide_for(LONG_S), counted=True)
    for _ in range(rounds):
        own = ours(program, WIDE, settings=long)
        table.add(PACKET_ROW, own.processor_s / own.packets / (theirs.processor_s / theirs.packets))
    table.notes.append(
        f"data packets a second and core, 4 MiB, profile ns2: {rate(own):,.0f}, ns-2 {rate(theirs):,.0f} "
        f"({theirs.packets:,} in {theirs.processor_s:.1f} s)"
    )


def taking_turns(count, one, other):
    """Calls both `count` times in turn, with seeds from 1 on, so that other load of the machine affects both."""
    pairs = [(one(seed), other(seed)) for seed in range(1, count + 1)]
    return [list(costs) for costs in zip(*pairs, strict=True)]


def sum_s(costs):
    return sum(cost.processor_s for cost in costs)


def rate(cost):
    return cost.packets / cost.processor_s


def alone(table, program, rounds):
    """Adds the rows that compare the program with itself."""
    rates, passed = [], []
    for _ in range(rounds):
        usual = ours(program, WIDE)
        large = ours(program, WIDE, settings={"association.recv_buffer": f"{LARGE_BUFFER_BYTES} B"})
        table.add(LARGE_ROW, rate(large) / rate(usual))
        rates.append(rate(usual))
        one, two = (Watched.run(run_of(program, DB_CMT, str(SWEEP_SEEDS), threads=threads)) for threads in (1, 2))
        table.add(THREADS_ROW, one.undisturbed_s / two.undisturbed_s)
        passed.append(one.elapsed_s / two.elapsed_s)
        for row, buffer_bytes in ((MEMORY_ROW, WIDE_BUFFER_BYTES), (LARGE_MEMORY_ROW, LARGE_BUFFER_BYTES)):
            table.add(row, run_mb(program, buffer_bytes))
    table.notes += [
        f"data packets a second and core, 4 MiB, profile rfc9260: {statistics.median(rates):,.0f}, goal 1,500,000",
        f"two threads / one by the time that passed, beside other programs: {statistics.median(passed):.2f}",
    ]


@dataclass(frozen=True)
class Watched:
    """Duration of a process, and the time that its busy threads waited for a processor."""

    elapsed_s: float
    waited_s: float

    @property
    def undisturbed_s(self):
        """Estimated duration with a processor for each thread."""
        return self.elapsed_s - self.waited_s

    @classmethod
    def run(cls, command):
        started, found = time.perf_counter(), {}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                found |= schedule_of(process.pid)
                time.sleep(WATCH_EVERY_S)
            elapsed_s = time.perf_counter() - started
        if process.returncode != 0:
            sys.exit(f"{' '.join(str(word) for word in command)}\nended with status {process.returncode}")
        most_s = max(ran_s for ran_s, _ in found.values())
        return cls(elapsed_s, statistics.mean(waited_s for ran_s, waited_s in found.values() if ran_s > most_s / 2))


def schedule_of(process):
    """Returns for each thread the seconds that it ran, and those that it waited for a processor."""
    found = {}
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            ran_ns, waited_ns, _ = file.read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            continue
        found[file.parent.name] = int(ran_ns) / 1e9, int(waited_ns) / 1e9
    return found


def run_mb(program, buffer_bytes):
    """Returns the memory of a run in MB: the peak of the process, less that with a run without duration. Payload is
    not included: these runs send undefined content, all messages share memory, and packets store none."""
    settings = {"association.recv_buffer": f"{buffer_bytes} B"}
    most, least = (peak_bytes(program, {**settings, "run.duration": length}) for length in ("10 s", "1 ms"))
    return (most - least) / 1e6


def peak_bytes(program, settings):
    """Returns the peak memory of a process in bytes after its first run. The output of all runs does not fit into the
    pipe, which is not read further, so the process still exists then."""
    command = run_of(program, WIDE, "250", settings)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        process.kill()
    return 1024 * int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("check", "store"))
    parser.add_argument("--anabranch", default="anabranch", metavar="PROGRAM", help="the program to run")
    parser.add_argument("--window-cost", metavar="PROGRAM", help="the example window_cost, for the rows on windows")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of both (5)")
    options = parser.parse_args()
    table = Table()
    if shutil.which("ns"):
        beside_ns2(table, options.anabranch, options.rounds)
    else:
        print("ns-2 is missing: the rows beside it are left out. On Debian, `apt-get install ns2` installs it.")
    alone(table, options.anabranch, options.rounds)
    if options.window_cost:
        windows.add_rows(table, options.window_cost, options.rounds)
    print("\n".join(report(table)))
    if options.action == "store":
        store(table)


if __name__ == "__main__":
    main()
