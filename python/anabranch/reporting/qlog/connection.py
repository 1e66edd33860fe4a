"""State of one connection, or association, collected from its events."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.reporting.qlog.fields import name_of, number_of, object_of, whole_of, word_of
from anabranch.reporting.qlog.records import Record
from anabranch.reporting.timeline.model import Channel, EventKind

MAX_PATHS = 32
"""Maximum number of paths of a connection. A log with more is refused."""

# Names of each metric in QUIC's events, in aioquic and in our own, with the divisor that gives the unit shown.
_METRICS: tuple[tuple[Channel, tuple[str, ...], float], ...] = (
    ("cwnd", ("congestion_window", "cwnd", "cwnd_bytes"), 1024),
    ("ssthresh", ("ssthresh", "ssthresh_bytes"), 1024),
    ("outstanding", ("bytes_in_flight", "outstanding_bytes"), 1024),
    ("srtt", ("smoothed_rtt", "srtt_ms"), 1),
)
_MAX_WORDS = 200
_OTHER = "other"


@dataclass(slots=True)
class Points:
    """Values with their times, in the order of the file."""

    times_s: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, time_s: float, value: float) -> None:
        """Appends a value."""
        self.times_s.append(time_s)
        self.values.append(value)


@dataclass(slots=True)
class EventSeries:
    """Events of one kind. A number is that of the packet or the TSN; -1 for an event that has none."""

    times_s: array[float] = field(default_factory=lambda: array("d"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("B"))
    known: dict[str, int] = field(default_factory=dict)

    def add(self, time_s: float, number: int | None, word: str) -> None:
        """Appends an event."""
        if word not in self.known and len(self.known) >= _MAX_WORDS:
            word = _OTHER
        self.times_s.append(time_s)
        self.numbers.append(-1 if number is None else number)
        self.words.append(self.known.setdefault(word, len(self.known)))


@dataclass(slots=True)
class PathLog:
    """Log of one path. `sent` and `received` are sizes of packets, in bytes."""

    metrics: dict[Channel, Points] = field(default_factory=dict)
    sent: Points = field(default_factory=Points)
    received: Points = field(default_factory=Points)
    happened: dict[EventKind, EventSeries] = field(default_factory=dict)
    states: list[tuple[float, str]] = field(default_factory=list)

    def add(self, kind: EventKind, time_s: float, number: int | None, word: str = "") -> None:
        """Records an event."""
        self.happened.setdefault(kind, EventSeries()).add(time_s, number, word)


@dataclass(slots=True)
class DecisionEvent:
    """Scheduling decision about new data, with the columns of `FLOW-decisions.csv`."""

    time_s: float
    decision: str
    path: str
    reason: str
    refused: str


@dataclass(slots=True)
class Connection:
    """Connection of one trace. Times are seconds since the first event of the trace."""

    name: str
    is_sctp: bool = False
    scheme: str = ""
    end_s: float = 0.0
    paths: dict[str, PathLog] = field(default_factory=dict)
    decisions: list[DecisionEvent] = field(default_factory=list)
    blocked: list[tuple[float, str | None]] = field(default_factory=list)
    first_tsn: int | None = None
    _sent_tsns: set[int] = field(default_factory=set)

    def add(self, record: Record, name: str, time_s: float) -> None:
        """Records an event. Ignores events of other kinds."""
        data = object_of(record, record.event.get("data"), "data")
        self.end_s = max(self.end_s, time_s)
        if name in _TAKERS:
            _TAKERS[name](self, record, data, time_s)

    def path_of(self, record: Record, data: Mapping[str, Any]) -> PathLog:
        """Returns the path of an event. QUIC has one, with identifier 0, unless it uses the multipath extension."""
        name = name_of(record, _path(record, data), "path")
        if name not in self.paths and len(self.paths) >= MAX_PATHS:
            record.refuse(f"a connection with more than {MAX_PATHS} paths is not shown")
        return self.paths.setdefault(name, PathLog())

    def _started(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        self.scheme = word_of(record, data.get("scheme"), "scheme") or self.scheme

    def _sent(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        path = self.path_of(record, data)
        path.sent.add(time_s, _length(record, data))
        for chunk in _chunks(data):
            tsn = whole_of(record, chunk.get("tsn"), "tsn")
            if tsn is None:
                continue
            self.first_tsn = tsn if self.first_tsn is None else self.first_tsn
            if tsn in self._sent_tsns:
                path.add("retransmission", time_s, tsn)
            self._sent_tsns.add(tsn)

    def _received(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        self.path_of(record, data).received.add(time_s, _length(record, data))

    def _dropped(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        word = word_of(record, data.get("trigger") or data.get("reason"), "reason")
        self.path_of(record, data).add("dropped", time_s, _number(record, data), word)

    def _lost(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        trigger = word_of(record, data.get("trigger") or data.get("cause"), "trigger")
        header = data.get("header")
        # Each packet number space begins with 0.
        space = word_of(record, header.get("packet_type"), "packet_type") if isinstance(header, dict) else ""
        word = ", ".join(part for part in (trigger, space) if part)
        self.path_of(record, data).add("lost", time_s, _number(record, data), word)

    def _metrics(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        path = self.path_of(record, data)
        for channel, keys, divisor in _METRICS:
            key = next((key for key in keys if key in data), None)
            value = number_of(record, data[key], key) if key is not None else None
            if value is not None:
                path.metrics.setdefault(channel, Points()).add(time_s, value / divisor)

    def _timer(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        if self.is_sctp or data.get("event_type") == "expired":
            word = word_of(record, data.get("timer_type") or data.get("timer"), "timer_type")
            self.path_of(record, data).add("timeout", time_s, None, word)

    def _state(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        state = word_of(record, data.get("state"), "state")
        self.path_of(record, data).states.append((time_s, state.title().replace("_", "")))

    def _closed(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        path = record.event.get("path")
        self.blocked.append((time_s, "" if path is None else name_of(record, path, "path")))

    def _opened(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        self.blocked.append((time_s, None))

    def _decided(self, record: Record, data: Mapping[str, Any], time_s: float) -> None:
        paths = [name_of(record, path, "paths") for path in _list(data.get("paths"))]
        for path in paths:
            self.paths.setdefault(path, PathLog())
        if len(self.paths) > MAX_PATHS:
            record.refuse(f"an association with more than {MAX_PATHS} paths is not shown")
        refused = [
            f"{name_of(record, each.get('path'), 'path')}:{word_of(record, each.get('reason'), 'reason')}"
            for each in _list(data.get("refused"))
            if isinstance(each, dict)
        ]
        decision = word_of(record, data.get("decision"), "decision")
        rule = word_of(record, data.get("rule"), "rule")
        self.decisions.append(DecisionEvent(time_s, decision, " ".join(paths) or "wait", rule, " ".join(refused)))


_TAKERS = {
    "association_started": Connection._started,
    "packet_sent": Connection._sent,
    "packet_received": Connection._received,
    "packet_dropped": Connection._dropped,
    "packet_lost": Connection._lost,
    "metrics_updated": Connection._metrics,
    "congestion_window": Connection._metrics,
    "loss_timer_updated": Connection._timer,
    "timer_expired": Connection._timer,
    "path_state": Connection._state,
    "peer_window_closed": Connection._closed,
    "peer_window_opened": Connection._opened,
    "scheduler_decision": Connection._decided,
}


def _path(record: Record, data: Mapping[str, Any]) -> Any:
    event = record.event
    for where, key in ((event, "path"), (event, "path_id"), (data, "path_id"), (data.get("header"), "path_id")):
        if isinstance(where, dict) and where.get(key) is not None:
            return where[key]
    return 0


def _length(record: Record, data: Mapping[str, Any]) -> float:
    """Returns the size of a packet in bytes; 0 if the event has none."""
    for where, key in ((data.get("raw"), "length"), (data.get("header"), "packet_size"), (data, "length")):
        if isinstance(where, dict) and key in where:
            return number_of(record, where[key], key) or 0.0
    return 0.0


def _number(record: Record, data: Mapping[str, Any]) -> int | None:
    for where, key in ((data, "tsn"), (data.get("header"), "packet_number"), (data, "packet_number")):
        if isinstance(where, dict) and key in where:
            return whole_of(record, where[key], key)
    return None


def _chunks(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [chunk for chunk in _list(data.get("chunks")) if isinstance(chunk, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
