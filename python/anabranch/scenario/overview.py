"""View of a scenario in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.html import escaped, table_of


def as_html(name: str, table: Mapping[str, Any]) -> str:
    """Returns HTML with duration and schemes, and a row for each path and flow, of a table with every default."""
    run = table["run"]
    schemes = ", ".join(run["schemes"])
    seeds = run["seeds"] if isinstance(run["seeds"], int) else len(run["seeds"])
    duration = run.get("duration", "until the transfer ends")
    head = (
        f"<p><b>{escaped(name)}</b>: {escaped(duration)}, schemes {escaped(schemes)}, "
        f"{seeds} seed{'s' * (seeds != 1)}, profile {escaped(run['profile'])}</p>"
    )
    lists = [(kind, table.get(kind, [])) for kind in ("link", "path", "flow")]
    return head + "".join(_rows(kind, rows) for kind, rows in lists if rows)


def _rows(name: str, rows: list[dict[str, Any]]) -> str:
    """Returns a table with a row for each entry, and a column for each key with text or a number."""
    keys = list(dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, (dict, list))))
    keys = sorted(keys, key=lambda key: key != "name")
    more = [", ".join(key for key, value in row.items() if isinstance(value, (dict, list))) for row in rows]
    header = [name if key == "name" else key for key in keys] + (["also"] if any(more) else [])
    cells = [[*(row.get(key) for key in keys), also] for row, also in zip(rows, more, strict=True)]
    return table_of(header, [row[: len(header)] for row in cells])
