"""Numbers with the noun that they count."""

from __future__ import annotations


def counted(number: int, one: str, more: str | None = None) -> str:
    """Returns the number and its noun, in the singular for 1.

    >>> counted(1, "run"), counted(2, "run"), counted(1, "run is", "runs are")
    ('1 run', '2 runs', '1 run is')
    """
    return f"{number} {one if number == 1 else more or f'{one}s'}"
