"""CSV files of a trace as data frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pandas
import pyarrow
from pyarrow import csv

from anabranch.errors import TraceError
from anabranch.series.folder import PACKET_FILE, QUEUE_FILE, TraceFolder, attempt

NUMBER = pyarrow.float64()
COUNT = pyarrow.int64()
WORD = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())

DIRECTIONS = ("forward", "reverse")
LONGEST_HEADER = 1 << 12
"""Maximum size of a header in bytes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a kind of file."""

    columns: dict[str, pyarrow.DataType]
    optional: frozenset[str] = field(default=frozenset())
    """Columns in which a field may be empty."""


PATHS = Layout(
    {
        "time_s": NUMBER,
        "flow": WORD,
        "path": WORD,
        "state": WORD,
        "cwnd_bytes": COUNT,
        "ssthresh_bytes": COUNT,
        "outstanding_bytes": COUNT,
        "lost_unsent_bytes": COUNT,
        "partial_bytes_acked": COUNT,
        "srtt_ms": NUMBER,
        "rttvar_ms": NUMBER,
        "rto_ms": NUMBER,
        "error_count": COUNT,
        "peer_window_bytes": COUNT,
        "queued_bytes": COUNT,
    },
    optional=frozenset({"srtt_ms", "rttvar_ms"}),
)
DECISIONS = Layout(
    {
        "time_s": NUMBER,
        "flow": WORD,
        "decision": WORD,
        "path": WORD,
        "tsn": COUNT,
        "detail": WORD,
        "reason": WORD,
        "figure": WORD,
        "value": NUMBER,
        "refused": WORD,
        "cwnd_before_bytes": COUNT,
        "cwnd_bytes": COUNT,
        "ssthresh_before_bytes": COUNT,
        "ssthresh_bytes": COUNT,
    },
    optional=frozenset(
        {
            *("path", "tsn", "detail", "reason", "figure", "value", "refused"),
            *("cwnd_before_bytes", "cwnd_bytes", "ssthresh_before_bytes", "ssthresh_bytes"),
        }
    ),
)
PACKETS = Layout(
    {
        "time_s": NUMBER,
        "flow": WORD,
        "direction": WORD,
        "path": WORD,
        "event": WORD,
        "tsn": COUNT,
        "chunk_bytes": COUNT,
    }
)
QUEUES = Layout({"time_s": NUMBER, "link": WORD, "queue_packets": COUNT, "queue_bytes": COUNT})


def read_paths(folder: TraceFolder) -> pandas.DataFrame:
    """Returns the states of the paths of all senders, in the order of time."""
    return of_senders(folder, PATHS, [sender.path_file for sender in folder.senders])


def read_decisions(folder: TraceFolder) -> pandas.DataFrame:
    """Returns the decisions of all senders, in the order of time."""
    frame = of_senders(folder, DECISIONS, [sender.decision_file for sender in folder.senders])
    return frame.astype({"tsn": "Int64"})


def read_packets(folder: TraceFolder) -> pandas.DataFrame:
    """Returns every DATA chunk that was sent, received or dropped."""
    return as_frame(folder, read(folder, PACKET_FILE, PACKETS))


def read_queues(folder: TraceFolder) -> pandas.DataFrame:
    """Returns the queue of every link each 10 ms."""
    if folder.is_host:
        raise TraceError(f"{folder.path}: traced at one host, which does not know the queues of links")
    return as_frame(folder, read(folder, QUEUE_FILE, QUEUES))


def of_senders(folder: TraceFolder, layout: Layout, files: list[str]) -> pandas.DataFrame:
    """Returns the files of all senders in one table, with the direction."""
    tables: list[pyarrow.Table] = []
    shared = next((file for index, file in enumerate(files) if file in files[:index]), None)
    if shared is not None:
        raise TraceError(f"{folder.path / shared}: two senders wrote this file: rename a flow and trace the run again")
    for sender, file in zip(folder.senders, files, strict=True):
        table = read(folder, file, layout)
        code = numpy.zeros(len(table), dtype=numpy.int32)
        direction = pyarrow.DictionaryArray.from_arrays(code, [sender.direction])
        tables.append(table.add_column(2, "direction", direction))
    if not tables:
        raise TraceError(f"{folder.path}: the run has no flow that sends data")
    joined = pyarrow.concat_tables(tables, promote_options="default").unify_dictionaries()
    frame = as_frame(folder, joined)
    return frame if len(tables) == 1 else frame.sort_values("time_s", kind="stable", ignore_index=True)


def read(folder: TraceFolder, file: str, layout: Layout) -> pyarrow.Table:
    """Returns the complete rows of a file. Unknown columns are kept.

    Raises `TraceError` if the file is missing, lacks a column, or has an invalid row.
    """
    path = folder.path / file
    limit = folder.readable_bytes(file)
    if limit == 0:
        return pyarrow.schema(list(layout.columns.items())).empty_table()
    with attempt(path, lambda: pyarrow.memory_map(str(path))) as mapped:
        rows = mapped.read_buffer(limit)
        check_header(folder, file, rows[:LONGEST_HEADER].to_pybytes().split(b"\n")[0], layout)
        # An empty field is missing, but a path may have the name "null" or "NA".
        convert = csv.ConvertOptions(column_types=layout.columns, null_values=[""], strings_can_be_null=True)
        try:
            table = csv.read_csv(pyarrow.BufferReader(rows), convert_options=convert)
        except pyarrow.ArrowInvalid as error:
            raise TraceError(f"{path}: {error}; trace the run again") from error
    check_rows(path, table, layout)
    return table


def check_rows(path: Path, table: pyarrow.Table, layout: Layout) -> None:
    """Raises `TraceError` unless each row is valid."""
    for name in layout.columns:
        if name not in layout.optional and table[name].null_count > 0:
            line = int(table[name].is_null().to_numpy().argmax()) + 2
            raise TraceError(f"{path}, line {line}: `{name}` is empty; trace the run again")
    back = numpy.diff(table["time_s"].to_numpy()) < 0
    if back.any():
        raise TraceError(f"{path}, line {int(back.argmax()) + 3}: the time goes back; trace the run again")


def check_header(folder: TraceFolder, file: str, line: bytes, layout: Layout) -> None:
    """Raises `TraceError` unless a file has the required columns."""
    names = line.decode(errors="replace").strip().split(",")
    missing = next((name for name in layout.columns if name not in names), None)
    if missing is not None:
        version = folder.manifest.get("version", "unknown")
        raise TraceError(
            f"{folder.path / file}: no column `{missing}`, so the file was written by another version ({version}); "
            "trace the run again with this version"
        )


def as_frame(folder: TraceFolder, table: pyarrow.Table) -> pandas.DataFrame:
    """Returns a table as a data frame, with flows and paths in the order of the run."""
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    orders: dict[str, Iterable[str]] = {
        "flow": dict.fromkeys(sender.flow for sender in folder.senders),
        "path": dict.fromkeys(path for sender in folder.senders for path in sender.paths),
        "direction": DIRECTIONS,
    }
    for name in orders.keys() & set(frame.columns):
        words = frame[name].cat
        frame[name] = words.set_categories([*orders[name], *words.categories.difference([*orders[name]])])
    return frame
