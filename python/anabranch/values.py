"""Values of a sweep: in Python, in TOML, and in the columns of tables."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal, SupportsIndex, TypeAlias

import tomli_w

from anabranch.errors import SweepError

Value: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any]
Kind: TypeAlias = Literal["bool", "int64", "float64", "string"]

LARGEST_INTEGER = 2**63 - 1


def whole_number(name: str, value: object, *, least: int, most: int = LARGEST_INTEGER) -> int:
    """Returns an argument as an int. NumPy's whole numbers are allowed. Raises `SweepError`."""
    number = None
    # `True` is a whole number in Python, but an error here.
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        try:
            number = operator.index(value)
        except TypeError:
            number = None
    if number is None or not least <= number <= most:
        span = f"{least} or more" if most == LARGEST_INTEGER else f"from {least} to {most}"
        raise SweepError(f"`{name}`: expected a whole number, {span}, found {value!r}")
    return number


def real_number(name: str, value: object, expected: str, *, above: float = 0.0, infinite: bool = False) -> float:
    """Returns an argument as a float above a bound. NumPy's numbers are allowed. Raises `SweepError`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    if math.isnan(number) or number <= above or (math.isinf(number) and not infinite):
        raise SweepError(f"`{name}`: expected {expected}, found {value!r}")
    return number


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Returns a question for the known name that is closest to a mistyped or shortened one; empty if none is close."""
    begun = [each for each in known if name and each.startswith(f"{name}_")]
    near = begun or difflib.get_close_matches(name, known, 1)
    return f"did you mean `{near[0]}`? " if near else ""


def plain(value: object) -> Value:
    """Returns a value as plain Python: NumPy's scalars and arrays, tuples and mappings as numbers, lists and dicts.

    Raises `TypeError` or `ValueError` for values that a scenario cannot contain.
    """
    if isinstance(value, (bool, str)):
        return value
    # NumPy's numbers and arrays, without importing NumPy.
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise ValueError(f"{value} is larger than TOML's integers")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a value of a scenario")
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(item) for item in value]
    raise TypeError(
        f"{value!r} is a {type(value).__name__}; a scenario contains text, numbers, true or false, lists and tables"
    )


def literal(value: Value) -> str:
    """Returns the value as TOML on one line.

    >>> literal({"model": "bernoulli", "rate": 0.1})
    '{model = "bernoulli", rate = 0.1}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").rstrip("\n")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else literal(key)


def kind(values: Iterable[Value]) -> Kind:
    """Returns the type of a column for these values: numbers if all are, text otherwise."""
    types = {type(value) for value in values}
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int64"
    if types <= {int, float} and types:
        return "float64"
    return "string"


def in_column(value: Value, of: Kind) -> bool | int | float | str:
    """Returns the value for a column of this type. In a column of text, values other than text are TOML."""
    if of == "string" and not isinstance(value, str):
        return literal(value)
    if isinstance(value, (list, dict)):
        raise TypeError(f"{value!r} does not fit a column of {of}")
    return value
