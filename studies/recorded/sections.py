"""Sections of recordings of two operators, measured at the same time while driving.

The data set is *pam2025-multi-carrier-dataset* of NUWiNS (PAM 2025, CC0 1.0). It is not part of this repository.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import random
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import fmean

from anabranch.errors import AnabranchError

SOURCE = "https://github.com/NUWiNS/pam2025-multi-carrier-dataset"
STEP_S, SECTION_S, LARGEST_GAP_S = 0.5, 30.0, 1.5
LEAST_BETTER_MBPS, MOST_SUM_MBPS = 1.0, 200.0
DIRECTIONS = {"uplink": "UL", "downlink": "DL"}

Row = tuple[float, float, float]
"""Time in seconds, and the rates of both operators in Mbit/s."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rates of both operators in Mbit/s, one for each step of half a second."""

    name: str
    direction: str
    rates: tuple[tuple[float, float], ...]

    @property
    def means(self) -> tuple[float, float]:
        """Mean rates of both operators in Mbit/s."""
        return fmean(x for x, _ in self.rates), fmean(y for _, y in self.rates)

    def write(self, folder: Path) -> Path:
        """Writes the section as a table that `capacity` of a scenario reads, and returns its file."""
        file = folder / f"{self.name}.csv"
        lines = [f"{at * STEP_S:g},{x:g},{y:g}" for at, (x, y) in enumerate(self.rates)]
        file.write_text("\n".join(["time,x_mbps,y_mbps", *lines, ""]), encoding="utf-8")
        return file


def choose(data: Path, per_direction: int, seed: int) -> list[Section]:
    """Draws sections of both directions, at most one from each recording.

    Raises `AnabranchError` if the data is missing, or has too few eligible recordings.
    """
    chosen: list[Section] = []
    for direction, prefix in DIRECTIONS.items():
        generator = random.Random(f"{seed} {direction}")
        recordings = [eligible for each in _recordings(data, prefix) if (eligible := _eligible(*each, direction))]
        if len(recordings) < per_direction:
            raise AnabranchError(
                f"{data}: {len(recordings)} recordings of {direction} are eligible, {per_direction} needed"
            )
        drawn = [generator.choice(sections) for sections in generator.sample(recordings, per_direction)]
        chosen += sorted(drawn, key=lambda section: section.name)
    return chosen


def _recordings(data: Path, prefix: str) -> Iterator[tuple[str, list[Row]]]:
    """Yields name and rows of each recording of a direction, in the order of their names."""
    found = sorted((PurePosixPath(name).stem, text) for name, text in _files(data, f"{prefix}_timediff"))
    if not found:
        raise AnabranchError(
            f"{data}: has no folder {prefix}_timediff with recordings; get the data set with `git clone {SOURCE}`, "
            f"and name its folder or archive of AT&T and Verizon with --data"
        )
    for name, text in found:
        yield name, _rows(text, prefix)


def _files(data: Path, folder: str) -> Iterator[tuple[str, str]]:
    """Yields names and contents of the tables in folders of this name, in a folder or a ZIP archive."""
    if data.is_dir():
        for file in data.rglob(f"{folder}/*.csv"):
            yield file.name, file.read_text(encoding="utf-8")
    elif data.is_file() and zipfile.is_zipfile(data):
        with zipfile.ZipFile(data) as archive:
            for name in archive.namelist():
                if PurePosixPath(name).match(f"{folder}/*.csv"):
                    yield name, archive.read(name).decode()


def _rows(text: str, prefix: str) -> list[Row]:
    """Returns the rows that have both rates, by the clock of the first operator."""
    columns = "TIME_STAMP_x", f"{prefix}tput_x", f"{prefix}tput_y"
    rows = [[row.get(name) or "" for name in columns] for row in csv.DictReader(io.StringIO(text))]
    full = [tuple(map(float, row)) for row in rows if all(row)]
    return sorted((at, x, y) for at, x, y in full if all(map(math.isfinite, (at, x, y))))


def _eligible(name: str, rows: Sequence[Row], direction: str) -> list[Section]:
    """Returns the eligible sections of a recording, which follow each other without overlap."""
    if not rows:
        return []
    begin, sections = rows[0][0], []
    short = re.sub(r"_atnt_verizon|_run", "", name).replace("_", "-")
    for number in range(int((rows[-1][0] - begin) // SECTION_S)):
        start = begin + number * SECTION_S
        own = [(at - start, x, y) for at, x, y in rows if start <= at < start + SECTION_S]
        section = Section(f"{short}-{number * SECTION_S:g}s", direction, tuple(_resampled(own)))
        if _is_dense(own) and max(section.means) >= LEAST_BETTER_MBPS and sum(section.means) <= MOST_SUM_MBPS:
            sections.append(section)
    return sections


def _is_dense(rows: Sequence[Row]) -> bool:
    """Returns `True` if no gap between rows, or at an end, is longer than `LARGEST_GAP_S`."""
    times = [0.0, *(at for at, _, _ in rows), SECTION_S]
    return all(later - earlier <= LARGEST_GAP_S for earlier, later in itertools.pairwise(times))


def _resampled(rows: Sequence[Row]) -> Iterator[tuple[float, float]]:
    """Yields the mean rates of each step. A step without rows has the rates of the step before it."""
    last = (rows[0][1], rows[0][2]) if rows else (0.0, 0.0)
    for step in range(round(SECTION_S / STEP_S)):
        own = [(x, y) for at, x, y in rows if step * STEP_S <= at < (step + 1) * STEP_S]
        if own:
            last = fmean(x for x, _ in own), fmean(y for _, y in own)
        yield last
