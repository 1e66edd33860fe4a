"""Drawings of matplotlib as part of a page."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What matplotlib says in a style element of its own, which would hold for the whole page.
_STROKES = "stroke-linejoin: round; stroke-linecap: butt"


def inline_svg(axes: Axes, name: str, title: str) -> Markup:
    """The figure of `axes` as an SVG element whose identifiers all begin with `name`, so that many fit one page."""
    from anabranch.figures import save

    with tempfile.TemporaryDirectory(prefix="anabranch-report-") as folder:
        text = save(axes, Path(folder) / "figure.svg").read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style\b.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|\burl\(#|href="#)', rf"\g<1>{name}-", text)
    # The page decides how wide it is; the box says how high it is then.
    text = re.sub(r'^<svg (.*?)width="[^"]*" height="[^"]*"', r"<svg \1", text, count=1, flags=re.DOTALL)
    text = re.sub(r"^<svg ", f'<svg role="img" aria-label="{escape(title)}" style="{_STROKES}" ', text, count=1)
    return Markup(text.strip())
