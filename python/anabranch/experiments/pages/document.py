"""Documents of headings, paragraphs, tables and images as Markdown, and such parts as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class Block(Protocol):
    """Part of a document."""

    def markdown(self) -> str:
        """Returns the block as Markdown."""


class HtmlBlock(Block, Protocol):
    """Part of a document that HTML pages have too."""

    def html(self) -> str:
        """Returns the block as HTML."""


@dataclass(frozen=True, slots=True)
class Link:
    """Text with the target of a link."""

    text: str
    target: str


Inline: TypeAlias = "str | Link"
"""Text with Markdown's `code` and **strong**, which become tags in HTML."""


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading. Level 1 is the title of the document."""

    level: int
    text: str

    def markdown(self) -> str:
        return f"{'#' * self.level} {self.text}"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Paragraph of text."""

    text: Inline

    def markdown(self) -> str:
        return _markdown(self.text)

    def html(self) -> str:
        return f"<p>{inline_html(self.text)}</p>"


@dataclass(frozen=True, slots=True)
class Items:
    """List with bullets."""

    items: Sequence[Inline]

    def markdown(self) -> str:
        return "\n".join(f"* {_markdown(item)}" for item in self.items)

    def html(self) -> str:
        return f"<ul>{''.join(f'<li>{inline_html(item)}</li>' for item in self.items)}</ul>"


@dataclass(frozen=True, slots=True)
class Table:
    """Table. `right` are the columns with numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Inline]]
    right: frozenset[int] = frozenset()

    def markdown(self) -> str:
        marks = ["---:" if column in self.right else "---" for column in range(len(self.header))]
        rows = [[_markdown(cell).replace("|", "\\|") for cell in row] for row in self.rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.header, marks, *rows))

    def text(self) -> str:
        """Returns the table for a terminal, with aligned columns and without Markdown's marks."""
        rows = [[str(cell).replace("`", "") for cell in row] for row in (self.header, *self.rows)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.header))]
        aligned = [[str.ljust, str.rjust][column in self.right] for column in range(len(widths))]
        return "\n".join(
            "  ".join(align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True)).rstrip()
            for row in rows
        )

    def html(self) -> str:
        body = "".join(f"<tr>{self._cells('td', row)}</tr>" for row in self.rows)
        head = self._cells("th", self.header)
        return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

    def _cells(self, tag: str, row: Sequence[Inline]) -> str:
        kinds = [' class="n"' if column in self.right else "" for column in range(len(row))]
        return "".join(f"<{tag}{kind}>{inline_html(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))


@dataclass(frozen=True, slots=True)
class Folded:
    """Block that a reader unfolds."""

    summary: str
    block: Block

    def markdown(self) -> str:
        return f"<details>\n<summary>{self.summary}</summary>\n\n{self.block.markdown()}\n\n</details>"


@dataclass(frozen=True, slots=True)
class Image:
    """Picture in a file beside the document."""

    path: str
    text: str

    def markdown(self) -> str:
        return f"![{self.text}]({self.path})"


def markdown(blocks: Sequence[Block]) -> str:
    """Returns a document as Markdown."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def _markdown(text: Inline) -> str:
    return f"[{text.text}]({text.target})" if isinstance(text, Link) else text


def inline_html(text: Inline) -> str:
    """Returns text as HTML, escaped except for code, strong text and links. A link never leads to a script."""
    if isinstance(text, Link):
        return f'<a href="{html.escape(text.target)}">{inline_html(text.text)}</a>'
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"\[([^\]]+)\]\(((?:https?://|#|\.{0,2}/|[\w-]+[./#])[^)\s]*)\)", r'<a href="\2">\1</a>', escaped)
