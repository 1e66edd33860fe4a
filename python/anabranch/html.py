"""Tables for notebooks. All text in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def escaped(value: object) -> str:
    """A value as text that is no markup."""
    return html.escape("" if value is None else str(value))


def table_of(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table with a header. A row may be shorter than that."""
    head = "".join(f'<th style="text-align: left">{escaped(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left">{escaped(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
