"""Short scenarios and helper functions for tests of sweeps."""

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
    """Writes a scenario of one second over two paths. A run of it takes half a millisecond."""
    path = folder / name
    path.write_text(SCENARIO.format(duration=duration))
    return path


def same(one: Results, other: Results) -> bool:
    """Returns `True` if two results are equal, up to the last bit."""
    tables = all(one.to_arrow(table).equals(other.to_arrow(table)) for table in ("runs", "paths", "flows"))
    return tables and one.manifest == other.manifest


def rows(table: pa.Table, *columns: str) -> list[tuple[object, ...]]:
    """Returns some columns of a table, row by row."""
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def entries(cache: Path) -> list[Path]:
    """Returns the entries of a cache."""
    return sorted(path for path in cache.rglob("*") if path.is_file())


class AfterEntries(threading.Thread):
    """Watch that runs an action once a cache has `count` entries. `found` is their number at that time."""

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
    """Returns the environment of a process that imports this package from its folder."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **more}


def start(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Starts a process that Ctrl-C ends, even if the tests run in the background of a shell, which ignores SIGINT."""
    return subprocess.Popen(command, env=environment(), preexec_fn=_listen_to_ctrl_c, **options)


def _listen_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def sweep_command(*arguments: object) -> list[str]:
    """Returns the command line of `anabranch sweep` as a process of its own."""
    call = "import sys; from anabranch.command.sweep import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", call, *map(str, arguments)]
