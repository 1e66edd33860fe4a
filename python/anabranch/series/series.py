"""The traces of one run."""

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
    """The traces of one run, or of associations on real sockets, as data frames.

    The book's chapter "Traces and captures" says what each column means. Frames are read when they are first asked for
    and kept; words are categories, times are seconds since the run began. Frames of `paths` and `decisions`, and what
    follows from them, have a `direction` beside the columns of the file, which is `forward` for what the left host
    sends and `reverse` for what the right one does.

    >>> from anabranch.run import run
    >>> series = run("scenarios/two-path.toml", "cmt").series
    >>> throughput = series.throughput(every_s=20.0)
    >>> throughput.loc[throughput["path"] == "path-2", "time_s"].tolist()
    [0.0, 20.0, 40.0]

    A run that was interrupted, or files that were cut off, are read as far as their last complete row: `complete` is
    false then, and `notes` says why. Raises `TraceError` if the folder is not a trace, or one of another version;
    reading a frame raises it if its file is missing, or has what no run writes.
    """

    def __init__(self, folder: str | os.PathLike[str], *, keep: object = None) -> None:
        self._trace: TraceFolder = open_folder(folder)
        self._frames: dict[str, pandas.DataFrame] = {}
        # What has to live as long as the files are needed.
        self._keep = keep

    @property
    def folder(self) -> Path:
        """Where the traces are."""
        return self._trace.path

    @property
    def manifest(self) -> dict[str, Any]:
        """`run.toml`: `scheme`, `seed`, `profile`, a list of `sender` and more."""
        return self._trace.manifest

    @property
    def result(self) -> dict[str, Any] | None:
        """`result.json`: `ended_s`, `file_bytes`, and `result` with the figures; `None` if the run did not end."""
        return self._trace.result

    @property
    def complete(self) -> bool:
        """Whether the run ended, and all files are as it wrote them."""
        return not self.notes

    @property
    def notes(self) -> list[str]:
        """Why the traces are not complete."""
        return self._trace.notes()

    @property
    def end_s(self) -> float:
        """Seconds from the beginning of the run to its end, or to the last row of traces that are not complete."""
        if self.result is not None:
            return float(self.result["ended_s"])
        frames = (self._frame("packets"), self._frame("paths"), self._frame("decisions"))
        return max((float(frame["time_s"].iloc[-1]) for frame in frames if len(frame)), default=0.0)

    def paths(self, flow: str | None = None, direction: Direction | None = None) -> pandas.DataFrame:
        """How paths stood: a row whenever one has changed. Columns of `FLOW-paths.csv`, and `direction`."""
        return self._of("paths", flow, direction)

    def decisions(self, flow: str | None = None, direction: Direction | None = None) -> pandas.DataFrame:
        """What was decided, and why. Columns of `FLOW-decisions.csv`, and `direction`."""
        return self._of("decisions", flow, direction)

    def packets(self) -> pandas.DataFrame:
        """A row for each DATA chunk where it left, arrived or was dropped. Columns of `packets.csv`."""
        return self._frame("packets").copy(deep=False)

    def queues(self) -> pandas.DataFrame:
        """The queue of each link every 10 ms. Columns of `queues.csv`. Raises `TraceError` for real sockets."""
        return self._frame("queues").copy(deep=False)

    def throughput(self, every_s: float = 1.0) -> pandas.DataFrame:
        """What arrived over each path, in bins of `every_s` seconds from the beginning of the run.

        Columns: `time_s` (when the bin begins), `flow`, `direction`, `path`, `throughput_kbps`, `counted`. Counted are
        the bytes of DATA chunks, headers included, of each copy that was `received`. At real sockets, what the host
        itself has `sent`, since it cannot know what arrived. The last bin ends with the run and may be shorter.
        """
        lines = [(sender.flow, sender.direction, path) for sender in self._trace.senders for path in sender.paths]
        return derived.throughput(self._frame("packets"), lines, self._trace.is_host, every_s, self.end_s)

    def tsn(self) -> pandas.DataFrame:
        """TSNs as they were sent, received and dropped, counted on beyond 2**32.

        Columns: `time_s`, `flow`, `direction`, `path`, `event`, `tsn`. A direction's first TSN is as on the wire.
        """
        return self._frame("tsn").copy(deep=False)

    def out_of_order(self) -> pandas.DataFrame:
        """How far each chunk that arrived is from the one that arrived just before it, over whichever path.

        Columns: `time_s`, `flow`, `direction`, `path`, `tsn`, `offset` (1 for what is in order, negative for what comes
        late). So Xu et al. measure it, "CMT-QA: Quality-Aware Adaptive Concurrent Multipath Data Transfer in
        Heterogeneous Wireless Networks", figure 7: the TSN of the chunk received minus that of the latest one before.
        At real sockets this is known for what the peer sends.
        """
        return derived.out_of_order(self._frame("tsn"))

    def retransmissions(self) -> pandas.DataFrame:
        """Chunks that were sent although they had been sent before.

        Columns: `time_s`, `flow`, `direction`, `path`, `tsn`, `transmission` (2 for the first repeat).
        """
        return derived.retransmissions(self._frame("tsn"))

    def drops(self) -> pandas.DataFrame:
        """Chunks that never arrived. Columns: `time_s`, `flow`, `direction`, `path`, `cause`, `tsn`."""
        return derived.drops(self._frame("tsn"))

    def losses(self) -> pandas.DataFrame:
        """Chunks that their sender declared lost, rightly or not.

        Columns: `time_s`, `flow`, `direction`, `path`, `tsn` (as on the wire), `cause`.
        """
        return derived.losses(self._frame("decisions"))

    def timeouts(self) -> pandas.DataFrame:
        """Expiries of T3. Columns: `time_s`, `flow`, `direction`, `path`, which is missing if no chunk was lost."""
        return derived.timeouts(self._frame("decisions"))

    def blocked(self) -> pandas.DataFrame:
        """Intervals in which a window was open and data waited, but the peer's receive window was closed.

        Columns: `start_s`, `end_s`, `flow`, `direction`, `path`, which is that of the hole: on which the earliest chunk
        that was not acknowledged had been sent last. It is missing if nothing was outstanding. An interval that goes on
        when the run ends ends with it; `rwnd_blocked_s` counts that one up to the last move of the sender only.
        """
        return derived.blocked(self._frame("decisions"), self.end_s)

    def sampled(self, every_s: float = 0.1) -> pandas.DataFrame:
        """How paths stood every so many seconds: as `paths`, but on a regular grid, for figures of long runs.

        Between two rows of `paths` a path stays as the first of them says. Flow by flow and path by path; a path has no
        rows before its first one.
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
    """The traces in a folder that `run(..., trace=DIR)`, `anabranch run --trace DIR` or a transfer wrote.

    The folder is that of the run, or one in which there is only that one. Raises `TraceError` if it is not a trace.
    """
    return Series(folder)
