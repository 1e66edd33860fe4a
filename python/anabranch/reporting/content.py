"""What a report says, before it becomes a page. All text is plain: the page's template escapes it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

MOST_UNFOLDED_ROWS = 16


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    unit: str = ""
    is_number: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table with what is to be said before it (`about`) and below it (`notes`). A long one is folded."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    about: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_folded(self) -> bool:
        return len(self.rows) > MOST_UNFOLDED_ROWS


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing that stands in the page. `series` are the colours that it has as CSS variables, as `#rrggbb`."""

    svg: Markup
    caption: str
    series: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Document:
    """A text that can be unfolded."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """Commands or lines of Python that make something again."""

    title: str
    about: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class TimelineSection:
    """The timeline: its data as JSON, and what the page says of it. `series` are the colours of its lines."""

    data: Markup
    series: frozenset[str]
    about: tuple[str, ...]
    counted: str
    bin: str
    marks: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report. `facts` are names with a text each."""

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
        """How wide a figure is, so that no row ends with a hole: three to a row, and as many rows of two as it takes.

        On paper there are two to a row; `odd` is the last one, which stands alone there.
        """
        count = len(self.figures)
        halves = {0: 0, 1: 4, 2: 2}[count % 3]
        width = "whole" if count == 1 else "half" if place < halves else "third"
        return f"{width} odd" if place == count - 1 and count % 2 else width
