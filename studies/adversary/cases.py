"""Stored cases: minima of earlier searches, one canonical scenario in each file."""

from __future__ import annotations

from pathlib import Path

from anabranch.errors import PlanError
from anabranch.experiments.scenarios import tables_of
from anabranch.scenario import Scenario
from studies.degradation.setting import SUBJECT, Setting

CASES = Path(__file__).parent / "cases"


def read_cases(folder: Path = CASES) -> list[Setting]:
    """Returns the stored settings by name.

    Raises `ScenarioError` or `PlanError` for a file that is none, and `PlanError` for a folder without any.
    """
    cases = [_read(file) for file in sorted(folder.glob("*.toml"))]
    if not cases:
        raise PlanError(f"{folder}: no scenarios (*.toml) there")
    return cases


def _read(file: Path) -> Setting:
    table = tables_of(Scenario.read(file).to_toml(resolved=True))
    paths = next((flow["paths"] for flow in table["flow"] if flow["name"] == SUBJECT), None)
    if paths is None:
        raise PlanError(f'{file}: no flow "{SUBJECT}", whose scheme is judged')
    return Setting(file.stem, table, tuple(paths), uneven=True)


def write_case(folder: Path, setting: Setting, scheme: str, about: str) -> Path:
    """Writes a setting with its result as a comment, and returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{setting.name}.toml"
    file.write_text(f"# {about}\n\n{setting.trial(scheme).scenario}", encoding="utf-8")
    return file
