"""Values of a sweep: as Python has them, as TOML writes them, and as a column holds them."""

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
    """The value of an argument as an int, of Python's or NumPy's whole numbers. Raises `SweepError`."""
    number = None
    # `True` is a whole number to Python, and a mistake here.
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
    """The value of an argument as a float above a bound, of Python's or NumPy's numbers. Raises `SweepError`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    if math.isnan(number) or number <= above or (math.isinf(number) and not infinite):
        raise SweepError(f"`{name}`: expected {expected}, found {value!r}")
    return number


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Asks for the known name that a mistyped or shortened one most likely stands for; empty if none is near."""
    begun = [each for each in known if name and each.startswith(f"{name}_")]
    near = begun or difflib.get_close_matches(name, known, 1)
    return f"did you mean `{near[0]}`? " if near else ""


def plain(value: object) -> Value:
    """The value as plain Python: NumPy's scalars and arrays, tuples and mappings become numbers, lists and dicts.

    Raises `TypeError` or `ValueError` for what no scenario can hold.
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
            raise ValueError(f"{value} is no value of a scenario")
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(item) for item in value]
    raise TypeError(
        f"{value!r} is a {type(value).__name__}; a scenario holds text, numbers, true or false, lists and tables"
    )


def literal(value: Value) -> str:
    """The value as TOML on one line.

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
    """The type of a column that holds these values: numbers if all are, text otherwise."""
    types = {type(value) for value in values}
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int64"
    if types <= {int, float} and types:
        return "float64"
    return "string"


def in_column(value: Value, of: Kind) -> bool | int | float | str:
    """The value as a column of this type holds it; what is not text is written as TOML in a column of text."""
    if of == "string" and not isinstance(value, str):
        return literal(value)
    if isinstance(value, (list, dict)):
        raise TypeError(f"{value!r} does not fit a column of {of}")
    return value
