"""Writes figures as reproducible files."""

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

# What would differ from one time to the next is left out, which is the date.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": "anabranch, matplotlib {version}"},
    ".png": {"Software": "anabranch, matplotlib {version}"},
}
_DOTS_PER_INCH = 300

# Without a salt of our own, identifiers in an SVG are random; letters as text look different everywhere.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "anabranch", "svg.fonttype": "path", "savefig.bbox": "standard"}


def save(drawn: Axes | Figure, path: str | os.PathLike[str]) -> Path:
    """Writes the figure of `drawn` as SVG or PNG (300 dots per inch), by the name's ending.

    The same figure gives the same bytes each time, with one version of matplotlib, which the file names. Folders are
    made as needed, and a file is replaced as a whole or not at all. Raises `FigureError` for other endings, and
    `OSError` if it cannot be written.
    """
    from matplotlib import __version__, rc_context

    target = Path(path)
    kind = check_ending(target)
    figure = figure_of(drawn)
    metadata = {name: value and value.format(version=__version__) for name, value in _METADATA[kind].items()}
    buffer = io.BytesIO()
    with rc_context(_SETTINGS):
        figure.savefig(buffer, format=kind[1:], metadata=metadata, dpi=_DOTS_PER_INCH)
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
