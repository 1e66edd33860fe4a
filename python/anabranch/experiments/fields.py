"""Reader of tables of a data file, key by key. A missing or unknown key or a wrong type is an error with its place."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tomli

from anabranch.errors import ExperimentError
from anabranch.text_file import read_text

T = TypeVar("T")

_EXPECTED = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    """Reads the tables of a file. Raises `ExperimentError` if it cannot be read."""
    try:
        return tomli.loads(read_text(path))
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise ExperimentError(f"{path}: is not TOML: {error}") from error


def hint(word: str, known: Iterable[str]) -> str:
    """Returns the closest known word and a list of all known words."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    meant = f"did you mean `{close[0]}`? " if close else ""
    return f"{meant}Choose one of: {', '.join(names) or 'none'}"


class Fields:
    """One table of a file. A key that the program does not read is an error.

    `where` is its place in the file, such as `claim db6-avg-cmt`. All errors are `ExperimentError`.
    """

    def __init__(self, table: Mapping[str, Any], file: Path, where: str = "") -> None:
        self._table = table
        self._asked: set[str] = set()
        self.file = file
        self.where = where

    def error(self, key: str, problem: str) -> ExperimentError:
        """Returns an error about one key."""
        place = f"{self.where}: " if self.where else ""
        return ExperimentError(f"{self.file}: {place}`{key}` {problem}")

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def need(self, key: str, kind: type[T]) -> T:
        """Returns the value of a required key."""
        if key not in self._table:
            raise self.error(key, f"is missing; it has to be {_EXPECTED[kind]}")
        value = self.raw(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(key, f"is {value!r}; it has to be {_EXPECTED[kind]}")
        return value

    def get(self, key: str, kind: type[T], default: T) -> T:
        """Returns the value of an optional key."""
        found = self.maybe(key, kind)
        return default if found is None else found

    def maybe(self, key: str, kind: type[T]) -> T | None:
        """Returns the value of a key, or `None`."""
        self._asked.add(key)
        return self.need(key, kind) if key in self._table else None

    def choice(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        """Returns the value of a key that has to be a known word."""
        names = list(known)
        word = self.need(key, str) if default is None else self.get(key, str, default)
        self.check_known(key, [word], names, "is `{}`")
        return word

    def check_known(self, key: str, words: Iterable[str], known: Iterable[str], problem: str = "has `{}`") -> None:
        """Raises an error for the first word that is not a known one."""
        names = list(known)
        for word in words:
            if word not in names:
                raise self.error(key, f"{problem.format(word)}; {hint(word, names)}")

    def raw(self, key: str) -> Any:
        """Returns the unchecked value of a key, or `None`."""
        self._asked.add(key)
        return self._table.get(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns a list of texts. A single text counts as a list, and a missing key as an empty one."""
        return self._list(key, "text", (str,))

    def numbers(self, key: str) -> tuple[float, ...]:
        """Returns a list of numbers. A single number counts as a list, and a missing key as an empty one."""
        return tuple(float(value) for value in self._list(key, "a number", (int, float)))

    def positive(self, key: str, default: float) -> float:
        """Returns a number above zero."""
        value = self.get(key, float, default)
        if value <= 0:
            raise self.error(key, f"is {value:g}; it has to be above 0")
        return value

    def pair(self, key: str) -> tuple[float, float] | None:
        """Returns two numbers in ascending order, or `None`."""
        values = self.numbers(key)
        if key not in self._table:
            return None
        if len(values) != 2 or values[0] > values[1]:
            raise self.error(key, "has to be two numbers, the smaller one first")
        return values[0], values[1]

    def inner(self, key: str) -> Fields | None:
        """Returns an inner table, or `None`."""
        table = self.maybe(key, dict)
        return None if table is None else self._inside(table, key)

    def tables(self, key: str) -> list[dict[str, Any]]:
        """Returns a list of tables. A single table counts as a list, and a missing key as an empty one."""
        value = self.raw(key)
        items = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(item, dict) for item in items):
            raise self.error(key, "has to be tables: [[...]]")
        return items

    def each(self, key: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
        """Applies `read` to each table of a list. Raises one error with all of their faults."""
        found: list[T] = []
        faults: list[str] = []
        for number, table in enumerate(self.tables(key), start=1):
            name = table.get("id", table.get("name", "" if self.where else f"number {number}"))
            inner = self._inside(table, f"{key} {name}".rstrip())
            try:
                found.append(read(inner))
                inner.done()
            except ExperimentError as error:
                faults.append(str(error))
        if faults:
            raise ExperimentError("\n".join(faults))
        return tuple(found)

    def fill(self, kind: type[T], /, **given: Any) -> T:
        """Returns a dataclass whose fields are the keys of this table, except for those in `given`."""
        types = get_type_hints(kind)
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]
            if field.name not in given:
                given[field.name] = self._value(field.name, types[field.name], field.default)
        return kind(**given)

    def done(self) -> None:
        """Raises an error for unread keys."""
        for key in self._table:
            if key not in self._asked:
                raise self.error(key, f"has no effect here; {hint(key, sorted(self._asked))}")

    def _value(self, key: str, kind: Any, default: Any) -> Any:
        """Returns the value of a field of a dataclass, checked against its type."""
        required = default is dataclasses.MISSING
        if get_origin(kind) is Literal:
            return self.choice(key, get_args(kind), None if required else default)
        if kind == tuple[str, ...]:
            return self.texts(key)
        if kind == tuple[float, float] | None:
            return self.pair(key)
        if default is None:
            return self.maybe(key, get_args(kind)[0])
        return self.need(key, kind) if required else self.get(key, kind, default)

    def _inside(self, table: dict[str, Any], name: str) -> Fields:
        return Fields(table, self.file, f"{self.where}, {name}" if self.where else name)

    def _list(self, key: str, expected: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
        value = self.raw(key)
        items = value if isinstance(value, list) else [] if value is None else [value]
        for item in items:
            if not isinstance(item, kinds) or isinstance(item, bool):
                raise self.error(key, f"is {item!r}; it must be {expected}")
        return tuple(items)


def read_each(path: Path, key: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
    """Applies `read` to each table `[[key]]` of a file with no other keys."""
    top = Fields(read_toml(path), path)
    found = top.each(key, read)
    top.done()
    return found


def check_unique(names: Iterable[str], file: Path, what: str) -> None:
    """Raises an error if a name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ExperimentError(f"{file}: two of {what} are called `{name}`; give one of them another id")
        seen.add(name)
