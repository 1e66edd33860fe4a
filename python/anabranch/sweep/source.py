"""Where the scenario of a sweep comes from: the one place that knows what stands for a scenario."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from anabranch.errors import ScenarioError


@runtime_checkable
class Written(Protocol):
    """What can write itself down as a scenario file, as `anabranch.Scenario` does."""

    folder: Path | None

    def to_toml(self) -> str:
        """The text of the scenario."""


ScenarioLike: TypeAlias = "Written | str | os.PathLike[str]"


@dataclass(frozen=True, slots=True)
class Source:
    """A scenario as it was given: its text, what messages call it, its short name, and where its files are looked for.

    The text is that of the file and not the canonical one: there a value that follows another by default, such as the
    rate of the way back, no longer does so.
    """

    text: str
    file: str
    name: str
    folder: Path


def read_source(scenario: ScenarioLike) -> Source:
    """The text of a scenario, given as such or as the path of a file. Raises `ScenarioError` if it cannot be read."""
    if isinstance(scenario, Written):
        folder = scenario.folder or Path()
        name = getattr(scenario, "name", None) or "scenario"
        return Source(scenario.to_toml(), name, Path(name).stem, folder.absolute())
    path = Path(scenario)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{path}: the scenario cannot be read: {reason}") from error
    return Source(text, str(path), path.stem, path.parent.absolute())
