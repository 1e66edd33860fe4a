"""Numbers among the arguments, of Python's or NumPy's types."""

from __future__ import annotations

import operator
from numbers import Real
from typing import SupportsIndex


def whole(name: str, value: SupportsIndex) -> int:
    """Returns the argument as an int. Raises `TypeError` for `True`, `False` and all that is no whole number."""
    if not _is_truth_value(value):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name}: expected a whole number, found {value!r}")


def whole_or_none(name: str, value: SupportsIndex | None) -> int | None:
    """Returns the argument as an int, or `None` if it was left out."""
    return None if value is None else whole(name, value)


def real(name: str, value: float) -> float:
    """Returns the argument as a float. Raises `TypeError` for `True`, `False` and all that is no number."""
    if isinstance(value, Real) and not _is_truth_value(value):
        return float(value)
    raise TypeError(f"{name}: expected a number, found {value!r}")


def real_or_none(name: str, value: float | None) -> float | None:
    """Returns the argument as a float, or `None` if it was left out."""
    return None if value is None else real(name, value)


def _is_truth_value(value: object) -> bool:
    """Returns `True` for Python's and NumPy's truth values, without importing NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
