"""Colours of a page on light and on dark paper, and colours of series that are readable on both.

The colour of a series is a CSS variable, so that figures and timeline follow the reader's choice without a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "faint": "#5f6b76",
    "grid": "#dde2e7",
    "loud": "#b00020",
    "lost": "#b45309",
    "again": "#0a58b0",
    "link": "#0a58b0",
    "panel": "#f5f7f9",
    "warn": "#fff3d6",
}
DARK = {
    "paper": "#14181d",
    "ink": "#e8ebee",
    "faint": "#a3adb7",
    "grid": "#323a43",
    "loud": "#ff8593",
    "lost": "#f5a742",
    "again": "#86b9ff",
    "link": "#86b9ff",
    "panel": "#1d232a",
    "warn": "#43330f",
}

MIN_CONTRAST = 3.2
"""Minimum contrast of a series with its paper. WCAG 2.1 demands 3 for graphics (success criterion 1.4.11)."""

_STEPS = 10


def variable(colour: str) -> str:
    """Returns the CSS variable of a series' colour, given as `#rrggbb`.

    >>> variable("#19388B")
    '--series-19388b'
    """
    return f"--series-{colour[1:].lower()}"


def style_of(series: Iterable[str]) -> str:
    """Returns the part of the style sheet with all colours. Print always uses light paper."""
    colours = sorted({colour.lower() for colour in series})
    light = _declared(LIGHT, colours)
    dark = _declared(DARK, colours)
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-print]) {{ {dark} }} }}\n"
    )


def readable(colour: str, paper: str, ink: str) -> str:
    """Returns the colour, mixed with ink until its contrast with the paper suffices.

    >>> readable("#19388b", "#ffffff", "#1b1f24")
    '#19388b'
    """
    drawn = colour
    for step in range(1, _STEPS + 1):
        if contrast(drawn, paper) >= MIN_CONTRAST:
            break
        drawn = _mixed(colour, ink, step / _STEPS)
    return drawn


def contrast(one: str, other: str) -> float:
    """Returns the contrast ratio of WCAG 2, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _declared(paper: Mapping[str, str], series: Iterable[str]) -> str:
    own = [f"--{name}: {colour};" for name, colour in paper.items()]
    drawn = [f"{variable(colour)}: {readable(colour, paper['paper'], paper['ink'])};" for colour in series]
    return " ".join([*own, *drawn])


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _mixed(colour: str, other: str, part: float) -> str:
    both = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(mine + (its - mine) * part):02x}" for mine, its in both)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
