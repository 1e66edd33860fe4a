"""Counts the instructions of simulated runs with valgrind, and compares them with those stored beside this file.

Counts do not depend on the load of the machine, and little on the machine. The counts are valid for one program only: a
build in another profile or by another compiler has other counts. A run with more than a twentieth more than stored is
reported, and does not fail.

Usage: instructions.py check | store [--anabranch PROGRAM]
"""

import argparse
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


def count(program, scenario, scheme):
    """Returns the million instructions from start to exit."""
    run = [program, "run", str(ROOT / scenario), "--schemes", scheme, "--seeds", "1,", "--quiet"]
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *run]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", ended.stderr)
    if ended.returncode != 0 or not collected:
        sys.exit(f"{' '.join(command)}\nended with status {ended.returncode}: {ended.stderr}")
    return round(int(collected[1]) / 1e6)


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
    parser.add_argument("action", choices=("check", "store"))
    parser.add_argument("--anabranch", default="anabranch", metavar="PROGRAM", help="the program to run")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("Instructions are not counted: valgrind is missing.")
        return
    counts = {run: count(options.anabranch, *run) for run in RUNS}
    (store if options.action == "store" else check)(counts)


if __name__ == "__main__":
    main()
