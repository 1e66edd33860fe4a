"""Looks of schemes and paths: the same in every figure, for colour-blind readers, and in greyscale.

Plain data without matplotlib, so that reports can share it. Any two colours of schemes are distinguishable under
protanopia, deuteranopia and tritanopia (Machado, Oliveira, Fernandes 2009). Any two schemes differ in their dashes or
by ten in lightness (CIE L*), and in their markers. No colour has a lightness above 72, to be visible on white paper.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeVar, get_args

_Item = TypeVar("_Item")

# The names are those of Plotly.
Dash = Literal["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"]

# Lengths of lines and gaps in line widths, in matplotlib's format.
DASH_PATTERNS: dict[Dash, tuple[float, ...]] = {
    "solid": (),
    "dash": (3.6, 1.6),
    "dot": (1.0, 1.5),
    "dashdot": (5.0, 1.5, 1.0, 1.5),
    "longdash": (8.0, 2.0),
    "longdashdot": (8.0, 1.6, 1.2, 1.6, 1.2, 1.6),
}

# Minimum difference in lightness of two lines with the same dashes.
LIGHTNESS_STEP = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """Look of a line, marker or bar.

    `color` is `#rrggbb`; `marker` and `hatch` are matplotlib's. A marker that is not `filled` is hollow.
    """

    color: str
    dash: Dash
    marker: str
    filled: bool = True
    hatch: str = ""

    @property
    def symbol(self) -> tuple[str, bool]:
        """Shape of the marker."""
        return self.marker, self.filled

    def differs(self, other: Look) -> bool:
        """Returns `True` if lines with these looks can be distinguished without colours."""
        lines = self.dash != other.dash or abs(lightness(self.color) - lightness(other.color)) >= LIGHTNESS_STEP
        return lines and self.symbol != other.symbol


_REGISTRY: dict[str, Look] = {
    "sctp": Look("#1f1f1f", "dot", "s", hatch=""),
    "naive-cmt": Look("#7f8d97", "dot", "x", hatch="xxx"),
    "cmt": Look("#19388b", "solid", "o", hatch="///"),
    "cmt-pf": Look("#c84a04", "dash", "^", hatch="\\\\\\"),
    "a-cmt": Look("#e8a000", "longdashdot", "D", hatch="..."),
    "db-cmt": Look("#973758", "longdash", "v", hatch="---"),
    "cmt-dfr": Look("#86b0ef", "longdash", "P", hatch="|||"),
    "cmt-qa": Look("#51a35f", "dashdot", "s", filled=False, hatch="+++"),
    "mptcp-lia": Look("#03716c", "solid", "<", hatch="//"),
    "mptcp-olia": Look("#6b81cc", "longdash", ">", hatch="\\\\"),
    "mptcp-balia": Look("#4c6637", "dot", "d", hatch="xx"),
    "mptcp-ns2": Look("#05c1c9", "solid", "*", hatch="ooo"),
    "cmt-rpv1": Look("#9a499a", "longdashdot", "o", filled=False, hatch="--"),
    "cmt-rpv2": Look("#fd82c0", "dot", "D", filled=False, hatch="||"),
    "smt-afr": Look("#773f0b", "dashdot", "+", hatch="++"),
    "bonded": Look("#acac4b", "dash", "X", hatch=".."),
    "braid": Look("#9130f2", "dashdot", "H", hatch="OOO"),
}

_PATHS: tuple[Look, ...] = (
    Look("#014a75", "solid", "o"),
    Look("#e88927", "solid", "^", filled=False),
    Look("#038257", "dash", "s"),
    Look("#242424", "dot", "D", filled=False),
    Look("#cc71b7", "dashdot", "v"),
    Look("#a13140", "longdash", "P", filled=False),
    Look("#0ec1e2", "longdashdot", "<"),
    Look("#374211", "dash", ">", filled=False),
)

_MARKERS: tuple[tuple[str, bool], ...] = (
    *((marker, False) for marker in ("^", "v", "<", ">", "d", "P", "X", "h", "p")),
    *((marker, True) for marker in ("h", "p", "8", "1", "2", "3", "4")),
)
_HATCHES = ("**", "oo", "OO", "/o", "\\o", "|-", "/-", "\\-", "//..", "--..", "||..", "**..")


def look_of(scheme: str) -> Look:
    """Returns the look of a scheme; see `looks`.

    >>> look_of("cmt").color == look_of("cmt(trigger=4)").color
    True
    """
    return looks([scheme])[scheme]


def looks(schemes: Iterable[str]) -> dict[str, Look]:
    """Returns the looks of these schemes in a comparison.

    A scheme of the registry always has the same look. An expression such as `cmt(trigger=4)` or `cmt+rack` has the
    colour of its first scheme, with dashes and marker derived from its text. The look of any other name is derived from
    the name. If two derived looks would be hard to distinguish, one of the schemes gets its next choice.
    """
    names = list(dict.fromkeys(schemes))
    chosen = {name: _REGISTRY[name] for name in names if name in _REGISTRY}
    for name in sorted(set(names) - set(chosen)):
        chosen[name] = _choose(name, list(chosen.values()))
    return {name: chosen[name] for name in names}


def path_looks(paths: Sequence[str]) -> dict[str, Look]:
    """Returns the looks of paths, by their position in the list, which has the order of the scenario."""
    return {path: _PATHS[place % len(_PATHS)] for place, path in enumerate(paths)}


def lightness(color: str) -> float:
    """Returns CIE L* of `#rrggbb`, from 0 for black to 100 for white: the lightness of a colour in greyscale.

    >>> lightness("#ffffff"), lightness("#000000")
    (100.0, 0.0)
    """
    red, green, blue = (_linear(int(color[at : at + 2], 16) / 255) for at in (1, 3, 5))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    scaled = luminance ** (1 / 3) if luminance > (6 / 29) ** 3 else luminance * (29 / 6) ** 2 / 3 + 4 / 29
    return round(116 * scaled - 16, 6)


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _choose(name: str, taken: list[Look]) -> Look:
    """Returns the first candidate that differs from all looks in `taken`, or else the first with a new marker."""
    candidates = list(_candidates(name))
    symbols = {other.symbol for other in taken}
    apart = (each for each in candidates if all(each.differs(other) for other in taken))
    by_marker = (each for each in candidates if each.symbol not in symbols)
    chosen = next(apart, None) or next(by_marker, candidates[0])
    hatches = _shuffled(_HATCHES, f"hatch {name}")
    used = {other.hatch for other in taken}
    return replace(chosen, hatch=next((hatch for hatch in hatches if hatch not in used), hatches[0]))


def _candidates(name: str) -> Iterator[Look]:
    """Yields looks for a name outside the registry, in an order derived from the name."""
    base = _REGISTRY.get(re.split(r"[(+]", name, maxsplit=1)[0].strip())
    every_color = [look.color for look in _REGISTRY.values()]
    colors = [base.color] if base else _shuffled(every_color, f"color {name}")
    # An expression does not use the dashes of its first scheme.
    dashes = [dash for dash in _shuffled(get_args(Dash), f"dash {name}") if not base or dash != base.dash]
    for color, dash, (marker, filled) in product(colors, dashes, _shuffled(_MARKERS, f"marker {name}")):
        yield Look(color, dash, marker, filled)


def _shuffled(items: Sequence[_Item], key: str) -> list[_Item]:
    """Returns the items in an order derived from the key. `hash` would differ in each process."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{key}/{item}".encode()).digest())
