"""Connections of qlog files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.errors import QlogError
from anabranch.reporting.qlog.connection import Connection
from anabranch.reporting.qlog.fields import word_of
from anabranch.reporting.qlog.records import Head, Record, read_records

MAX_EVENTS = 1_000_000
"""Maximum number of events that are read, of all files together."""

MAX_CONNECTIONS = 40
"""Maximum number of connections that are shown. Further ones are only counted."""

ENDINGS = (".qlog", ".sqlog")

_LONGEST_S = 30 * 24 * 3600.0
# Up to qlog 0.3, times were absolute by default. Both count from the first event here.
_DELTAS = ("delta", "relative_to_previous_event")


@dataclass(slots=True)
class Logs:
    """Connections of all files. `notes` list omitted parts."""

    connections: list[Connection] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Clock:
    """Clock of a trace, in seconds since its first event."""

    is_delta: bool
    first_ms: float | None = None
    previous_ms: float = 0.0

    def time_s(self, record: Record) -> float:
        time = record.event.get("time")
        if isinstance(time, bool) or not isinstance(time, (int, float)) or not abs(time) < 2**53:
            record.refuse(f"`time`: expected milliseconds, found {repr(time)[:40]}")
        time_ms = self.previous_ms + time if self.is_delta else float(time)
        self.previous_ms = time_ms
        if self.first_ms is None:
            self.first_ms = time_ms
        time_s = (time_ms - self.first_ms) / 1000
        if time_s > _LONGEST_S:
            record.refuse("`time`: is more than 30 days after the first event")
        # A thread may record an event late, so that its time is before that of the first one.
        return max(time_s, 0.0)


def log_files(source: Path) -> list[Path]:
    """Returns the file, or the logs in a folder. Raises `QlogError` if there are none."""
    if not source.is_dir():
        return [source]
    files = sorted(file for file in source.iterdir() if file.suffix in ENDINGS and file.is_file())
    if not files:
        raise QlogError(f"{source}: has no files whose names end with {' or '.join(ENDINGS)}")
    return files


def read_logs(files: Sequence[Path]) -> Logs:
    """Returns the connections of all files. Raises `QlogError` with file and line for invalid content."""
    logs = Logs()
    connections: dict[tuple[Path, int, str], Connection] = {}
    clocks: dict[tuple[Path, int], _Clock] = {}
    left: set[tuple[Path, int, str]] = set()
    for number, record in enumerate(_all(files)):
        if number == MAX_EVENTS:
            logs.notes.append(f"Only the first {MAX_EVENTS} events were read")
            break
        head = record.head
        clock = clocks.setdefault((head.file, head.number), _Clock(_time_format(head) in _DELTAS))
        time_s = clock.time_s(record)
        key = (head.file, head.number, _group(record))
        if key not in connections:
            if len(connections) >= MAX_CONNECTIONS:
                left.add(key)
                continue
            connections[key] = Connection(_group(record), scheme=_writer(record))
        _take(connections[key], record, time_s)
    if left:
        logs.notes.append(f"Only the first {MAX_CONNECTIONS} connections are shown; {len(left)} more were omitted")
    _name(connections, len(files) > 1)
    logs.connections = list(connections.values())
    return logs


def _all(files: Iterable[Path]) -> Iterable[Record]:
    for file in files:
        yield from read_records(file)


def _take(connection: Connection, record: Record, time_s: float) -> None:
    name = word_of(record, record.event.get("name"), "name")
    category, _, what = name.rpartition(":")
    connection.is_sctp = connection.is_sctp or category == "sctp"
    connection.add(record, what, time_s)


def _time_format(head: Head) -> Any:
    return head.common.get("time_format")


def _group(record: Record) -> str:
    """Returns the identifier of a connection within its trace."""
    for where in (record.event, record.head.common):
        for key in ("group_id", "ODCID"):
            if isinstance(where.get(key), (str, int)):
                return str(where[key])[:80]
    return ""


def _writer(record: Record) -> str:
    """Returns the name of the implementation, if the log has it."""
    for value in (record.head.vantage.get("name"), record.head.trace.get("title")):
        if isinstance(value, str) and value:
            return value[:80]
    return "unknown"


def _name(connections: dict[tuple[Path, int, str], Connection], several_files: bool) -> None:
    """Names connections uniquely: by the file, the trace, the connection."""
    for (file, trace, group), connection in connections.items():
        beside = [key for key in connections if key[0] == file]
        parts = [file.name] if several_files or len(connections) == 1 else []
        if len({key[1] for key in beside}) > 1:
            parts.append(f"trace {trace}")
        if len(beside) > 1 and group:
            parts.append(group)
        connection.name = ", ".join(parts) or file.name
