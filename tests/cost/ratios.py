"""Ratios from benchmarks of the simulator, compared with those stored in this folder."""

import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

STORED = Path(__file__).resolve().parent / "sim.tsv"
HEADER = ("row", "value")
# Factor above the stored value from which on a row is reported as worse.
MUCH = 1.05


@dataclass(frozen=True)
class Row:
    """Row of the table. `goal` is the largest value, or the smallest one if more is better. Differences up to
    `slack` are not reported."""

    name: str
    goal: float | None = None
    more_is_better: bool = False
    slack: float = 0.0


@dataclass
class Table:
    """Values of rows, one for each round, and lines about the measurements."""

    values: dict[Row, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, row, value):
        self.values.setdefault(row, []).append(value)

    def medians(self):
        return {row: statistics.median(values) for row, values in self.values.items()}


def spent(command):
    """Runs a command, and returns its processor time in seconds and its output."""
    before = processor_time_s()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        words = " ".join(str(word) for word in command)
        sys.exit(f"{words}\nended with status {ended.returncode}: {ended.stderr.strip()}")
    return processor_time_s() - before, ended.stdout


def processor_time_s():
    """Returns the processor time of all processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stored():
    if not STORED.exists():
        return {}
    lines = STORED.read_text(encoding="utf-8").splitlines()[1:]
    return {name: float(value) for name, value in (line.split("\t") for line in lines)}


def store(table):
    """Stores the medians. Rows that were not measured keep their values."""
    values = {**stored(), **{row.name: value for row, value in table.medians().items()}}
    lines = ["\t".join(HEADER), *(f"{name}\t{value:.3f}" for name, value in values.items())]
    STORED.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def worse_by(row, value, before):
    """Returns the factor by which a value is worse than a previous one: 1 within the row's slack."""
    if abs(value - before) <= row.slack:
        return 1.0
    if row.more_is_better:
        return before / value
    return value / before


def report(table):
    """Returns the lines of the table, the notes, and the rows that are worse than stored."""
    expected, lines, worse = stored(), [], []
    lines.append(f"{'row':50} {'value':>8} {'spread':>17} {'stored':>8} {'goal':>8}")
    for row, value in table.medians().items():
        before = expected.get(row.name)
        spread = f"{min(table.values[row]):.3f} to {max(table.values[row]):.3f}"
        goal = "" if row.goal is None else f"{'>=' if row.more_is_better else '<='} {row.goal:g}"
        told = "none" if before is None else f"{before:.3f}"
        lines.append(f"{row.name:50} {value:8.3f} {spread:>17} {told:>8} {goal:>8}")
        if before is not None and before > 0 and value > 0 and worse_by(row, value, before) > MUCH:
            percent = 100 * (worse_by(row, value, before) - 1)
            worse.append(f"*** WORSE THAN STORED by {percent:.0f} %: {row.name}")
    return [*lines, *table.notes, *worse]
