"""Traces of one run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pandas

from anabranch.errors import TraceError
from anabranch.series import derived, tables
from anabranch.series.folder import TraceFolder, open_folder

Direction = Literal["forward", "reverse"]


class Series:
    """Traces of one run, or of associations on real sockets, as data frames.

    The book's chapter "Traces and captures" defines the columns. Frames are read on first use and kept. Words are
    categories, times are seconds since the run began. Frames of `paths` and `decisions`, and those derived from them,
    have a `direction` beside the columns of the file. It is `forward` for data that the left host sends and `reverse`
    for data of the right one.

    >>> from anabranch.simulation import run
    >>> series = run("scenarios/two-path.toml", "cmt").series
    >>> throughput = series.throughput(every_s=20.0)
    >>> throughput.loc[throughput["path"] == "path-2", "time_s"].tolist()
    [0.0, 20.0, 40.0]

    Traces of a run that was interrupted, or files that were cut off, are read up to their last complete row. `complete`
    is then false, and `notes` has the reason. Raises `TraceError` if the folder is no trace, or one of another version.
    Reading a frame raises it if its file is missing or invalid.
    """

    def __init__(self, folder: str | os.PathLike[str], *, keep: object = None) -> None:
        self._trace: TraceFolder = open_folder(folder)
        self._frames: dict[str, pandas.DataFrame] = {}
        # An object with the lifetime of the files, such as a temporary folder.
        self._keep = keep

    @property
    def folder(self) -> Path:
        """Folder of the traces."""
        return self._trace.path

    @property
    def manifest(self) -> dict[str, Any]:
        """Content of `run.toml`: `scheme`, `seed`, `profile`, a list of `sender` and more."""
        return self._trace.manifest

    @property
    def result(self) -> dict[str, Any] | None:
        """Content of `result.json`: `ended_s`, `file_bytes`, `result` with figures; `None` if the run did not end."""
        return self._trace.result

    @property
    def complete(self) -> bool:
        """`True` if the run ended, and all files are complete and unchanged."""
        return not self.notes

    @property
    def notes(self) -> list[str]:
        """Reasons why the traces are incomplete."""
        return self._trace.notes()

    @property
    def end_s(self) -> float:
        """Seconds from the beginning of the run to its end, or to the last row of incomplete traces."""
        if self.result is not None:
            return float(self.result["ended_s"])
        frames = (self._frame("packets"), self._frame("paths"), self._frame("decisions"))
        return max((float(frame["time_s"].iloc[-1]) for frame in frames if len(frame)), default=0.0)

    def paths(self, flow: str | None = None, direction: Direction | None = None) -> pandas.DataFrame:
        """Returns states of paths: a row for each change. Columns of `FLOW-paths.csv`, and `direction`."""
        return self._of("paths", flow, direction)

    def decisions(self, flow: str | None = None, direction: Direction | None = None) -> pandas.DataFrame:
        """Returns decisions with their reasons. Columns of `FLOW-decisions.csv`, and `direction`."""
        return self._of("decisions", flow, direction)

    def packets(self) -> pandas.DataFrame:
        """Returns a row for each DATA chunk that was sent, received or dropped. Columns of `packets.csv`."""
        return self._frame("packets").copy(deep=False)

    def queues(self) -> pandas.DataFrame:
        """Returns the queue of each link every 10 ms. Columns of `queues.csv`. Raises `TraceError` for real sockets."""
        return self._frame("queues").copy(deep=False)

    def throughput(self, every_s: float = 1.0) -> pandas.DataFrame:
        """Returns the throughput of each path, in bins of `every_s` seconds from the beginning of the run.

        Columns: `time_s` (start of the bin), `flow`, `direction`, `path`, `throughput_kbps`, `counted`. It counts bytes
        of DATA chunks with headers, of each copy that was `received`. At real sockets it counts the chunks that the
        host itself has `sent`, as it does not know which arrived. The last bin ends with the run and may be shorter.
        """
        lines = [(sender.flow, sender.direction, path) for sender in self._trace.senders for path in sender.paths]
        return derived.throughput(self._frame("packets"), lines, self._trace.is_host, every_s, self.end_s)

    def tsn(self) -> pandas.DataFrame:
        """Returns TSNs that were sent, received and dropped, without wrapping at 2**32.

        Columns: `time_s`, `flow`, `direction`, `path`, `event`, `tsn`. A direction's first TSN is that on the wire.
        """
        return self._frame("tsn").copy(deep=False)

    def out_of_order(self) -> pandas.DataFrame:
        """Returns the offset of each received chunk to the chunk received just before it, over any path.

        Columns: `time_s`, `flow`, `direction`, `path`, `tsn`, `offset` (1 in order, negative for a late chunk). This is
        the measure of Xu et al., "CMT-QA: Quality-Aware Adaptive Concurrent Multipath Data Transfer in Heterogeneous
        Wireless Networks", figure 7: the TSN of the chunk received minus that of the chunk received before. At real
        sockets it is known for data of the peer only.
        """
        return derived.out_of_order(self._frame("tsn"))

    def retransmissions(self) -> pandas.DataFrame:
        """Returns chunks that were sent again.

        Columns: `time_s`, `flow`, `direction`, `path`, `tsn`, `transmission` (2 for the first retransmission).
        """
        return derived.retransmissions(self._frame("tsn"))

    def drops(self) -> pandas.DataFrame:
        """Returns dropped chunks. Columns: `time_s`, `flow`, `direction`, `path`, `cause`, `tsn`."""
        return derived.drops(self._frame("tsn"))

    def losses(self) -> pandas.DataFrame:
        """Returns chunks that their sender declared lost, rightly or spuriously.

        Columns: `time_s`, `flow`, `direction`, `path`, `tsn` (as on the wire), `cause`.
        """
        return derived.losses(self._frame("decisions"))

    def timeouts(self) -> pandas.DataFrame:
        """Returns expiries of T3. Columns: `time_s`, `flow`, `direction`, `path` (missing if no chunk was lost)."""
        return derived.timeouts(self._frame("decisions"))

    def blocked(self) -> pandas.DataFrame:
        """Returns intervals in which a window was open and data waited, but the peer's receive window was closed.

        Columns: `start_s`, `end_s`, `flow`, `direction`, `path`. The path is that of the hole, the last path of the
        earliest chunk that was not acknowledged. It is missing if nothing was outstanding. An interval that continues
        at the end of the run ends there; `rwnd_blocked_s` counts such an interval only up to the last event of the
        sender.
        """
        return derived.blocked(self._frame("decisions"), self.end_s)

    def sampled(self, every_s: float = 0.1) -> pandas.DataFrame:
        """Returns states of paths on a regular grid of `every_s` seconds, for figures of long runs.

        A path keeps a state until its next row in `paths`. The rows are sorted by flow and path; a path has no rows
        before its first one.
        """
        return derived.sampled(self._frame("paths"), every_s, self.end_s)

    def _of(self, kind: str, flow: str | None, direction: str | None) -> pandas.DataFrame:
        frame = self._frame(kind)
        for column, wanted in (("flow", flow), ("direction", direction)):
            if wanted is None:
                continue
            known = list(dict.fromkeys(getattr(sender, column) for sender in self._trace.senders))
            if wanted not in known:
                raise TraceError(f"{self.folder}: no {column} {wanted!r} sends data here; known: {', '.join(known)}")
            frame = frame[frame[column] == wanted]
        return frame.copy(deep=False) if frame is self._frame(kind) else frame.reset_index(drop=True)

    def _frame(self, kind: str) -> pandas.DataFrame:
        readers: dict[str, Callable[[], pandas.DataFrame]] = {
            "paths": lambda: tables.read_paths(self._trace),
            "decisions": lambda: tables.read_decisions(self._trace),
            "packets": lambda: tables.read_packets(self._trace),
            "queues": lambda: tables.read_queues(self._trace),
            "tsn": lambda: derived.unwrapped(self._frame("packets")),
        }
        if kind not in self._frames:
            self._frames[kind] = readers[kind]()
        return self._frames[kind]

    def __repr__(self) -> str:
        scheme, seed = self.manifest.get("scheme"), self.manifest.get("seed")
        seed_text = "" if seed is None else f" seed={seed}"
        return f"<Series {self.folder} scheme={scheme}{seed_text}{'' if self.complete else ' incomplete'}>"


def read_trace(folder: str | os.PathLike[str]) -> Series:
    """Opens the traces in a folder that `run(..., trace=DIR)`, `anabranch run --trace DIR` or a transfer wrote.

    The folder is that of the run, or one that contains only that one. Raises `TraceError` if it is no trace.
    """
    return Series(folder)
