"""Simulated runs of a comparison, each stored in two files as it finishes, so that a comparison can resume.

`arrivals/LABEL.csv` is an input of `anabranch video evaluate`. `runs/LABEL.json`, which is written last, has the run's
key, its figures, and the paths over time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import _native
from anabranch.series import Series
from anabranch.sweeps.grid import Grid
from anabranch.video.coded import CodedClip
from anabranch.video_comparison.setting import FLOW

ARRIVALS, RUNS = "arrivals", "runs"
# Folder of traces of current runs.
_TRACES = ".traces"
# Number of bins of paths over time: enough to show an outage, and few enough for a page.
_BINS = 200


@dataclass(frozen=True)
class SimulatedRun:
    """Finished run. `timeline` has throughput and drops of each path over time."""

    scheme: str
    seed: int
    arrivals: Path
    result: Mapping[str, Any]
    timeline: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Name of its files without the ending."""
        return _native.run_label(self.scheme, self.seed)

    @property
    def abandoned(self) -> int | None:
        """Number of messages that the sender abandoned."""
        flow = next(flow for flow in self.result["flows"] if flow["name"] == FLOW)
        abandoned = flow.get("abandoned")
        return None if abandoned is None else int(abandoned["messages"])


class Runs:
    """Runs of a grid with one point, in a folder."""

    def __init__(self, grid: Grid, clip: CodedClip, folder: Path) -> None:
        self._grid = grid
        self._clip = clip
        self._folder = folder
        self.finished: dict[int, SimulatedRun] = {}

    def __len__(self) -> int:
        return len(self._grid)

    def resume(self) -> None:
        """Loads the runs that an earlier call has finished."""
        for position in range(len(self._grid)):
            kept = self._kept(position)
            if kept is not None:
                self.finished[position] = kept

    def make(self, step: Callable[[], object]) -> None:
        """Makes the missing runs, on all processors. `step` is called after each.

        Raises `KeyboardInterrupt`, and `RunError` for a run that cannot be made. Finished runs are stored.
        """
        missing = [position for position in range(len(self._grid)) if position not in self.finished]
        if not missing:
            return
        traces = self._folder / _TRACES
        for folder in (self._folder / ARRIVALS, self._folder / RUNS):
            folder.mkdir(parents=True, exist_ok=True)
        prepared = {cell.label: self._grid.prepare(cell) for cell in self._grid.cells}
        jobs = [(prepared[self._grid.cell_of(at).label], self._grid.seed_of(at)) for at in missing]

        def done(index: int, text: str) -> None:
            # After Ctrl-C in this function, it is called again.
            if missing[index] not in self.finished:
                self._keep(missing[index], text, traces)
                step()

        try:
            _native.run_batch(jobs, done, trace=traces)
        finally:
            shutil.rmtree(traces, ignore_errors=True)

    def in_order(self) -> list[SimulatedRun]:
        """Returns the finished runs, scheme by scheme."""
        return [self.finished[position] for position in sorted(self.finished)]

    def of_seed(self, seed: int) -> Iterator[SimulatedRun]:
        """Yields the finished runs with this seed."""
        return (run for run in self.in_order() if run.seed == seed)

    def _label(self, position: int) -> str:
        return _native.run_label(self._grid.cell_of(position).label, self._grid.seed_of(position))

    def _files(self, position: int) -> tuple[Path, Path]:
        name = self._label(position)
        return self._folder / ARRIVALS / f"{name}.csv", self._folder / RUNS / f"{name}.json"

    def _key(self, position: int) -> str:
        """Returns a hash of the run's dependencies, including the clip, which the scenario only names."""
        of_clip = (self._clip.manifest["bitstream_sha256"], self._clip.manifest["payload_bytes"])
        return hashlib.sha256(repr((self._grid.key_of(position), of_clip)).encode()).hexdigest()

    def _keep(self, position: int, text: str, traces: Path) -> None:
        arrivals, record = self._files(position)
        trace = traces / self._label(position)
        written = trace / f"{FLOW}-arrivals.csv"
        timeline = path_timeline(Series(trace))
        digest = hashlib.sha256(written.read_bytes()).hexdigest()
        written.replace(arrivals)
        result = json.loads(text)
        content = {"key": self._key(position), "arrivals_sha256": digest, "result": result, "timeline": timeline}
        beside = record.with_name(f".{record.name}.{os.getpid()}")
        beside.write_text(json.dumps(content) + "\n", encoding="utf-8")
        beside.replace(record)
        shutil.rmtree(trace, ignore_errors=True)
        self.finished[position] = self._run(position, result, timeline)

    def _kept(self, position: int) -> SimulatedRun | None:
        """Returns the run if its files exist, are undamaged, and have the same settings."""
        arrivals, record = self._files(position)
        try:
            content = json.loads(record.read_text(encoding="utf-8"))
            sound = (
                content["key"] == self._key(position)
                and content["arrivals_sha256"] == hashlib.sha256(arrivals.read_bytes()).hexdigest()
            )
            return self._run(position, content["result"], content["timeline"]) if sound else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _run(self, position: int, result: Mapping[str, Any], timeline: Mapping[str, Any]) -> SimulatedRun:
        arrivals, _ = self._files(position)
        cell = self._grid.cell_of(position)
        return SimulatedRun(cell.label, self._grid.seed_of(position), arrivals, result, timeline)


def path_timeline(series: Series) -> dict[str, Any]:
    """Returns, for each path in equal bins, kbit/s of received chunks and the number of dropped ones."""
    end_s = series.end_s
    width_s = max(end_s / _BINS, 0.1)
    throughput = series.throughput(width_s)
    forward = throughput[throughput["direction"] == "forward"]
    drops = series.drops()
    dropped = drops[drops["direction"] == "forward"]
    paths = list(dict.fromkeys(forward["path"].astype(str)))
    bins = len(forward) // max(len(paths), 1)
    return {
        "width_s": width_s,
        "begins_s": _first_sent_s(series),
        "paths": {
            path: {
                "kbps": [round(value, 1) for value in forward.loc[forward["path"] == path, "throughput_kbps"]],
                "dropped": _counts(dropped.loc[dropped["path"] == path, "time_s"], width_s, bins),
            }
            for path in paths
        },
    }


def _first_sent_s(series: Series) -> float:
    """Returns the time at which the first chunk was sent, which is that of the first frame's hand-over."""
    packets = series.packets()
    sent = packets.loc[packets["event"] == "sent", "time_s"]
    return float(sent.iloc[0]) if len(sent) else 0.0


def _counts(times_s: Sequence[float], width_s: float, bins: int) -> list[int]:
    counts = [0] * bins
    for time_s in times_s:
        counts[min(int(time_s / width_s), bins - 1)] += 1
    return counts


def failures(runs: Sequence[SimulatedRun]) -> list[str]:
    """Returns failures of associations, whose frames are lost for a reason outside the scheme."""
    found = []
    for run in runs:
        flow = next(flow for flow in run.result["flows"] if flow["name"] == FLOW)
        if flow.get("failure"):
            found.append(f"{run.label}: the association failed: {flow['failure']}")
    return found
