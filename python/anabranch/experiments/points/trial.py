"""Points with schemes, and their form as the grid of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch import _native
from anabranch.sweeps.axis import Axis
from anabranch.sweeps.files import Files
from anabranch.sweeps.grid import Cell, Grid, Point
from anabranch.sweeps.key import CellKey
from anabranch.sweeps.scenario_source import ScenarioSource
from anabranch.version import engine


@dataclass(frozen=True, slots=True)
class Trial:
    """Point with a scheme. The scheme applies to those flows of the point that name no scheme.

    `scenario` is canonical text and may not name files. Messages and tables call the point by its name.
    """

    point: str
    scenario: str
    scheme: str


def grid_of(trials: Sequence[Trial], seeds: Sequence[int]) -> Grid:
    """Returns a grid with a point and a cell for each trial.

    Raises the errors of the native module for an invalid scenario or scheme.
    """
    folder = Path().absolute()
    fingerprint = engine().fingerprint
    points = tuple(Point((str(at),), trial.scenario, {}) for at, trial in enumerate(trials))
    cells = []
    for at, trial in enumerate(trials):
        label = _native.Prepared(trial.scenario, trial.scheme, folder, trial.point, None).scheme
        key = CellKey(fingerprint=fingerprint, scenario=trial.scenario, scheme=label, files={})
        cells.append(Cell(at, trial.scheme, label, key))
    return Grid(
        given=ScenarioSource(trials[0].scenario, "points", "points", folder),
        overrides=(),
        axes=(Axis(("point",), tuple(point.values for point in points)),),
        points=points,
        cells=tuple(cells),
        seeds=tuple(seeds),
        files=Files(folder),
    )
