"""Counts the instructions of simulated runs with valgrind, and compares them with those stored beside this file.

Counts do not depend on the load of the machine, and little on the machine. The counts are valid for one program only: a
build in another profile or by another compiler has other counts. A run with more than a twentieth more than stored is
reported, and does not fail.

`traces` compares runs over links that follow a trace with the same runs without one, per delivered byte. It ends with
status 1 if a trace costs more than a fifth.

Usage: instructions.py check | store | traces [--anabranch PROGRAM]
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STORED = HERE / "instructions.tsv"
HEADER = ("scenario", "scheme", "million_instructions")
RUNS = (
    ("scenarios/db-cmt-fig6.toml", "cmt"),
    ("tests/cost/lossless.toml", "cmt"),
    ("tests/cost/lossless.toml", "bonded"),
    ("tests/cost/unequal.toml", "cmt"),
    ("tests/cost/unequal.toml", "bonded"),
)
# Ratio to the stored count from which on a run is reported as worse.
MUCH = 1.05
TRACED_RUNS = (("scenarios/db-cmt-fig6.toml", "cmt"), ("tests/cost/lossless.toml", "cmt"))
# Largest ratio of a run that is driven by a trace to the run without it.
TRACED_MOST = 1.2
# Duration of the traces in seconds, and length of a step.
TRACE_S = 10
STEP_S = 0.5


def count(program, scenario, scheme):
    """Returns the million instructions from start to exit."""
    run = run_of(program, ROOT / scenario, scheme)
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *run]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", ended.stderr)
    if ended.returncode != 0 or not collected:
        sys.exit(f"{' '.join(command)}\nended with status {ended.returncode}: {ended.stderr}")
    return round(int(collected[1]) / 1e6)


def run_of(program, scenario, scheme):
    return [program, "run", str(scenario), "--schemes", scheme, "--seeds", "1,", "--quiet"]


def delivered(program, scenario, scheme):
    """Returns the million bytes that the flows of a run deliver."""
    run = [*run_of(program, scenario, scheme), "--json"]
    ended = subprocess.run(run, capture_output=True, text=True, check=True)
    return sum(flow["delivered_bytes"] for flow in json.loads(ended.stdout)["flows"]) / 1e6


def steps(value):
    return "".join(f"{number * STEP_S},{value}\n" for number in range(int(TRACE_S / STEP_S)))


def opportunities(mbit):
    """Returns a file of Mahimahi whose opportunities carry this rate."""
    count = int(mbit * 1e6 * TRACE_S / 8 / 1504)
    return "".join(f"{-(-number * 1000 * TRACE_S // count)}\n" for number in range(1, count + 1))


# Key of a path that a trace replaces, the key of the trace, and its file.
KINDS = {
    "rates": ("rate", "capacity", steps),
    "opportunities": ("rate", "capacity", opportunities),
    "delays": ("delay", "delay_trace", steps),
}


def traced(folder, scenario, kind):
    """Writes a scenario in which traces with equal values replace the rates or delays of paths. Returns its path."""
    key, trace_key, trace = KINDS[kind]
    lines = (ROOT / scenario).read_text(encoding="utf-8").splitlines()
    table = None
    for index, line in enumerate(lines):
        table = line if line.startswith("[") else table
        value = re.match(rf'{key} = "([\d.]+) (Mbit/s|ms)"', line)
        if value and table == "[[path]]":
            (folder / f"{index}.csv").write_text(trace(int(value[1])), encoding="utf-8")
            lines[index] = f'{trace_key} = "{index}.csv"'
    written = folder / f"{kind}.toml"
    written.write_text("\n".join(lines), encoding="utf-8")
    return written


def compare_traced(program):
    """Prints the cost of a delivered byte with each kind of trace. Returns whether all ratios are accepted."""
    accepted = True
    for scenario, scheme in TRACED_RUNS:
        plain = count(program, scenario, scheme) / delivered(program, ROOT / scenario, scheme)
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                written = traced(Path(folder), scenario, kind)
                ratio = count(program, written, scheme) / delivered(program, written, scheme) / plain
            print(f"{scenario:32} {scheme:10} {kind:14} {ratio:.2f} of a run without a trace")
            accepted = accepted and ratio <= TRACED_MOST
    return accepted


def stored():
    lines = STORED.read_text(encoding="utf-8").splitlines()[1:]
    return {tuple(fields[:2]): int(fields[2]) for fields in (line.split("\t") for line in lines)}


def store(counts):
    rows = [HEADER, *((scenario, scheme, str(found)) for (scenario, scheme), found in counts.items())]
    STORED.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def check(counts):
    expected = stored()
    for (scenario, scheme), found in counts.items():
        before = expected.get((scenario, scheme))
        ratio = found / before if before else None
        told = f"{ratio:.3f} of {before}" if ratio else "not stored"
        print(f"{scenario:32} {scheme:10} {found:8} million instructions, {told}")
        if ratio and ratio > MUCH:
            print(f"*** WORSE THAN STORED by {100 * (ratio - 1):.0f} %: {scenario} {scheme}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("check", "store", "traces"))
    parser.add_argument("--anabranch", default="anabranch", metavar="PROGRAM", help="the program to run")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("Instructions are not counted: valgrind is missing.")
        return
    if options.action == "traces":
        sys.exit(0 if compare_traced(options.anabranch) else 1)
    counts = {run: count(options.anabranch, *run) for run in RUNS}
    (store if options.action == "store" else check)(counts)


if __name__ == "__main__":
    main()
