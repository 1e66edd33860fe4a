"""Tables of the study as text and Markdown, and everything as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from anabranch.counting import counted
from anabranch.experiments.pages.document import Table
from studies.bounds.judging import ClassReached, LimitPlan, Reached
from studies.trials.verdict import Judged, Verdict


def class_table(reached: Sequence[ClassReached]) -> Table:
    """A row for each scheme, a column for each class: geometric mean and worst point, in per cent of the bound."""
    groups = list(dict.fromkeys(each.group.name for each in reached))
    goals = [_goal_text(next(each for each in reached if each.group.name == name)) for name in groups]
    rows = [
        [f"`{scheme}`", *(_cell(each) for each in reached if each.scheme == scheme)]
        for scheme in dict.fromkeys(each.scheme for each in reached)
    ]
    rows.append(["goal, every point", *goals])
    return Table(["scheme", *groups], rows, frozenset(range(1, len(groups) + 1)))


def _cell(each: ClassReached) -> str:
    return f"{each.geometric_mean_percent:.0f} ({each.worst.percent.mean:.0f})"


def _goal_text(each: ClassReached) -> str:
    goals = dict.fromkeys(f"{point.goal_percent:g}" for point in each.group.points)
    return " / ".join(goals)


def point_table(reached: Sequence[ClassReached]) -> Table:
    """A row for each point, with a pair of columns for each scheme: per cent of the bound, and ratio to the best path
    alone."""
    schemes = list(dict.fromkeys(each.scheme for each in reached))
    by_place = {(each.point.id, each.scheme): each for group in reached for each in group.points}
    points = list(dict.fromkeys(point_id for point_id, _ in by_place))
    header = ["point", "bound, kbit/s", "goal"]
    for scheme in schemes:
        header += [f"`{scheme}`", "of best path"]
    rows = []
    for point_id in points:
        first = by_place[point_id, schemes[0]]
        row = [point_id, f"{first.bound.kbps:.0f}", f"{first.point.goal_percent:g} %"]
        for scheme in schemes:
            each = by_place[point_id, scheme]
            row += [percent_text(each), "" if each.alone is None else f"{each.alone.mean:.2f}"]
        rows.append(row)
    return Table(header, rows, frozenset(range(1, len(header))))


def percent_text(each: Reached) -> str:
    """`88.1 ± 0.4 %`, the half-width being that of the one-sided bound."""
    judged = each.percent
    if math.isnan(judged.upper):
        return f"{judged.mean:.1f} %"
    return f"{judged.mean:.1f} ± {judged.upper - judged.mean:.1f} %"


def goal_lines(reached: Sequence[ClassReached]) -> list[str]:
    """For each scheme how many goals are reached, and the points where one is missed with what is missing."""
    lines = []
    for scheme in dict.fromkeys(each.scheme for each in reached):
        points = [point for group in reached if group.scheme == scheme for point in group.points]
        missed = [point for point in points if point.percent.verdict is Verdict.BROKEN]
        above = sum(point.percent.mean >= point.point.goal_percent for point in points)
        line = f"{scheme}: the mean is at its goal at {above} of {counted(len(points), 'point')}; "
        line += f"{counted(len(missed), 'goal is', 'goals are')} missed"
        if missed:
            worst = sorted(missed, key=lambda point: -point.missing_percent)[:5]
            listed = ", ".join(f"{point.point.id} by {point.missing_percent:.1f}" for point in worst)
            line += f", most at {listed} per cent of the bound"
        below = [point for point in points if point.alone and point.alone.verdict is Verdict.BROKEN]
        if below:
            least = min(below, key=lambda point: point.alone.mean if point.alone else 0.0)
            ratio = least.alone.mean if least.alone else 0.0
            line += f"; worse than its best path alone at {len(below)}, at worst {ratio:.2f} at {least.point.id}"
        lines.append(line + ".")
    return lines


def book_parts(plan: LimitPlan, reached: Sequence[ClassReached]) -> dict[str, str]:
    """The tables of the book's page."""
    lines = "\n".join(f"* {line}" for line in goal_lines(reached))
    return {
        "classes": f"{class_table(reached).markdown()}\n\n{conditions(plan)}.\n\n{lines}",
        "points": point_table(reached).markdown(),
    }


def conditions(plan: LimitPlan) -> str:
    """How it was run, in a line."""
    return (
        f"{counted(len(plan.seeds), 'seed')} of {plan.duration_s:g} s, profile rfc9260; "
        "geometric mean (worst point) of goodput in per cent of the bound"
    )


def as_json(plan: LimitPlan, reached: Sequence[ClassReached]) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "seeds": list(plan.seeds),
        "duration_s": plan.duration_s,
        "classes": [
            {
                "class": each.group.name,
                "scheme": each.scheme,
                "geometric_mean_percent": each.geometric_mean_percent,
                "worst_percent": each.worst.percent.mean,
                "points": [_point_json(point) for point in each.points],
            }
            for each in reached
        ],
    }


def _point_json(each: Reached) -> dict[str, Any]:
    return {
        "point": each.point.id,
        "bound_kbps": each.bound.kbps,
        "capacity_kbps": each.bound.capacity_kbps,
        "best_alone_bound_kbps": max(each.bound.alone_kbps),
        "goal_percent": each.point.goal_percent,
        "percent": judged_json(each.percent),
        "of_best_path_alone": None if each.alone is None else judged_json(each.alone),
    }


def judged_json(judged: Judged) -> dict[str, Any]:
    """A mean with its bounds; none where there is one value only."""
    ends = {name: None if math.isnan(end) else end for name, end in (("lower", judged.lower), ("upper", judged.upper))}
    return {"verdict": judged.verdict.value, "n": judged.n, "mean": judged.mean, **ends}
