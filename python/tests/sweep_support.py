"""Short scenarios for tests of sweeps, and what several of them look at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import anabranch
from anabranch.results import Results

PACKAGE = Path(anabranch.__file__).parents[1]

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


class AfterEntries(threading.Thread):
    """Does something once a cache has so many entries; `found` is how many it had then."""

    def __init__(self, cache: Path, count: int, action: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._cache = cache
        self._count = count
        self._action = action
        self.found = 0
        self.start()

    def run(self) -> None:
        while (found := len(entries(self._cache))) < self._count:
            time.sleep(0.005)
        self.found = found
        self._action()


def environment(**more: str) -> dict[str, str]:
    """For a process that imports this package from where it stands."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **more}


def start(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Starts a process that Ctrl-C ends, even where the tests run in the background, which makes shells ignore it."""
    return subprocess.Popen(command, env=environment(), preexec_fn=_listen_to_ctrl_c, **options)


def _listen_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def sweep_command(*arguments: object) -> list[str]:
    """`anabranch sweep` as a process of its own."""
    call = "import sys; from anabranch.command.sweep import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", call, *map(str, arguments)]
