"""Keys and values on a command line: `KEY=VALUE`, `KEY=V1,V2`."""

from __future__ import annotations

import re
import sys

from anabranch.errors import PlanError
from anabranch.values import Value, plain

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_OPENING = {"[": "]", "{": "}", "(": ")"}
_EXAMPLE = "path.path-2.loss=0,0.01"


def parse_over(text: str) -> tuple[str, list[Value]]:
    """Parses a key and its values: `path.path-2.loss=0,0.01`. Raises `PlanError`."""
    key, values = _divided(text)
    return key, [parse_value(key, value) for value in _parts(key, values)]


def parse_override(text: str) -> tuple[str, Value]:
    """Parses a key and its value: `run.duration=10 s`. Raises `PlanError`."""
    key, value = _divided(text)
    return key, parse_value(key, value)


def _divided(text: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not (key and equals and value):
        raise PlanError(f"expected KEY=VALUE such as {_EXAMPLE}, found `{text}`")
    return key, value


def parse_value(key: str, text: str) -> Value:
    """Parses a value in TOML, or as text if it is not TOML, as `anabranch run --set` does. Raises `PlanError`."""
    try:
        return plain(tomllib.loads(f"value = {text}")["value"])
    except (tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        if re.match(r"[\[{\"']", text):
            raise PlanError(f"`{key}`: `{text}` is not TOML: {error}") from error
        return text


def _parts(key: str, text: str) -> list[str]:
    """Splits at commas outside quotes and brackets."""
    parts = [""]
    closing: list[str] = []
    quote = ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _OPENING:
            closing.append(_OPENING[character])
        elif closing and character == closing[-1]:
            closing.pop()
        elif character == "," and not closing:
            parts.append("")
            continue
        parts[-1] += character
    stripped = [part.strip() for part in parts]
    if not all(stripped):
        raise PlanError(f"`{key}`: has an empty value between its commas")
    return stripped
