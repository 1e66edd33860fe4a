"""Conversion of numeric arguments, of Python's or NumPy's types."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import SupportsIndex

from anabranch.transfer.errors import ArgumentError

_LARGEST = 2**63 - 1


def whole(name: str, value: SupportsIndex) -> int:
    """Returns the argument as an int for the native module, which checks its bounds.

    Raises `TypeError` for `True`, `False` and all other values except whole numbers, and `ArgumentError` beyond 63
    bits.
    """
    number = _index(name, value)
    if abs(number) > _LARGEST:
        raise ArgumentError(f"{name} is {number}; its absolute value can be {_LARGEST} at most")
    return number


def whole_up_to(name: str, value: SupportsIndex, most: int) -> int:
    """Returns the argument as an int from 0 to `most`. Raises the errors of `whole`."""
    number = _index(name, value)
    if not 0 <= number <= most:
        raise ArgumentError(f"{name} is {number}; give a number from 0 to {most}")
    return number


def whole_or_none(name: str, value: SupportsIndex | None) -> int | None:
    """Returns the argument as an int, or `None` if it was omitted."""
    return None if value is None else whole(name, value)


def real(name: str, value: float) -> float:
    """Returns the argument as a float. Raises `TypeError` for `True`, `False` and everything that is not a number."""
    if isinstance(value, Real) and not _is_truth_value(value):
        return float(value)
    raise TypeError(f"{name}: expected a number, found {value!r}")


def real_or_none(name: str, value: float | None) -> float | None:
    """Returns the argument as a float, or `None` if it was omitted."""
    return None if value is None else real(name, value)


def time_option(name: str, value: float, *, may_be_zero: bool = False) -> str:
    """Returns seconds as an option of the command. Raises `TypeError`, and `ArgumentError` outside the range."""
    seconds = real(name, value)
    if not (0 < seconds < math.inf or (seconds == 0 and may_be_zero)):
        least = "0 or more" if may_be_zero else "more than 0"
        raise ArgumentError(f"{name} is {value!r}; give seconds, {least}")
    return f"{seconds:.9f}".rstrip("0").rstrip(".")


def _index(name: str, value: SupportsIndex) -> int:
    if not _is_truth_value(value):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name}: expected a whole number, found {value!r}")


def _is_truth_value(value: object) -> bool:
    """Returns `True` for Python's and NumPy's truth values, without importing NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
