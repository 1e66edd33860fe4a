"""Names beside points, none over another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LETTER_IN, LINE_IN = 0.06, 0.12
"""Width and height of a letter of 6.5 pt."""

MARKER_IN = 0.07

_RADII_IN = (0.0, 0.1, 0.2, 0.3, 0.42, 0.56, 0.72, 0.9, 1.1, 1.4)
_ANGLES = tuple(math.pi * turn / 8 for turn in (4, 12, 2, 14, 6, 10, 0, 8, 1, 3, 5, 7, 9, 11, 13, 15))


class Box(NamedTuple):
    """Area of a name or marker in inches."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Returns `True` if the two areas overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top

    def inside(self, other: Box) -> bool:
        """Returns `True` if this area is inside the other one."""
        across = other.left <= self.left and self.right <= other.right
        return across and other.bottom <= self.bottom and self.top <= other.top


def places(points: Sequence[tuple[float, float]], names: Sequence[str], frame: Box) -> list[tuple[float, float]]:
    """Returns the centre of each name in inches: the free place nearest to its point.

    A name without a free place is put beside its point. The first points choose first.
    """
    covered = [Box(x - MARKER_IN, y - MARKER_IN, x + MARKER_IN, y + MARKER_IN) for x, y in points]
    chosen = []
    for (x, y), name in zip(points, names, strict=True):
        half = LETTER_IN * len(name) / 2
        spots = list(_around(x, y, half))
        boxes = [Box(at - half, up - LINE_IN / 2, at + half, up + LINE_IN / 2) for at, up in spots]
        free = (place for place, box in enumerate(boxes) if box.inside(frame) and not any(map(box.meets, covered)))
        place = next(free, 0)
        covered.append(boxes[place])
        chosen.append(spots[place])
    return chosen


def _around(x: float, y: float, half: float) -> Iterator[tuple[float, float]]:
    """Yields places for the centre of a name, the nearest to its point first."""
    for radius in _RADII_IN:
        for angle in _ANGLES:
            aside = (MARKER_IN + half) * math.cos(angle) + radius * math.cos(angle)
            above = (MARKER_IN + LINE_IN / 2 + radius) * math.sin(angle)
            yield x + aside, y + above
