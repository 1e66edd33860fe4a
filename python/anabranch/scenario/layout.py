"""Writer of scenario files, with a header for each table, and losses and lists in one line.

tomli-w writes the values. Its layout would put short paths before all other tables, as a list of inline tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tomli_w

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def document(table: Mapping[str, Any], above: str = "") -> str:
    """Returns the text of a table without its header, and of its inner tables, whose headers begin with `above`."""
    lines = [f"{bare(key)} = {literal(value)}\n" for key, value in table.items() if not has_header(key, value)]
    for key, value in table.items():
        if not has_header(key, value):
            continue
        name = f"{above}{bare(key)}"
        if isinstance(value, list):
            lines += [f"\n[[{name}]]\n{document(item, f'{name}.')}" for item in value]
        elif key == "scheme":
            lines += [f"\n[{name}.{bare(scheme)}]\n{document(item, name)}" for scheme, item in value.items()]
        else:
            lines.append(f"\n[{name}]\n{document(value, f'{name}.')}")
    return "".join(lines).lstrip("\n") if not above else "".join(lines)


def has_header(key: str, value: Any) -> bool:
    """Returns `True` if a value has one or more headers of its own."""
    if key == "loss":
        return False
    return isinstance(value, dict) or (isinstance(value, list) and value != [] and all(map(is_table, value)))


def is_table(value: Any) -> bool:
    return isinstance(value, dict)


def bare(key: str) -> str:
    """Returns a key, in quotes if it needs them."""
    return key if BARE_KEY.fullmatch(key) else literal(key)


def literal(value: Any) -> str:
    """Returns a value in one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{bare(key)} = {literal(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").removesuffix("\n")
