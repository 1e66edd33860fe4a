"""Scenarios of experiments with values put in."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from anabranch import _native
from anabranch.errors import ScenarioError, SchemeError
from anabranch.papers.error import PaperError
from anabranch.papers.model import Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Names:
    """What paths and flows of a scenario are called."""

    paths: tuple[str, ...]
    flows: tuple[str, ...]


def resolved(path: Path, settings: Settings) -> str:
    """The scenario of a file with these values, as canonical TOML with every default in it.

    Raises `PaperError` if the file cannot be read or the scenario is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PaperError(f"{path}: cannot be read: {error}") from error
    try:
        return _native.resolve(text, str(path), [(key, literal(value)) for key, value in settings.items()])
    except ScenarioError as error:
        given = f" (with {', '.join(f'{key}={value}' for key, value in settings.items())})" if settings else ""
        raise PaperError(f"{path}{given}: {error}") from error


def names_in(scenario: str) -> Names:
    """What paths and flows of a canonical scenario are called."""
    table = tomllib.loads(scenario)
    return Names(
        tuple(path["name"] for path in table["path"]),
        tuple(flow["name"] for flow in table["flow"]),
    )


def table_of(scenario: str) -> dict[str, Any]:
    """A canonical scenario as tables."""
    return tomllib.loads(scenario)


def schemes_named(scenario: str, expression: str) -> str:
    """The scheme that an expression stands for, written in full.

    Raises `PaperError` unless there is exactly one.
    """
    try:
        found = _native.schemes_of(scenario, "scenario", expression)
    except SchemeError as error:
        raise PaperError(str(error)) from error
    if len(found) != 1:
        raise PaperError(f"`{expression}` stands for {len(found)} schemes: name one")
    return found[0]


def literal(value: Any) -> str:
    """A value as TOML in one line.

    >>> literal({"model": "bernoulli", "rate": 0.1})
    '{ "model" = "bernoulli", "rate" = 0.1 }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{literal(key)} = {literal(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").rstrip("\n")
