"""Reader of qlog files: JSON text sequences and JSON lines event by event, whole JSON documents at once.

Size and nesting of each record are bounded, since files may come from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from anabranch.errors import QlogError
from anabranch.text_file import BYTE_ORDER_MARK

MAX_DOCUMENT_BYTES = 64 * 2**20
"""Maximum size of a file that is one JSON document, which is read as a whole."""

MAX_RECORD_BYTES = 2**20
"""Maximum size of one record of a sequence, which may have any number of records."""

_SEPARATOR = b"\x1e"


@dataclass(frozen=True, slots=True)
class Head:
    """Header of a trace, which applies to all its events. `number` counts the traces of the file from 1."""

    file: Path
    number: int
    trace: Mapping[str, Any]

    @property
    def common(self) -> Mapping[str, Any]:
        """Fields that all events share."""
        return _object(self.trace.get("common_fields"))

    @property
    def vantage(self) -> Mapping[str, Any]:
        """Description of the endpoint that wrote the trace."""
        return _object(self.trace.get("vantage_point"))


@dataclass(frozen=True, slots=True)
class Record:
    """Event, and its place in the file."""

    head: Head
    where: str
    event: Mapping[str, Any]

    def refuse(self, reason: str) -> NoReturn:
        """Raises `QlogError` with file and place."""
        raise QlogError(f"{self.head.file}: {self.where}: {reason}")


def read_records(file: Path) -> Iterator[Record]:
    """Yields the events of a file. Raises `QlogError` with file and line unless it is qlog of version 0.3 or later.

    The last record of a sequence may be cut off, for example if its writer was killed. It is skipped.
    """
    try:
        with file.open("rb") as opened:
            begin = len(BYTE_ORDER_MARK) if opened.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
            opened.seek(begin)
            start = opened.read(1)
            opened.seek(begin)
            if start == _SEPARATOR:
                yield from _sequence(file, _separated(file, opened))
                return
            first = opened.readline(MAX_RECORD_BYTES)
            opened.seek(begin)
            if _is_object(first):
                yield from _sequence(file, _lines(file, opened))
            else:
                yield from _document(file, opened)
    except OSError as error:
        raise QlogError(f"{file}: {error.strerror or error}") from error


def _sequence(file: Path, texts: Iterator[tuple[int, bytes, bool]]) -> Iterator[Record]:
    """Yields the events of records. The first record is the header."""
    head = None
    for line, text, is_last in texts:
        try:
            value = _parsed(file, text, line)
        except QlogError:
            if is_last and head is not None and not text.endswith(b"\n"):
                return
            raise
        where = f"line {line}"
        if not isinstance(value, dict):
            raise QlogError(f"{file}: {where}: expected an object")
        if head is None:
            # A first record with `traces` is a complete document in one line.
            if "traces" in value:
                yield from _traces(file, value)
                return
            # The title of a sequence is beside its only trace.
            head = Head(file, 1, {"title": value.get("title"), **_object(value.get("trace"))})
            _check_version(file, value)
        else:
            yield Record(head, where, value)
    if head is None:
        raise QlogError(f"{file}: is empty")


def _separated(file: Path, opened: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """Yields records of RFC 7464, each with its line and `True` for the last one."""
    pending: tuple[int, bytes] | None = None
    for line, text in _bounded_lines(file, opened):
        if not text.startswith(_SEPARATOR):
            begun, before = pending if pending is not None else (line, b"")
            pending = begun, _joined(file, begun, before, text)
            continue
        if pending is not None and pending[1].strip():
            yield *pending, False
        pending = line, text[1:]
    if pending is not None and pending[1].strip():
        yield *pending, True


def _lines(file: Path, opened: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    pending: tuple[int, bytes] | None = None
    for line, text in _bounded_lines(file, opened):
        if not text.strip():
            continue
        if pending is not None:
            yield *pending, False
        pending = line, text
    if pending is not None:
        yield *pending, True


def _bounded_lines(file: Path, opened: BinaryIO) -> Iterator[tuple[int, bytes]]:
    line = 0
    while text := opened.readline(MAX_RECORD_BYTES + 1):
        line += 1
        yield line, _joined(file, line, b"", text)


def _joined(file: Path, line: int, before: bytes, text: bytes) -> bytes:
    if len(before) + len(text) > MAX_RECORD_BYTES:
        raise QlogError(f"{file}: line {line}: a record is longer than {MAX_RECORD_BYTES // 2**20} MiB")
    return before + text


def _document(file: Path, opened: BinaryIO) -> Iterator[Record]:
    text = opened.read(MAX_DOCUMENT_BYTES + 1)
    if len(text) > MAX_DOCUMENT_BYTES:
        raise QlogError(
            f"{file}: is one JSON document of more than {MAX_DOCUMENT_BYTES // 2**20} MiB: have it written as a JSON "
            "text sequence (JSON-SEQ), which is read event by event"
        )
    if not text.strip():
        raise QlogError(f"{file}: is empty")
    value = _parsed(file, text, 1)
    if not isinstance(value, dict):
        raise QlogError(f"{file}: expected an object with `traces`")
    yield from _traces(file, value)


def _traces(file: Path, value: Mapping[str, Any]) -> Iterator[Record]:
    _check_version(file, value)
    traces = value.get("traces")
    if not isinstance(traces, list):
        raise QlogError(f"{file}: is not a qlog: it has no list of `traces`")
    for number, trace in enumerate(traces, 1):
        events = _object(trace).get("events")
        # In a trace that could not be written, a description of the error replaces the events.
        if events is None and "error_description" in _object(trace):
            continue
        if not isinstance(events, list):
            raise QlogError(f"{file}: trace {number}: has no list of `events`")
        head = Head(file, number, {key: value for key, value in trace.items() if key != "events"})
        for place, event in enumerate(events, 1):
            record = Record(head, f"trace {number}, event {place}", _object(event))
            if not isinstance(event, dict):
                record.refuse("expected an object; logs before qlog 0.3 had lists, and are not read")
            yield record


def _check_version(file: Path, value: Mapping[str, Any]) -> None:
    version = value.get("qlog_version")
    if "file_schema" in value or (isinstance(version, str) and version.startswith("0.") and version not in _OLD):
        return
    shown = repr(version)[:40]
    raise QlogError(f"{file}: expected qlog 0.3 or later, which has `qlog_version` or `file_schema`; found {shown}")


_OLD = ("0.0", "0.1", "0.2")


def _parsed(file: Path, text: bytes, line: int) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise QlogError(f"{file}: line {at}, column {error.colno}: no JSON: {error.msg}") from error
    except RecursionError as error:
        raise QlogError(f"{file}: line {line}: is nested too deeply") from error
    # Invalid UTF-8, numbers with thousands of digits, and NaN.
    except ValueError as error:
        raise QlogError(f"{file}: line {line}: no JSON: {error}") from error


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
