"""Runs cargo-mutants on areas of the code and prints how many of the changes the tests notice.

An area is tested in stages: mutants that the first, fast tests miss are tested again with those of the next stage.
`--sample N` takes N mutants of each area at random, the same ones for the same seed, and prints the 95 % interval of
the rate.

Usage: mutants.py [--sample N] [--seed S] [--out FOLDER] AREA... [-- ARGUMENTS OF CARGO-MUTANTS]
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Stage:
    """Tests that are built and run for each mutant: unit tests of a package, or some modules of its integration tests."""

    package: str
    target: str = ""
    modules: tuple[str, ...] = ()

    def arguments(self):
        # This is an argument of cargo, not of the tests. Otherwise cargo would build all tests of the package for each
        # mutant.
        target = f"--cargo-arg=--test={self.target}" if self.target else "--cargo-arg=--lib"
        # cargo-mutants always tests the unmutated tree with the tests of the mutated package, which has no such target.
        skipped = ["--baseline=skip", "--timeout=60"] if self.target else []
        return ["--test-package", self.package, target, *skipped]

    def filters(self):
        """Arguments of the test binary, behind all others."""
        return ["--", "--", *(f"{module}::" for module in self.modules)] if self.modules else []


def crossing(*modules):
    """Returns integration tests of the package whose tests cover several crates."""
    return Stage("anabranch-tests", "protocol", modules)


@dataclass(frozen=True)
class Group:
    """Files that are tested by the same stages."""

    files: tuple[str, ...]
    stages: tuple[Stage, ...]


WIRE = Stage("anabranch-wire")
CORE = Stage("anabranch-core")
TRANSFER = Stage("anabranch-transfer")
ASSOCIATION = "crates/core/src/association"

AREAS = {
    "wire": (Group(("crates/wire/src/**/*.rs",), (WIRE,)),),
    "sack": (
        Group(
            (
                "crates/core/src/intervals.rs",
                "crates/core/src/recv/tracker.rs",
                "crates/core/src/send/lost.rs",
                "crates/core/src/send/outstanding.rs",
                "crates/core/src/send/peer_window.rs",
                "crates/core/src/send/sender.rs",
            ),
            (CORE, crossing("endpoint"), crossing("bad_input")),
        ),
        Group(
            tuple(
                f"{ASSOCIATION}/{name}.rs"
                for name in ("acknowledgement", "gap_acks", "missing", "recovery", "reneging", "sack_in")
            ),
            (
                crossing("endpoint"),
                crossing("bad_input", "interaction"),
            ),
        ),
    ),
    "handshake": (
        Group(("crates/core/src/cookie.rs",), (CORE, crossing("handshake"))),
        Group(
            (
                f"{ASSOCIATION}/handshake.rs",
                "crates/core/src/init/sack_flags.rs",
                "crates/core/src/init/mod.rs",
                "crates/core/src/endpoint/setup.rs",
            ),
            (CORE, crossing("handshake"), crossing("asconf", "bad_input", "endpoint", "guard")),
        ),
    ),
    "reassembly": (
        Group(
            tuple(f"crates/core/src/recv/{name}.rs" for name in ("arena", "reassembly", "receiver", "ring")),
            (CORE, crossing("endpoint")),
        ),
    ),
    "transfer": (
        Group(
            (
                "crates/transfer/src/receive/machine.rs",
                "crates/transfer/src/send/sender.rs",
                "crates/transfer/src/store/journal.rs",
                "crates/transfer/src/store/part.rs",
            ),
            (TRANSFER, Stage("anabranch-transfer", "transfer", ("loopback",))),
        ),
    ),
}


@dataclass
class Tally:
    """Names of mutants by their outcome."""

    caught: set[str] = field(default_factory=set)
    timeout: set[str] = field(default_factory=set)
    unviable: set[str] = field(default_factory=set)
    missed: set[str] = field(default_factory=set)

    def add(self, other):
        for kind in ("caught", "timeout", "unviable", "missed"):
            getattr(self, kind).update(getattr(other, kind))

    def rate(self):
        killed = len(self.caught) + len(self.timeout)
        return killed, killed + len(self.missed)


def mutants_of(group):
    """Returns the names of all mutants in the files of a group."""
    files = [argument for name in group.files for argument in ("--file", name)]
    command = ["cargo", "mutants", "--list", "--json", *files]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [mutant["name"] for mutant in json.loads(listed.stdout)]


def read(folder):
    lists = {}
    for kind in ("caught", "timeout", "unviable", "missed"):
        lists[kind] = set((folder / f"{kind}.txt").read_text(encoding="utf-8").splitlines())
    return Tally(**lists)


def run_stage(group, stage, every, wanted, out, more):
    """Tests the `wanted` mutants. The others are listed as caught before, so that cargo-mutants skips them."""
    shutil.rmtree(out, ignore_errors=True)
    before = out / "mutants.out"
    before.mkdir(parents=True)
    skipped = [name for name in every if name not in wanted]
    (before / "caught.txt").write_text("".join(f"{name}\n" for name in skipped), encoding="utf-8")
    for other in ("previously_caught", "unviable"):
        (before / f"{other}.txt").touch()
    files = [argument for name in group.files for argument in ("--file", name)]
    command = [
        "cargo",
        "mutants",
        "--iterate",
        "--output",
        str(out),
        *files,
        *stage.arguments(),
        *more,
        *stage.filters(),
    ]
    # proptest must not store a failure of one mutant as a case for all later mutants, nor change the tree.
    environment = {"PROPTEST_CASES": "64", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1", **os.environ}
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    # Exit status of cargo-mutants: 2 if tests missed mutants, 3 if tests timed out.
    if ended.returncode not in (0, 2, 3):
        sys.exit(f"cargo mutants ended with status {ended.returncode}; its log is in {out}")
    return read(before)


def run_area(name, options):
    groups = [(group, mutants_of(group)) for group in AREAS[name]]
    everything = [mutant for _, listed in groups for mutant in listed]
    chosen = set(everything)
    if options.sample:
        chosen = set(random.Random(options.seed).sample(everything, min(options.sample, len(everything))))
    tally = Tally()
    for number, (group, every) in enumerate(groups):
        wanted = {mutant for mutant in every if mutant in chosen}
        for stage_number, stage in enumerate(group.stages):
            if not wanted:
                break
            out = options.out / name / f"group-{number}-stage-{stage_number}"
            found = run_stage(group, stage, every, wanted, out, options.more)
            wanted, found.missed = found.missed, set()
            tally.add(found)
        tally.missed |= wanted
    return tally, len(everything)


def interval(killed, of):
    """Returns the 95 % score interval of a rate (Wilson 1927)."""
    z = 1.96
    middle, half = killed + z * z / 2, z * math.sqrt(killed * (of - killed) / of + z * z / 4)
    return (middle - half) / (of + z * z), (middle + half) / (of + z * z)


def print_area(name, tally, total, sampled):
    killed, of = tally.rate()
    tested = of + len(tally.unviable)
    print(f"\n== {name}: {tested} of {total} mutants tested, {len(tally.unviable)} did not compile")
    if of:
        rate = f"{killed} of {of} killed ({len(tally.timeout)} by time-out): {100 * killed / of:.1f} %"
        low, high = interval(killed, of)
        print(rate + (f", 95 % interval {100 * low:.1f} to {100 * high:.1f} %" if sampled else ""))
    for mutant in sorted(tally.missed):
        print(f"   missed: {mutant}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("areas", nargs="+", choices=AREAS, metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--sample", type=int, default=0, help="take so many mutants of each area at random; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="decides which")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="folder for the logs")
    ours, more = sys.argv[1:], []
    if "--" in ours:
        at = ours.index("--")
        ours, more = ours[:at], ours[at + 1 :]
    options = parser.parse_args(ours)
    options.more = more
    options.out = options.out.resolve()
    tallies = [(name, *run_area(name, options)) for name in options.areas]
    for name, tally, total in tallies:
        print_area(name, tally, total, options.sample)


if __name__ == "__main__":
    main()
