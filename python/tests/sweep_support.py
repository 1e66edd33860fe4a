"""Short scenarios for tests of sweeps, and what several of them look at."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa

from anabranch.results import Results

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent

SCENARIO = """\
[run]
duration = "{duration}"
schemes = ["cmt", "cmt-pf"]
seeds = 3

[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.01

[[path]]
rate = "2 Mbit/s"
delay = "90 ms"
loss = 0.01
"""


def write_scenario(folder: Path, duration: str = "1 s", name: str = "two.toml") -> Path:
    """Two paths for a second, which take half a millisecond to run."""
    path = folder / name
    path.write_text(SCENARIO.format(duration=duration))
    return path


def same(one: Results, other: Results) -> bool:
    """Whether two results hold the same, up to the last bit."""
    tables = all(one.to_arrow(table).equals(other.to_arrow(table)) for table in ("runs", "paths", "flows"))
    return tables and one.manifest == other.manifest


def rows(table: pa.Table, *columns: str) -> list[tuple[object, ...]]:
    """Some columns of a table, row by row."""
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def entries(cache: Path) -> list[Path]:
    """The entries of a cache."""
    return sorted(path for path in cache.rglob("*") if path.is_file())


def environment(**more: str) -> dict[str, str]:
    """For a process that imports this package from where it stands."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **more}


def sweep_command(*arguments: object) -> list[str]:
    """`anabranch sweep` as a process of its own."""
    call = "import sys; from anabranch.command.sweep import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", call, *map(str, arguments)]
