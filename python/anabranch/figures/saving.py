"""Figures as files that are the same each time."""

from __future__ import annotations

import io
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import FigureError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What would differ from one time to the next is left out: the date, and the version that matplotlib names as creator.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": "anabranch"},
    ".png": {"Software": "anabranch"},
}
_DOTS_PER_INCH = 300


def save(drawn: Axes | Figure, path: str | os.PathLike[str]) -> Path:
    """Writes the figure of `drawn` as SVG or PNG (300 dots per inch), by the name's ending.

    The same figure gives the same bytes each time, with one version of matplotlib. Folders are made as needed, and a
    file is replaced as a whole or not at all. Raises `FigureError` for other endings, and `OSError` if it cannot be
    written.
    """
    from matplotlib import rc_context

    target = Path(path)
    kind = check_ending(target)
    figure = figure_of(drawn)
    buffer = io.BytesIO()
    # Without a salt of our own, identifiers in an SVG are random.
    with rc_context({"svg.hashsalt": "anabranch"}):
        figure.savefig(buffer, format=kind[1:], metadata=_METADATA[kind], dpi=_DOTS_PER_INCH)
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(target, buffer.getvalue())
    return target


def check_ending(path: Path) -> str:
    """`.svg` or `.png`. Raises `FigureError` for any other."""
    kind = path.suffix.lower()
    if kind not in _METADATA:
        raise FigureError(f"{path}: figures are written as .svg or .png; end the name with one of them")
    return kind


def figure_of(drawn: Axes | Figure) -> Figure:
    """The whole figure that something is part of."""
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    if not isinstance(drawn, (Axes, FigureBase)):
        raise FigureError(f"expected Axes or a Figure, not {type(drawn).__name__}")
    # Axes may be in a part of a figure, and the part knows the whole.
    return drawn.figure.figure


def _replace(target: Path, content: bytes) -> None:
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(content)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
