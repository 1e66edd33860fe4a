"""Model of a timeline. Times are seconds since the run began, and all arrays of one object have the same length."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Channel = Literal["throughput", "received", "cwnd", "ssthresh", "outstanding", "srtt", "queue"]
EventKind = Literal["dropped", "lost", "retransmission", "timeout"]
SpanKind = Literal["blocked", "state"]

Seconds = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Track:
    """One end that sends data in one run. A line on the timeline belongs to a track and a path.

    `run` identifies the run, `sender` the end within the run; `None` if it is the only one. `first_tsn` is the first
    TSN of the association on the wire, from which those of events count. `numbered` is the unit that the numbers of
    events count. `bin_s` is the width of the bins of throughput.
    """

    run: str
    sender: str | None
    scheme: str
    flow: str
    direction: str
    paths: tuple[str, ...]
    end_s: float
    first_tsn: int = 0
    numbered: Literal["TSN", "packet"] = "TSN"
    bin_s: float = 0.1

    @property
    def label(self) -> str:
        """Name of the track on one line."""
        return self.run if self.sender is None else f"{self.run}: {self.sender}"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Value that is constant until the next time, of one path and sender, or of a link.

    `tracks` are the positions of its senders, `paths` the names of its paths: more than one for a shared link, whose
    name is `link`. `total` counts the changes before thinning.
    """

    channel: Channel
    tracks: tuple[int, ...]
    paths: tuple[str, ...]
    times_s: Seconds
    values: Values
    total: int
    link: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events of one path of a sender. `details` are positions in `words`.

    `tsns` count from the first of the association; `None` for events that concern no chunk.
    """

    kind: EventKind
    track: int
    path: str | None
    times_s: Seconds
    tsns: npt.NDArray[np.uint32] | None
    details: npt.NDArray[np.uint8]
    words: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Periods of one condition: the peer's window closed by a hole on a path, or a path in a state.

    `total` and `total_s` count the spans and their seconds before thinning.
    """

    kind: SpanKind
    track: int
    path: str | None
    starts_s: Seconds
    ends_s: Seconds
    total: int
    total_s: float
    state: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Scheduling decisions about new data in bins of `bin_s` from second 0 on.

    `counts` has a row for each of `ways`: the paths, and `wait` last. `reasons` and `refused` list the most frequent
    rules and refusals of each way and bin with their number.
    """

    track: int
    bin_s: float
    ways: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    reasons: list[list[list[tuple[str, int]]]]
    refused: list[list[list[tuple[str, int]]]]


@dataclass(frozen=True, slots=True)
class Mark:
    """Change of a link by the scenario at a moment."""

    time_s: float
    text: str


@dataclass(slots=True)
class Timeline:
    """Several runs on one axis of time. `notes` report missing content."""

    tracks: list[Track] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    events: list[Events] = field(default_factory=list)
    spans: list[Spans] = field(default_factory=list)
    shares: list[Shares] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all senders, in the order of their first occurrence."""
        return tuple(dict.fromkeys(path for track in self.tracks for path in track.paths))

    @property
    def end_s(self) -> float:
        """End of the longest run, in seconds."""
        return max((track.end_s for track in self.tracks), default=0.0)
