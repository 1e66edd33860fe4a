"""Content of a report, before it is rendered. All text is plain: the page's template escapes it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

MAX_UNFOLDED_ROWS = 16


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table."""

    name: str
    unit: str = ""
    is_number: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """Table with texts before it (`about`) and below it (`notes`). A long one is folded."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    about: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_folded(self) -> bool:
        return len(self.rows) > MAX_UNFOLDED_ROWS


@dataclass(frozen=True, slots=True)
class Figure:
    """Drawing in the page. `series` are the colours that the drawing uses as CSS variables, as `#rrggbb`."""

    svg: Markup
    caption: str
    series: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Document:
    """Text that can be unfolded."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """Commands or lines of Python that reproduce something."""

    title: str
    about: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class TimelineSection:
    """Timeline: its data as JSON, and the texts beside it. `series` are the colours of its lines."""

    data: Markup
    series: frozenset[str]
    about: tuple[str, ...]
    counted: str
    bin: str
    marks: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Complete report. `facts` are pairs of name and text."""

    title: str
    lead: str
    facts: tuple[tuple[str, str], ...]
    documents: tuple[Document, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    answer: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[Table, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    figure_notes: tuple[str, ...] = ()
    timeline: TimelineSection | None = None
    command: str = "anabranch report"

    def figure_class(self, place: int) -> str:
        """Returns the CSS class for a figure's width, so that all rows are full: rows of two first, then rows of three.

        On paper there are two to a row; `odd` marks the last figure if it is alone in its row there.
        """
        count = len(self.figures)
        halves = {0: 0, 1: 4, 2: 2}[count % 3]
        width = "whole" if count == 1 else "half" if place < halves else "third"
        return f"{width} odd" if place == count - 1 and count % 2 else width
