"""Tables of a data file, read key by key: what is missing, of the wrong type or unknown is an error with its place."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from anabranch.papers.error import PaperError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises `PaperError` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PaperError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PaperError(f"{path}: is no TOML: {error}") from error


def hint(word: str, known: Iterable[str]) -> str:
    """What may have been meant, and what there is."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    meant = f"did you mean `{close[0]}`? " if close else ""
    return f"{meant}There are: {', '.join(names) or 'none'}"


class Fields:
    """One table of a file, of which every key has to be asked for.

    `where` is its place in the file, such as `claim db6-avg-cmt`. All errors are `PaperError`.
    """

    def __init__(self, table: Mapping[str, Any], file: Path, where: str) -> None:
        self._table = table
        self._asked: set[str] = set()
        self.file = file
        self.where = where

    def error(self, key: str, problem: str) -> PaperError:
        """An error about one key."""
        place = f"{self.where}: " if self.where else ""
        return PaperError(f"{self.file}: {place}`{key}` {problem}")

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def need(self, key: str, kind: type[T]) -> T:
        """The value of a key that has to be there."""
        if key not in self._table:
            raise self.error(key, f"is missing; it has to be {_WORDS[kind]}")
        return self._typed(key, kind)

    def get(self, key: str, kind: type[T], default: T) -> T:
        """The value of a key that need not be there."""
        return self._typed(key, kind) if key in self._table else self._skip(key, default)

    def maybe(self, key: str, kind: type[T]) -> T | None:
        """The value of a key, or `None`."""
        return self._typed(key, kind) if key in self._table else self._skip(key, None)

    def choice(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        """A word out of a few."""
        names = list(known)
        word = self.need(key, str) if default is None else self.get(key, str, default)
        if word not in names:
            raise self.error(key, f"is `{word}`; {hint(word, names)}")
        return word

    def raw(self, key: str) -> Any:
        """The value of a key as it is, or `None`."""
        self._asked.add(key)
        return self._table.get(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text, or nothing."""
        return self._list(key, str, (str,))

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of numbers, or one number, or nothing."""
        return tuple(float(value) for value in self._list(key, float, (int, float)))

    def pair(self, key: str) -> tuple[float, float] | None:
        """Two numbers of which the second is not smaller, or `None`."""
        if key not in self._table:
            return self._skip(key, None)
        values = self.numbers(key)
        if len(values) != 2 or values[0] > values[1]:
            raise self.error(key, "has to be two numbers, the smaller one first")
        return values[0], values[1]

    def tables(self, key: str) -> list[dict[str, Any]]:
        """A list of tables, or one table, or nothing."""
        value = self.raw(key)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in items):
            raise self.error(key, "has to be tables: [[...]]")
        return items

    def inner(self, key: str) -> Fields | None:
        """A table inside, or `None`."""
        value = self.maybe(key, dict)
        return None if value is None else Fields(value, self.file, f"{self.where}, {key}" if self.where else key)

    def done(self) -> None:
        """Raises an error for keys that nobody asked for."""
        for key in self._table:
            if key not in self._asked:
                raise self.error(key, f"means nothing here; {hint(key, sorted(self._asked))}")

    def _skip(self, key: str, default: T) -> T:
        self._asked.add(key)
        return default

    def _typed(self, key: str, kind: type[T]) -> T:
        self._asked.add(key)
        value = self._table[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(key, f"is {value!r}; it has to be {_WORDS[kind]}")
        return value

    def _list(self, key: str, kind: type, kinds: tuple[type, ...]) -> tuple[Any, ...]:
        value = self.raw(key)
        if value is None:
            return ()
        items = value if isinstance(value, list) else [value]
        for item in items:
            if not isinstance(item, kinds) or isinstance(item, bool):
                raise self.error(key, f"holds {item!r}; it has to hold {_WORDS[kind]}")
        return tuple(items)


def each(
    tables: list[dict[str, Any]], file: Path, name: str, read: Callable[[Fields], T], key: str = "id"
) -> tuple[T, ...]:
    """What `read` makes of every table, or one error with the faults of all of them."""
    found: list[T] = []
    faults: list[str] = []
    for index, table in enumerate(tables):
        fields = Fields(table, file, f"{name} {table.get(key, f'number {index + 1}')}")
        try:
            found.append(read(fields))
            fields.done()
        except PaperError as error:
            faults.append(str(error))
    if faults:
        raise PaperError("\n".join(faults))
    return tuple(found)


def unique(names: Iterable[str], file: Path, name: str) -> None:
    """Raises an error if a name is there twice."""
    seen: set[str] = set()
    for each_name in names:
        if each_name in seen:
            raise PaperError(f"{file}: two of {name} are called `{each_name}`; give one of them another id")
        seen.add(each_name)
