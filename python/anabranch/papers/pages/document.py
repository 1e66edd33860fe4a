"""Documents of headings, paragraphs, tables and images, as Markdown and as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class Block(Protocol):
    """A part of a document."""

    def markdown(self) -> str:
        """The block as Markdown."""

    def html(self) -> str:
        """The block as HTML."""


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads somewhere."""

    text: str
    target: str


Inline: TypeAlias = "str | Link"
"""A text may hold Markdown's `code` and **strong**, which become tags in HTML."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is that of the document."""

    level: int
    text: str

    def markdown(self) -> str:
        return f"{'#' * self.level} {self.text}"

    def html(self) -> str:
        return f'<h{self.level} id="{anchor(self.text)}">{_html(self.text)}</h{self.level}>'


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: Inline

    def markdown(self) -> str:
        return _markdown(self.text)

    def html(self) -> str:
        return f"<p>{_html(self.text)}</p>"


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: Sequence[Inline]

    def markdown(self) -> str:
        return "\n".join(f"* {_markdown(item)}" for item in self.items)

    def html(self) -> str:
        return f"<ul>{''.join(f'<li>{_html(item)}</li>' for item in self.items)}</ul>"


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `right` are the columns that hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Inline]]
    right: frozenset[int] = frozenset()

    def markdown(self) -> str:
        marks = ["---:" if column in self.right else "---" for column in range(len(self.header))]
        rows = [[_markdown(cell).replace("|", "\\|") for cell in row] for row in self.rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.header, marks, *rows))

    def html(self) -> str:
        body = "".join(f"<tr>{self._cells('td', row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{self._cells('th', self.header)}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self, tag: str, row: Sequence[Inline]) -> str:
        kinds = [' class="n"' if column in self.right else "" for column in range(len(row))]
        return "".join(f"<{tag}{kind}>{_html(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a file beside the document."""

    path: str
    text: str

    def markdown(self) -> str:
        return f"![{self.text}]({self.path})"

    def html(self) -> str:
        return f'<img src="{html.escape(self.path)}" alt="{html.escape(self.text)}" loading="lazy">'


def markdown(blocks: Sequence[Block]) -> str:
    """A document as Markdown."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def page(title: str, blocks: Sequence[Block]) -> str:
    """A document as an HTML page."""
    return _PAGE.format(title=html.escape(title), body="\n".join(block.html() for block in blocks))


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


def _markdown(text: Inline) -> str:
    return f"[{text.text}]({text.target})" if isinstance(text, Link) else text


def _html(text: Inline) -> str:
    if isinstance(text, Link):
        return f'<a href="{html.escape(text.target)}">{_html(text.text)}</a>'
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', escaped)


def anchor(text: str) -> str:
    """The name by which a heading can be linked to, as mdBook makes it."""
    kept = re.sub(r"[^\w\s-]", "", text.lower())
    return re.sub(r"\s", "-", kept.strip())
