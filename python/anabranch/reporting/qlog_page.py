"""Page of events in the format of qlog."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from anabranch.counting import counted
from anabranch.errors import QlogError
from anabranch.reporting.content import Column, Page, Recipe, Table
from anabranch.reporting.numbers import NOTHING, number
from anabranch.reporting.qlog.connection import Connection
from anabranch.reporting.qlog.drawn import timeline_of_connections
from anabranch.reporting.qlog.logs import log_files, read_logs
from anabranch.reporting.section import timeline_section

_COMMAND = "anabranch view"


def page_of_logs(source: Path, title: str | None) -> Page:
    """Returns the page of a file, or of the logs in a folder. Raises `QlogError` for files that are no qlog."""
    files = log_files(source)
    logs = read_logs(files)
    timeline = timeline_of_connections(logs.connections)
    if not timeline.tracks:
        raise QlogError(f"{source}: has no events of packets, losses or metrics")
    timeline.notes.extend(logs.notes)
    about = "Seconds count from the first event of each log. The boxes select the shown logs."
    return Page(
        title=title or f"Events in {source.resolve().name}",
        lead=f"{counted(len(logs.connections), 'connection')} in {counted(len(files), 'log')}",
        tables=(_table(logs.connections),),
        timeline=timeline_section(timeline, (about,), counted="packets"),
        facts=(("Logs", ", ".join(file.name for file in files)),),
        recipes=(Recipe("This page", (), f"{shlex.join([*_COMMAND.split(), source.resolve().name])}\n"),),
        command=_COMMAND,
    )


def _table(connections: Sequence[Connection]) -> Table:
    columns = (
        Column("connection", is_number=False),
        Column("scheme, or stack", is_number=False),
        Column("path", is_number=False),
        Column("length", "s"),
        *(Column(what, "packets") for what in ("sent", "received")),
        Column("lost"),
        Column("smallest srtt", "ms"),
        Column("largest cwnd", "KiB"),
    )
    rows = [row for connection in connections for row in _rows(connection)]
    notes = ("Lost counts packets of QUIC or chunks of SCTP that the sender declared lost.",)
    return Table("Connections", columns, tuple(rows), notes=notes)


def _rows(connection: Connection) -> list[tuple[str, ...]]:
    rows = []
    for name, path in connection.paths.items():
        srtt, cwnd = path.metrics.get("srtt"), path.metrics.get("cwnd")
        lost = path.happened.get("lost")
        rows.append(
            (
                *(connection.name, connection.scheme, name, number(connection.end_s, 3)),
                *(str(len(points.times_s)) for points in (path.sent, path.received)),
                str(len(lost.times_s)) if lost else "0",
                number(min(srtt.values), 3) if srtt else NOTHING,
                number(max(cwnd.values), 1) if cwnd else NOTHING,
            )
        )
    return rows
