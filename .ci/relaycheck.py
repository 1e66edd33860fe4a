"""Compares transfers over relays on real sockets with the expected results, and prints a verdict on each question.

Every figure is the median over pairs of runs, one directly after the other, so that a machine that is busy for a while
slows both of a pair. The verdicts do not affect the exit status, which is 1 only if a run gave no figure.

Usage: relaycheck.py [--pairs N] COMMAND..., where COMMAND starts `anabranch`.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios" / "relaycheck"
ALONE = ["--set", 'flow.flow-1.paths=["path-1"]']
POINTS = ["at-5-mbit", "at-20-mbit", "at-50-mbit"]


class MeasurementError(Exception):
    """Failure of one of the runs that are compared."""


def compared(command, name, seed, more=()):
    """Returns the results of one run in the simulator and on sockets."""
    arguments = ["compare", str(SCENARIOS / f"{name}.toml"), "--json", "--quiet", "--seeds", f"{seed},", *more]
    ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise MeasurementError(f"{name}, seed {seed}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def on_sockets(command, name, seed, more=()):
    return compared(command, name, seed, more)["sockets"]["goodput_kbps"] / 1000


def one_and_two(command, name, seed):
    """Returns the goodput of the first path alone and of both paths, in Mbit/s.

    The order of the two runs alternates.
    """
    options = [ALONE, ()] if seed % 2 else [(), ALONE]
    measured = [on_sockets(command, name, seed, more) for more in options]
    return measured if seed % 2 else measured[::-1]


def simulated_and_not(command, name, seed):
    pair = compared(command, name, seed)
    return pair["simulated"]["goodput_kbps"] / 1000, pair["sockets"]["goodput_kbps"] / 1000


def questions():
    """Yields the questions: a title, the names of both sides of a pair, the function that makes a pair, its scenario,
    and the accepted range of the median ratio."""
    yield "two equal paths under cmt", ("one", "two"), one_and_two, "two-equal-paths", (1.8, None)
    yield (
        "a path with 10 % loss and 300 ms added under braid",
        ("best alone", "both"),
        one_and_two,
        "bad-path",
        (0.9, None),
    )
    for point in POINTS:
        rate = point.split("-")[1]
        yield f"{rate} Mbit/s under cmt", ("simulated", "sockets"), simulated_and_not, point, (0.9, 1.1)


def verdict(title, sides, pairs, bounds):
    ratios = sorted(second / first for first, second in pairs)
    median = statistics.median(ratios)
    least, most = bounds
    good = median >= least and (most is None or median <= most)
    wanted = f"at least {least}" if most is None else f"{least} to {most}"
    means = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return (
        f"{title}: {sides[0]} {means[0]:.2f}, {sides[1]} {means[1]:.2f} Mbit/s; "
        f"ratio {median:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f} in {len(ratios)} pairs), wanted {wanted}: "
        f"{'holds' if good else 'DOES NOT HOLD'}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs for each question")
    parser.add_argument("command", nargs="+", help="how anabranch is started")
    arguments = parser.parse_args()
    asked = list(questions())
    pairs = [[] for _ in asked]
    try:
        # Each round asks every question once, so that the pairs of a question are spread over the whole time.
        for seed in range(1, arguments.pairs + 1):
            for collected, (_, _, make, name, _) in zip(pairs, asked, strict=True):
                collected.append(make(arguments.command, name, seed))
    except MeasurementError as problem:
        print(f"relaycheck: {problem}")
        return 1
    for collected, (title, sides, _, _, bounds) in zip(pairs, asked, strict=True):
        print(verdict(title, sides, collected, bounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
