"""Numbers in the format of tables."""

from __future__ import annotations

import math

NOTHING = "\N{EN DASH}"
"""Text in place of a missing value."""


def number(value: float | None, digits: int = 0) -> str:
    """Returns a number with this many decimals, or a dash if there is no value.

    >>> number(2454.93, 1), number(0.0, 2)
    ('2454.9', '0')
    """
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:.{digits}f}"
    return "0" if float(text) == 0 else text
