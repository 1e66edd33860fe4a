"""Scenario files of experiments, with settings applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from anabranch import _native
from anabranch.errors import ExperimentError, ScenarioError, SchemeError
from anabranch.experiments.model import Names, Settings, settings_text
from anabranch.text_file import read_text
from anabranch.values import literal


def resolved(path: Path, settings: Settings) -> str:
    """Returns the scenario of a file with these settings, as canonical TOML with every default in it.

    Raises `ExperimentError` if the file cannot be read or the scenario is invalid.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error
    try:
        return _native.resolve(text, str(path), [(key, literal(value)) for key, value in settings.items()])
    except ScenarioError as error:
        given = f" (with {settings_text(settings)})" if settings else ""
        raise ExperimentError(f"{path}{given}: {error}") from error


def tables_of(scenario: str) -> dict[str, Any]:
    """Returns the tables of a canonical scenario."""
    return tomli.loads(scenario)


def names_in(scenario: str) -> Names:
    """Returns the names of the paths and flows of a canonical scenario."""
    tables = tables_of(scenario)
    return Names(*(tuple(table["name"] for table in tables[key]) for key in ("path", "flow")))


def scheme_named(scenario: str, expression: str) -> str:
    """Returns the full expression of a scheme.

    Raises `ExperimentError` unless the expression has exactly one scheme.
    """
    try:
        found = _native.schemes_of(scenario, "scenario", expression)
    except SchemeError as error:
        raise ExperimentError(str(error)) from error
    if len(found) != 1:
        raise ExperimentError(f"`{expression}` stands for {len(found)} schemes: name one")
    return found[0]
