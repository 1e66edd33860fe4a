"""Measures every way with every work, and makes the table of the book."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive
from anabranch.errors import AnabranchError
from anabranch.experiments.cost import Cost
from anabranch.experiments.pages.document import Table, markdown
from anabranch.experiments.stored import about_now, columns_of
from studies.arena.command import require_namespaces
from studies.forwarding.measuring import LATE_US, ROOT, WORKS, Work, measure
from studies.forwarding.ways import Way, ways
from studies.stored import block_json, write_study

_EXAMPLES = """\
Examples:
  All of it, in half an hour:
    cargo install aggligator-util@0.18.12 --no-default-features --locked --bin agg-tunnel
    make study NAME=forwarding
  The table of the book:
    make study NAME=forwarding ARGS='--store docs/results/forwarding.json.xz'

Each finished run is a line of runs.jsonl in the folder of --out, and is not run again.

Status: 0 all went well, 1 something could not be run, read or written, 2 the command line is wrong, 130 Ctrl-C."""

Row = dict[str, Any]
"""Figures of one run, or its error."""

HEADER = (
    "",
    "download, 20 + 20 Mbit/s",
    "download, 50 + 5 Mbit/s",
    "echo idle",
    "echo beside a download, median",
    "99 %",
    "cut link: without delivery",
    "Mbit/s after it",
)
COLUMNS = (
    ("equal", "mbps", "Mbit/s"),
    ("unequal", "mbps", "Mbit/s"),
    ("keystrokes", "idle_ms", "ms"),
    ("keystrokes", "p50_ms", "ms"),
    ("keystrokes", "p99_ms", "ms"),
    ("cut", "gap_ms", "ms"),
    ("cut", "after_mbps", "Mbit/s"),
)
RATES_HEADER = ("", "300 Mbit/s", "80 Mbit/s", "300 + 80 Mbit/s", "of the sum", "300 + 300 Mbit/s", "of the sum")
ATTEMPTS = 4


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    require_namespaces()
    if missing := [name for name in ("mptcpize", options.agg_tunnel) if shutil.which(name) is None]:
        raise AnabranchError(f"{', '.join(missing)} not found: see --help for their installation")
    if options.anabranch is None:
        build(["anabranch"])
    build(["arena-link"])
    program = options.anabranch or ROOT / "target" / "release" / "anabranch"
    options.out.mkdir(parents=True, exist_ok=True)
    file, known = options.out / "runs.jsonl", ways(program.resolve(), options.agg_tunnel)
    for number in range(1, options.rounds + 1):
        run_round(number, known, file)
    rows = read(file)
    names = [way.name for way in known]
    tables = {"table": table(rows, names), "rates": rates_table(rows, names)}
    print(markdown(list(tables.values())))
    if options.store:
        content = {
            "parts": {part: [block_json(block)] for part, block in tables.items()},
            "runs": columns_of(pd.DataFrame(rows)),
        }
        write_study(options.store, {**about_now(Cost()), "runs_computed": len(rows)}, content)
    return 0


def run_round(number: int, known: Sequence[Way], file: Path) -> None:
    """Runs every work over every way, unless the file has it, and appends a line for each."""
    done = {(row["way"], row["work"], row["round"]) for row in read(file)}
    for work in WORKS:
        for way in known:
            if (way.name, work.name, number) not in done:
                row = {"way": way.name, "work": work.name, "round": number, **measured(way, work)}
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(row, flush=True)


def measured(way: Way, work: Work) -> Row:
    """Measures until the links are in time. Returns the last attempt if none is."""
    for _ in range(ATTEMPTS):
        figures = measure(way, work)
        if is_in_time(figures) and "error" not in figures:
            break
    return figures


def is_in_time(row: Row) -> bool:
    """Returns `True` if the links have delivered the packets of a run in time."""
    return bool(row["late_us"] < LATE_US)


def read(file: Path) -> list[Row]:
    """Returns the finished runs whose links were in time. A missing file has none."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [row for row in map(json.loads, lines) if is_in_time(row)]


def table(rows: Iterable[Row], order: Sequence[str]) -> Table:
    """Returns the medians over the rounds, with a row for each way."""
    listed = list(rows)

    def cell(way: str, work: str, figure: str, unit: str) -> str:
        found = median(listed, way, work, figure)
        return "failed" if found is None else f"{found:.{1 if unit == 'Mbit/s' else 0}f} {unit}"

    body = [[way, *(cell(way, *column) for column in COLUMNS)] for way in order]
    return Table(HEADER, body, frozenset(range(1, len(HEADER))))


def rates_table(rows: Iterable[Row], order: Sequence[str]) -> Table:
    """Returns the goodputs over links of the kernel, and their shares of the sum of those over each link alone."""
    listed = list(rows)

    def cells(way: str) -> list[str]:
        works = ("fast", "slow", "fast and slow", "two fast")
        fast, slow, both, twice = (median(listed, way, work, "mbps") for work in works)
        pairs = [(both, fast, slow), (twice, fast, fast)]
        shares = [f"{of / (one + other):.2f}" if of and one and other else "" for of, one, other in pairs]
        rates = ["failed" if rate is None else f"{rate:.0f} Mbit/s" for rate in (fast, slow, both, twice)]
        return [*rates[:3], shares[0], rates[3], shares[1]]

    body = [[way, *cells(way)] for way in order]
    return Table(RATES_HEADER, body, frozenset(range(1, len(RATES_HEADER))))


def median(rows: Iterable[Row], way: str, work: str, figure: str) -> float | None:
    """Returns the median of a figure over the rounds, or `None` if all of them failed."""
    found = [row[figure] for row in rows if row["way"] == way and row["work"] == work and figure in row]
    return statistics.median(found) if found else None


def build(programs: Sequence[str]) -> None:
    """Builds binaries of the workspace."""
    for name in programs:
        command = ["cargo", "build", "--release", "--locked", "--quiet", "--bin", name]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            raise AnabranchError(f"{name} could not be built: see the error above")


def _parser() -> Parser:
    parser = Parser(
        prog="studies forwarding",
        description="Forward a download and keystrokes by TCP, MPTCP, aggligator and anabranch over the same links.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--rounds", metavar="N", type=positive, default=3, help="runs of each combination [default: 3]")
    add("--anabranch", metavar="FILE", type=Path, help="the command [default: built from these sources]")
    add("--agg-tunnel", metavar="FILE", default="agg-tunnel", help="the command of aggligator [default: agg-tunnel]")
    add("--store", metavar="FILE", type=Path, help="write the finished runs and their table for the book")
    add("--out", metavar="DIR", type=Path, default=Path("out/forwarding"), help="folder of the finished runs")
    return parser
