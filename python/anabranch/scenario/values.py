"""Values put into a scenario by dotted key, as `--set` does it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import tomli_w

NAMED = ("path", "flow", "link")
"""Lists whose elements have names."""


def literal(value: Any) -> str:
    """A value as TOML in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{literal(key)} = {literal(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").removesuffix("\n")


def put(table: dict[str, Any], key: str, value: Any) -> None:
    """Puts a value in, in all places that a key matches. The native reader has accepted both: nothing can be wrong."""
    parts = key.split(".")
    if parts[0] == "flow" and len(parts) > 1:
        table.setdefault("flow", [{}])
    put_in_table(table, parts, value)


def put_in_table(table: dict[str, Any], parts: list[str], value: Any) -> None:
    first, *rest = parts
    if not rest:
        # A table that is put in several places must not be shared: a later key may change one of them.
        table[first] = deepcopy(value)
        return
    found = table.setdefault(first, {})
    if isinstance(found, list):
        put_in_list(found, first, rest, value)
    else:
        put_in_table(found, rest, value)


def put_in_list(items: list[Any], key: str, parts: list[str], value: Any) -> None:
    wanted, *rest = parts
    for index in chosen(items, key, wanted):
        if rest:
            put_in_table(items[index], rest, value)
        else:
            items[index] = deepcopy(value)


def chosen(items: list[Any], key: str, wanted: str) -> list[int]:
    """The elements that a part of a key stands for: by name, by index from 0, or all."""
    if wanted == "*":
        return list(range(len(items)))
    names = [element(key, index, item) for index, item in enumerate(items)]
    return [names.index(wanted)] if wanted in names else [int(wanted)]


def element(key: str, index: int, item: Any) -> str:
    """What an element of a list is called in a key."""
    name = item.get("name") if isinstance(item, Mapping) else None
    if isinstance(name, str):
        return name
    return f"{key}-{index + 1}" if key in NAMED else str(index)
