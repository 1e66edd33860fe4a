"""Encoding of units of work for executors: text to the workers, compressed text back.

The text contains no objects of this package, so that two versions of it detect their difference instead of failing to
decode each other.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.errors import ExecutorError
from anabranch.sweeps.grid import Grid
from anabranch.version import Engine


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a unit: the figures of its runs, in their order.

    `seconds` has the time of each run, and `slot` identifies the thread that made them.
    """

    texts: list[str]
    seconds: list[float]
    slot: str


def pack(grid: Grid, positions: Sequence[int], engine: Engine) -> str:
    """Returns the runs at these positions as text: scenarios, schemes, seeds, and paths and hashes of files."""
    cells = _numbered(position // len(grid.seeds) for position in positions)
    points = _numbered(grid.cells[cell].point for cell in cells)
    files = {path: digest for point in points for path, digest in grid.points[point].files.items()}
    return json.dumps(
        {
            "version": engine.version,
            "fingerprint": engine.fingerprint,
            "scenarios": [grid.points[point].scenario for point in points],
            "cells": [[points[grid.cells[cell].point], grid.cells[cell].scheme] for cell in cells],
            "runs": [[cells[position // len(grid.seeds)], grid.seed_of(position)] for position in positions],
            "file": grid.given.file,
            "folder": str(grid.given.folder),
            "files": files,
        }
    )


def _numbered(values: Iterable[int]) -> dict[int, int]:
    """Returns each different value with its place among them."""
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def unpack(packed: bytes) -> Outcome:
    """Reads a result of `worker.compute`. Raises `ExecutorError` with the worker's error, if there is one."""
    head, *texts = zlib.decompress(packed).decode().split("\n")
    report = json.loads(head)
    if "error" in report:
        raise ExecutorError(report["error"])
    return Outcome(texts, report["seconds"], report["slot"])
