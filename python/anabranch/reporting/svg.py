"""Drawings of matplotlib as parts of a page, in the page's colours."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from anabranch.reporting.content import Figure
from anabranch.reporting.palette import variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rules that matplotlib writes to a style element of its own, which would apply to the whole page.
_STROKES = "stroke-linejoin: round; stroke-linecap: butt"


# Colours of a figure that belong to no series, as matplotlib writes them: white paper, black ink, the grid.
_ROLES = {"#ffffff": "var(--paper)", "#000000": "var(--ink)", "#d9d9d9": "var(--grid)"}
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")


def inline_svg(axes: Axes, name: str, caption: str) -> Figure:
    """Returns the figure of `axes` as an SVG element. All its identifiers begin with `name`, to be unique in a page."""
    from anabranch.figures import save

    with tempfile.TemporaryDirectory(prefix="anabranch-report-") as folder:
        text = save(axes, Path(folder) / "figure.svg").read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style\b.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|\burl\(#|href="#)', rf"\g<1>{name}-", text)
    # The page sets the width, and the view box determines the height.
    text = re.sub(r'^<svg (.*?)width="[^"]*" height="[^"]*"', r"<svg \1", text, count=1, flags=re.DOTALL)
    text, series = _with_variables(text)
    # Letters have no colour of their own in matplotlib's SVG.
    style = f"fill: var(--ink); {_STROKES}"
    text = re.sub(r"^<svg ", f'<svg role="img" aria-label="{escape(caption)}" style="{style}" ', text, count=1)
    return Figure(Markup(text.strip()), caption, series)


def _with_variables(text: str) -> tuple[str, frozenset[str]]:
    """Returns a drawing whose styles use the page's variables in place of colours, and the colours of its series."""
    series: set[str] = set()

    def replaced(found: re.Match[str]) -> str:
        colour = found[0]
        if colour in _ROLES:
            return _ROLES[colour]
        series.add(colour)
        return f"var({variable(colour)})"

    text = re.sub(r'style="[^"]*"', lambda style: _COLOUR.sub(replaced, style[0]), text)
    return text, frozenset(series)
