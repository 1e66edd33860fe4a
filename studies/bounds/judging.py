"""Points with their runs: per cent of the bound with goals, and the ratio to the best path alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.limits.pages import by_check
from anabranch.experiments.pages.document import Table
from anabranch.experiments.points import Bench, Trial
from studies.alone import ratios_left_out
from studies.bounds.bound import GOODPUT_TO_BOUND, bound_of
from studies.bounds.points import SUBJECT, LimitPoint, PointClass, scenario_of

GOAL, ALONE = "goal", "best path alone"

NEVER_WORSE = 0.97
"""Least part of the goodput of the best path alone that a scheme has to reach."""


def judge(classes: Sequence[PointClass], alone: bool, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Runs the points with every scheme, each path `alone` too if asked for, and judges them."""
    points = [point for group in classes for point in group.points]
    ways = {point: point.path_names if alone and len(point.paths) > 1 else [] for point in points}
    trials = [
        _trial(plan, point, scheme, way) for point in points for scheme in plan.schemes for way in (None, *ways[point])
    ]
    bench.run("bounds", trials, plan.seeds)
    goals = plan.outcomes(
        GOAL,
        "Goodput in per cent of the bound",
        "at least the goal of the point",
        points,
        lambda scheme, point: _goal(plan, point, scheme, bench),
    )
    ratios = plan.outcomes(
        ALONE,
        "Goodput beside that of the best path alone",
        f"at least {NEVER_WORSE:g} of it",
        [point for point in points if ways[point]],
        lambda scheme, point: _ratio(plan, point, scheme, bench),
    )
    return goals + ratios if any(ways.values()) else goals


def _trial(plan: Plan, point: LimitPoint, scheme: str, alone: str | None = None) -> Trial:
    return Trial(point.id, scenario_of(point, plan.duration_s, alone), scheme)


def _goodputs(plan: Plan, point: LimitPoint, scheme: str, bench: Bench, alone: str | None = None) -> list[float]:
    runs = bench.of(_trial(plan, point, scheme, alone), plan.seeds)
    return [figures.goodput_kbps[SUBJECT] for figures in runs]


def _goal(plan: Plan, point: LimitPoint, scheme: str, bench: Bench) -> Finding:
    bound_kbps = bound_of(point).kbps
    percent = [100 * value * GOODPUT_TO_BOUND / bound_kbps for value in _goodputs(plan, point, scheme, bench)]
    return plan.find(point.id, percent, point.goal_percent, note=f"bound {bound_kbps:.0f} kbit/s")


def _ratio(plan: Plan, point: LimitPoint, scheme: str, bench: Bench) -> Finding:
    alone = {name: _goodputs(plan, point, scheme, bench, name) for name in point.path_names}
    ratios = ratios_left_out(_goodputs(plan, point, scheme, bench), alone)
    return plan.find(point.id, ratios, NEVER_WORSE)


def class_table(classes: Sequence[PointClass], outcomes: Sequence[CheckOutcome]) -> Table:
    """Returns a row for each scheme, a column for each class: geometric mean and worst point, in per cent of the
    bound."""
    rows = [[f"`{each.scheme}`", *_cells(classes, each)] for each in by_check(outcomes)[GOAL]]
    goals = [" / ".join(dict.fromkeys(f"{point.goal_percent:g}" for point in group.points)) for group in classes]
    rows.append(["goal, every point", *goals])
    return Table(["scheme", *(group.name for group in classes)], rows, frozenset(range(1, len(classes) + 1)))


def _cells(classes: Sequence[PointClass], goal: CheckOutcome) -> Iterator[str]:
    percent = {finding.setting: finding.judged.mean for finding in goal.findings}
    for group in classes:
        own = [percent[point.id] for point in group.points]
        yield f"{geometric_mean(own):.0f} ({min(own):.0f})"


def geometric_mean(values: Sequence[float]) -> float:
    """Returns the geometric mean, which is zero if a value is."""
    return float(np.exp(np.log(values).mean())) if min(values) > 0 else 0.0
