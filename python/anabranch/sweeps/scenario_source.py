"""Reader of the scenario of a sweep, which is given as an object or as the path of a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from anabranch.errors import ScenarioError
from anabranch.text_file import read_text


@runtime_checkable
class HasToml(Protocol):
    """Object with the text of a scenario file, such as `anabranch.Scenario`."""

    @property
    def folder(self) -> Path | None:
        """Folder of files that its flows send."""

    def to_toml(self) -> str:
        """Returns the text of the scenario."""


ScenarioLike: TypeAlias = "HasToml | str | os.PathLike[str]"


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """Given scenario: its text, its name in messages, its short name, and the folder of its files.

    The text is that of the file. In the canonical text, a value that follows another by default, such as the rate of
    the reverse direction, would no longer do so.
    """

    text: str
    file: str
    name: str
    folder: Path


def read_scenario(scenario: ScenarioLike) -> ScenarioSource:
    """Returns the text of a scenario, given as an object or as a path. Raises `ScenarioError` if it cannot be read."""
    if isinstance(scenario, HasToml):
        folder = scenario.folder or Path()
        name = getattr(scenario, "name", None) or "scenario"
        return ScenarioSource(scenario.to_toml(), name, Path(name).stem, folder.absolute())
    if not isinstance(scenario, (str, os.PathLike)) or "\n" in str(scenario):
        raise ScenarioError(f"expected a Scenario or the path of a scenario file, found {_shortened(repr(scenario))}")
    path = Path(scenario)
    try:
        text = read_text(path)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{path}: the scenario cannot be read: {reason}") from error
    return ScenarioSource(text, str(path), path.stem, path.parent.absolute())


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
