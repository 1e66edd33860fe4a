"""Points with their runs: per cent of the bound, goals, and the ratio to the best path alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from studies.bounds.bound import GOODPUT_TO_BOUND, Bound, bound_of
from studies.bounds.points import FLOW, LimitPoint, PointClass, scenario_of
from studies.trials import Measured, Options, Trial, measure
from studies.trials.alone import ratios_left_out
from studies.trials.verdict import LEAST_SEEDS, Judged, Verdict, at_least


@dataclass(frozen=True, slots=True)
class Reached:
    """A scheme at a point. `percent` is of the bound, `alone` the ratio to its own best path alone."""

    point: LimitPoint
    bound: Bound
    scheme: str
    percent: Judged
    alone: Judged | None

    @property
    def missing_percent(self) -> float:
        """What is missing to the goal, in per cent of the bound; none if it is reached."""
        return max(self.point.goal_percent - self.percent.mean, 0.0)


@dataclass(frozen=True, slots=True)
class ClassReached:
    """A scheme over the points of a class."""

    group: PointClass
    scheme: str
    points: tuple[Reached, ...]

    @property
    def geometric_mean_percent(self) -> float:
        """Over the points of the class."""
        return geometric_mean([each.percent.mean for each in self.points])

    @property
    def worst(self) -> Reached:
        """The point with the least part of its bound."""
        return min(self.points, key=lambda each: each.percent.mean)

    @property
    def missed(self) -> tuple[Reached, ...]:
        """The points whose goals are missed."""
        return tuple(each for each in self.points if each.percent.verdict is Verdict.BROKEN)


def geometric_mean(values: Sequence[float]) -> float:
    """Zero if one is."""
    return float(np.exp(np.log(values).mean())) if min(values) > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LimitPlan:
    """What is run: classes of points, schemes, seeds, seconds, and whether each path is run alone too."""

    classes: tuple[PointClass, ...]
    schemes: tuple[str, ...]
    seeds: tuple[int, ...]
    duration_s: float
    alone: bool = True
    least_seeds: int = LEAST_SEEDS


def reach(plan: LimitPlan, options: Options) -> tuple[list[ClassReached], Measured]:
    """Runs the plan and judges it."""
    trials = [trial for group in plan.classes for point in group.points for trial in _trials(plan, point)]
    measured = measure("limit", trials, plan.seeds, options)
    return [
        ClassReached(group, scheme, tuple(_reached(plan, point, scheme, measured) for point in group.points))
        for group in plan.classes
        for scheme in plan.schemes
    ], measured


def _trials(plan: LimitPlan, point: LimitPoint) -> Iterator[Trial]:
    ways = [None, *point.path_names] if plan.alone and len(point.paths) > 1 else [None]
    for scheme in plan.schemes:
        for way in ways:
            yield _trial(plan, point, scheme, way)


def _trial(plan: LimitPlan, point: LimitPoint, scheme: str, alone: str | None) -> Trial:
    return Trial(point.id, scenario_of(point, plan.duration_s, alone), scheme)


def _reached(plan: LimitPlan, point: LimitPoint, scheme: str, measured: Measured) -> Reached:
    def goodput_kbps(alone: str | None) -> list[float]:
        trial = _trial(plan, point, scheme, alone)
        return [figures.goodput_kbps[FLOW] for figures in measured.of(trial, plan.seeds)]

    bound = bound_of(point)
    together = goodput_kbps(None)
    percent = [100 * value * GOODPUT_TO_BOUND / bound.kbps for value in together]
    alone = None
    if plan.alone and len(point.paths) > 1:
        ratios = ratios_left_out(together, {name: goodput_kbps(name) for name in point.path_names})
        alone = at_least(ratios, NEVER_WORSE, plan.least_seeds)
    return Reached(point, bound, scheme, at_least(percent, point.goal_percent, plan.least_seeds), alone)


NEVER_WORSE = 0.97
"""What a scheme has to have of the goodput of its best path alone."""
