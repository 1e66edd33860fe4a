"""Documents of headings, paragraphs, tables and images, as Markdown and as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is that of the document."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads somewhere."""

    text: str
    target: str


Inline: TypeAlias = "str | Link"
"""Markdown's `code` and **strong** in a text are understood by both ways of writing."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: Inline


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: Sequence[Inline]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `right` are the columns that hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Inline]]
    right: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a file beside the document."""

    path: str
    text: str


Block: TypeAlias = "Heading | Paragraph | Items | Table | Image"


def markdown(blocks: Sequence[Block]) -> str:
    """A document as Markdown."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Paragraph):
        return _inline(block.text)
    if isinstance(block, Items):
        return "\n".join(f"* {_inline(item)}" for item in block.items)
    if isinstance(block, Image):
        return f"![{block.text}]({block.path})"
    marks = ["---:" if column in block.right else "---" for column in range(len(block.header))]
    rows = [list(block.header), marks, *[[_inline(cell).replace("|", "\\|") for cell in row] for row in block.rows]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _inline(text: Inline) -> str:
    return f"[{text.text}]({text.target})" if isinstance(text, Link) else text


_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }}
h1, h2, h3 {{ line-height: 1.2; margin-top: 2em; }}
h1 {{ margin-top: 0; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; margin: 1em 0; }}
th, td {{ border-bottom: 1px solid #ddd; padding: 0.25em 0.7em; text-align: left; vertical-align: top; }}
th {{ border-bottom-color: #888; }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
img {{ max-width: 100%; display: block; margin: 1em 0; }}
code {{ background: #f2f2f2; padding: 0 0.2em; }}
td:first-child code {{ white-space: nowrap; }}
</style>
<body>
{body}
</body>
</html>
"""


def page(title: str, blocks: Sequence[Block]) -> str:
    """A document as an HTML page."""
    return _PAGE.format(title=html.escape(title), body="\n".join(_html(block) for block in blocks))


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f'<h{block.level} id="{anchor(block.text)}">{_marked(block.text)}</h{block.level}>'
    if isinstance(block, Paragraph):
        return f"<p>{_marked(block.text)}</p>"
    if isinstance(block, Items):
        items = "".join(f"<li>{_marked(item)}</li>" for item in block.items)
        return f"<ul>{items}</ul>"
    if isinstance(block, Image):
        return f'<img src="{html.escape(block.path)}" alt="{html.escape(block.text)}" loading="lazy">'
    head = "".join(_cell("th", text, column in block.right) for column, text in enumerate(block.header))
    rows = ["".join(_cell("td", cell, column in block.right) for column, cell in enumerate(row)) for row in block.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(tag: str, text: Inline, number: bool) -> str:
    kind = ' class="n"' if number else ""
    return f"<{tag}{kind}>{_marked(text)}</{tag}>"


def _marked(text: Inline) -> str:
    if isinstance(text, Link):
        return f'<a href="{html.escape(text.target)}">{_marked(text.text)}</a>'
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', escaped)


def anchor(text: str) -> str:
    """The name by which a heading can be linked to, as mdBook makes it."""
    kept = re.sub(r"[^\w\s-]", "", text.lower())
    return re.sub(r"\s", "-", kept.strip())
