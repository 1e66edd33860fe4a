"""Tables for notebooks, and templates of pages. All text in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def escaped(value: object) -> str:
    """Returns a value as text without markup."""
    return html.escape("" if value is None else str(value))


def table_of(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table with a header. A row may be shorter than the header."""
    head = "".join(f'<th style="text-align: left">{escaped(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: left">{escaped(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def templates(package: str, folder: str) -> Environment:
    """Returns the templates in a folder of a package. An undefined name in a template is an error."""
    # Jinja is imported on use, since notebooks show tables without it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
