"""What a timeline is made of. Times are seconds since the run began, and arrays of one object have one length."""

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
    """One end that sends data in one run: what a line on the timeline belongs to besides its path.

    `run` tells the run from others, `sender` the end from others of the run; `None` if it is the only one. `first_tsn`
    is the first TSN of the association on the wire, from which those of events count. `numbered` is what has the
    numbers of events. `bin_s` is the width of the bins in which throughput is counted.
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
        """What it is called on one line."""
        return self.run if self.sender is None else f"{self.run}: {self.sender}"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A value that stays as it is until the next time: of one path and sender, or of a link.

    `tracks` are the positions of the senders that it belongs to, `paths` the names of its paths: more than one for a
    shared link, whose name is `link`. `total` counts the changes that there were before any were thinned out.
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
    """What happened at single moments to one path of a sender: `details` are positions in `words`.

    `tsns` count from the first of the association; `None` for what is about no chunk.
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
    """Times during which something held: the peer's window closed by a hole on a path, or a path in a state.

    `total` and `total_s` count the spans and their seconds before any were left out.
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
    """Decisions about new data in bins of `bin_s` from second 0 on.

    `counts` has a row for each of `ways`: the paths, and `wait` last. `reasons` and `refused` say for each way and bin
    the most frequent rules and refusals with their number.
    """

    track: int
    bin_s: float
    ways: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    reasons: list[list[list[tuple[str, int]]]]
    refused: list[list[list[tuple[str, int]]]]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that the scenario does to a link at a moment."""

    time_s: float
    text: str


@dataclass(slots=True)
class Timeline:
    """Several runs on one axis of time. `notes` say what is missing from them."""

    tracks: list[Track] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    events: list[Events] = field(default_factory=list)
    spans: list[Spans] = field(default_factory=list)
    shares: list[Shares] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all senders, in the order in which they first come."""
        return tuple(dict.fromkeys(path for track in self.tracks for path in track.paths))

    @property
    def end_s(self) -> float:
        """When the last run ended."""
        return max((track.end_s for track in self.tracks), default=0.0)
