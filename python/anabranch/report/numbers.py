"""Numbers as tables show them."""

from __future__ import annotations

import math

NOTHING = "\N{EN DASH}"
"""What stands where there is no value."""


def number(value: float | None, digits: int = 0) -> str:
    """With so many decimals, or a dash if there is no value.

    >>> number(2454.93, 1), number(0.0, 2)
    ('2454.9', '0')
    """
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:.{digits}f}"
    return "0" if float(text) == 0 else text
