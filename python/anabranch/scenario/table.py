"""Base of the dataclasses for tables of a scenario file."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, TypeVar

from anabranch._native import ScenarioError

AnyTable = TypeVar("AnyTable", bound="Table")


class Table:
    """Table of a scenario file. Fields are its possible keys; omitted ones are `None` or `()`."""

    __slots__ = ()

    KEYS: ClassVar[Mapping[str, str]] = {}
    """Keys of fields that have another name in a file."""

    INNER: ClassVar[Mapping[str, type[Table]]] = {}
    """Classes of fields that contain tables."""

    UNITS: ClassVar[Mapping[str, str]] = {}
    """Usual units of fields whose values need one."""

    def __post_init__(self) -> None:
        for field in self.file_fields():
            value = getattr(self, field.name)
            if value is not None:
                if (
                    field.name in self.UNITS
                    and isinstance(value, Real)
                    and not isinstance(value, bool)
                    and math.isfinite(value)
                ):
                    raise _without_unit(
                        type(self).__name__, field.name, plain(value, field.name), self.UNITS[field.name]
                    )
                value = read_inner(self.INNER.get(field.name), plain(value, self.key_of(field)))
                object.__setattr__(self, field.name, value)

    def __repr__(self) -> str:
        shown = [field for field in dataclasses.fields(self) if field.repr]  # type: ignore[arg-type]
        given = [(field.name, getattr(self, field.name)) for field in shown]
        pairs = [f"{name}={value!r}" for name, value in given if value is not None and value != ()]
        return f"{type(self).__name__}({', '.join(pairs)})"

    def to_table(self) -> dict[str, Any]:
        """Returns the given keys in the form of `tomli_w`."""
        table = {}
        for field in self.file_fields():
            value = getattr(self, field.name)
            if value is not None and not (value == () and field.default == ()):
                table[self.key_of(field)] = written(value)
        return table

    @classmethod
    def from_table(cls: type[AnyTable], table: Mapping[str, Any]) -> AnyTable:
        """Reads a table of a file.

        Raises `ScenarioError` for an unknown key.
        """
        return cls(**cls.arguments(table))

    @classmethod
    def arguments(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a table of a file by field."""
        names = cls.fields_by_key()
        for key in table:
            if key not in names:
                raise unknown_key(key, cls.__name__, list(names))
        return {names[key]: value for key, value in table.items()}

    @classmethod
    def fields_by_key(cls) -> dict[str, str]:
        """Returns the field of each key."""
        return {cls.key_of(field): field.name for field in cls.file_fields()}

    @classmethod
    def file_fields(cls) -> list[dataclasses.Field[Any]]:
        """Returns the fields with keys in a file, which are those that count in comparisons."""
        return [field for field in dataclasses.fields(cls) if field.compare]  # type: ignore[arg-type]

    @classmethod
    def key_of(cls, field: dataclasses.Field[Any]) -> str:
        """Returns the key of a field in files."""
        return cls.KEYS.get(field.name, field.name)


def _without_unit(of: str, name: str, value: float, unit: str) -> ScenarioError:
    """Returns the error for a number without a unit, with the most likely unit for a number of this size."""
    if value < 0:
        return ScenarioError(f'{of}({name}={value!r}): `{name}` is not negative, and needs a unit: {name}="1 {unit}"')
    given, unit = _with_unit(value, unit)
    return ScenarioError(
        f"{of}({name}={value!r}): {value!r} has no unit, and `{name}` needs one: write for example "
        f'{name}="{given} {unit}"'
    )


# Numbers from here on are too large for the usual unit. They are likely in the smaller one, with this factor.
_LARGE = 100_000
_SMALLER = {"Mbit/s": ("bit/s", 1_000_000), "KiB": ("B", 1024), "MB": ("B", 1_000_000)}


def _with_unit(value: float, unit: str) -> tuple[str, str]:
    if unit not in _SMALLER or value < _LARGE:
        return repr(value), unit
    smaller, factor = _SMALLER[unit]
    whole = value / factor
    return (f"{whole:g}", unit) if whole == float(f"{whole:g}") else (repr(value), smaller)


def unknown_key(key: object, where: str, known: list[str]) -> ScenarioError:
    """Returns the error for an unknown key."""
    close = difflib.get_close_matches(str(key), known, 1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    return ScenarioError(f"unknown key `{key}` of {where}: expected one of: {', '.join(known)}{hint}")


def read_inner(of: type[Table] | None, value: Any) -> Any:
    """Returns a value with its mappings converted to tables of this class."""
    if of is None:
        return value
    if isinstance(value, Mapping):
        return of.from_table(value)
    if isinstance(value, tuple):
        return tuple(read_inner(of, item) for item in value)
    return value


def written(value: Any) -> Any:
    """Returns a value in the form of a TOML writer."""
    if isinstance(value, Table):
        return value.to_table()
    if isinstance(value, tuple):
        return [written(item) for item in value]
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    return value


def plain(value: Any, key: str) -> Any:
    """Returns an immutable value of Python's built-in types: lists and arrays become tuples.

    Raises `ScenarioError` if a file cannot contain it.
    """
    if isinstance(value, (bool, Table)):
        return value
    if isinstance(value, str):
        return text(value, key)
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        return plain(value.tolist(), key)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple, range)):
        return tuple(plain(item, f"{key}.{index}") for index, item in enumerate(value))
    if isinstance(value, Mapping):
        return {text(str(inner), key): plain(item, f"{key}.{inner}") for inner, item in value.items()}
    if isinstance(value, os.PathLike):
        return text(os.fsdecode(value), key)
    found = "None" if value is None else f"a {type(value).__name__}"
    raise ScenarioError(f"`{key}` is {found}, which no scenario file can contain: write text or a number, or omit it")


def text(value: str, key: str) -> str:
    """Returns text unchanged. Raises `ScenarioError` if it cannot be written to a file."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ScenarioError(f"`{key}` is {value!r}, which is not valid Unicode and cannot be written") from error
    return value
