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

# Metadata without the date, which would differ each time.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": "anabranch, matplotlib {version}"},
    ".png": {"Software": "anabranch, matplotlib {version}"},
}
_DOTS_PER_INCH = 300

# matplotlib derives identifiers in an SVG from a random salt unless it is set. Letters are paths, since fonts differ
# between machines.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "anabranch", "svg.fonttype": "path", "savefig.bbox": "standard"}


def save(drawn: Axes | Figure, path: str | os.PathLike[str]) -> Path:
    """Writes the figure of `drawn` as SVG or PNG (300 dots per inch), by the name's ending.

    The same figure gives the same bytes with one version of matplotlib, which the file names. Missing folders are made,
    and a file is replaced atomically. Raises `FigureError` for other endings, and `OSError` if it cannot be written.
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
    """Returns `.svg` or `.png`. Raises `FigureError` for any other ending."""
    kind = path.suffix.lower()
    if kind not in _METADATA:
        raise FigureError(f"{path}: figures are written as .svg or .png; end the name with one of them")
    return kind


def figure_of(drawn: Axes | Figure) -> Figure:
    """Returns the whole figure of Axes or of a part of a figure."""
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    if not isinstance(drawn, (Axes, FigureBase)):
        raise FigureError(f"expected Axes or a Figure, not {type(drawn).__name__}")
    # Axes may be in a part of a figure, which refers to the whole.
    return drawn.figure.figure


def _replace(target: Path, content: bytes) -> None:
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(content)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
