"""Settings that exist already: the points of the study bounds, and the points of a plan of a sweep."""

from __future__ import annotations

from pathlib import Path

from anabranch.experiments.scenarios import tables_of
from anabranch.sweeps.plan import read_plan
from anabranch.sweeps.steps import read_grid
from studies.bounds.points import LimitPoint, table_of
from studies.degradation.setting import Setting, run_table, subject


def of_point(point: LimitPoint, duration_s: float) -> Setting:
    """Returns the setting of a point with a bound of goodput."""
    return Setting(point.id, table_of(point, duration_s), tuple(point.path_names), uneven=_is_uneven(point))


def _is_uneven(point: LimitPoint) -> bool:
    unlike = len({(path.rate_kbps, path.delay_ms) for path in point.paths}) > 1
    return unlike or any(path.loss > 0 for path in point.paths)


def of_plan(file: Path, duration_s: float) -> list[Setting]:
    """Returns a setting for each point of a plan, with one flow over all of its paths.

    Raises `PlanError`, `SweepError` or `ScenarioError` if the plan cannot be read.
    """
    plan = read_plan(file)
    grid = read_grid(plan.scenario, plan.over, 1, plan.overrides, None)
    return [
        _of_text(f"{file.stem}-{number}", point.scenario, duration_s) for number, point in enumerate(grid.points, 1)
    ]


def _of_text(name: str, text: str, duration_s: float) -> Setting:
    document = tables_of(text)
    paths = [path["name"] for path in document["path"]]
    table = {**document, "run": run_table(duration_s), "flow": [subject(paths)]}
    return Setting(name, table, tuple(paths), uneven=True)
