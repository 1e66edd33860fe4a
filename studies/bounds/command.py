"""Goodput beside the most that links and receive buffer admit."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.command.parser import Parser
from anabranch.errors import PlanError
from studies.options import (
    STATUS,
    add_options,
    check_files,
    interrupted,
    options_of,
    schemes_of,
    seconds,
    seeds_of,
    status_of,
)

if TYPE_CHECKING:
    from studies.bounds.judging import ClassReached, LimitPlan
    from studies.bounds.points import PointClass
    from studies.trials.known import Broken

_EXAMPLES = f"""\
Examples:
  Four schemes at all points, 30 seeds of 200 s:
    make study NAME=bounds
  One scheme at two classes of points, with fewer seeds:
    make study NAME=bounds ARGS='--schemes bonded --classes loss10,buffer --seeds 6'
  A fixed part in some seconds:
    make study NAME=bounds ARGS=--quick

{STATUS}"""

_SCHEMES = "cmt,db-cmt,cmt-dfr,bonded"
_QUICK_SEEDS, _QUICK_S = "4", 60.0


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    from studies.bounds import judging

    plan = _plan(options)
    check_files(options, ("classes", "points"))
    try:
        reached, _ = judging.reach(plan, options_of(options))
    except KeyboardInterrupt as stop:
        return interrupted(stop)
    _show(options, plan, reached)
    if options.book:
        from studies.bounds.pages import book_parts
        from studies.trials.book import write_parts

        write_parts(options.book, book_parts(plan, reached))
    return status_of(options, _broken(reached))


def _parser() -> Parser:
    parser = Parser(
        prog="studies bounds",
        description="Run schemes where links and receive buffer bind, and print their goodput in per cent of the most "
        "that these admit to an ordered stream, beside goals and the best path alone.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--schemes", metavar="LIST", default=_SCHEMES, help=f"schemes to run, or all [default: {_SCHEMES}]")
    add("--classes", metavar="LIST", help="classes of points [default: all]")
    add("--points", metavar="FILE", type=Path, help="a file with other points, in the form of those of the package")
    add("--seeds", metavar="N|LIST", help="seeds [default: 30]")
    add("--duration", metavar="TIME", type=seconds, help="simulated time of a run [default: 200s]")
    add("--no-alone", dest="alone", action="store_false", help="leave out the runs over each path alone")
    add_options(parser)
    return parser


def _plan(options: argparse.Namespace) -> LimitPlan:
    from studies.bounds.judging import LimitPlan
    from studies.bounds.points import DATA, read_points

    classes = _chosen(read_points(options.points or DATA), options.classes)
    return LimitPlan(
        classes=tuple(_first_and_last(group) for group in classes) if options.quick else classes,
        schemes=schemes_of(options.schemes),
        seeds=seeds_of(options.seeds or (_QUICK_SEEDS if options.quick else "30")),
        duration_s=options.duration or (_QUICK_S if options.quick else 200.0),
        alone=options.alone,
    )


def _chosen(classes: Sequence[PointClass], listed: str | None) -> tuple[PointClass, ...]:
    if listed is None:
        return tuple(classes)
    wanted = [name.strip() for name in listed.split(",")]
    names = [group.name for group in classes]
    if unknown := [name for name in wanted if name not in names]:
        raise PlanError(f"--classes: there is no class `{unknown[0]}`; there are: {', '.join(names)}")
    return tuple(group for group in classes if group.name in wanted)


def _first_and_last(group: PointClass) -> PointClass:
    from studies.bounds.points import PointClass

    return PointClass(group.name, group.about, tuple(dict.fromkeys((group.points[0], group.points[-1]))))


def _show(options: argparse.Namespace, plan: LimitPlan, reached: Sequence[ClassReached]) -> None:
    from studies.bounds.pages import as_json, class_table, conditions, goal_lines, point_table
    from studies.trials.text_table import text_table

    everything = json.dumps(as_json(plan, reached), indent=1)
    lines = goal_lines(reached)
    if options.json:
        print(everything)
    else:
        print(f"{text_table(class_table(reached))}\n\n{conditions(plan)}\n")
        print("\n".join(lines))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        tables = [class_table(reached).markdown(), conditions(plan) + ".", "\n".join(f"* {line}" for line in lines)]
        tables.append(point_table(reached).markdown())
        (options.out / "bounds.md").write_text("\n\n".join(tables) + "\n", encoding="utf-8")
        (options.out / "bounds.json").write_text(everything + "\n", encoding="utf-8")


def _broken(reached: Sequence[ClassReached]) -> list[Broken]:
    from studies.trials.known import Broken
    from studies.trials.verdict import Verdict

    found = []
    for point in (point for group in reached for point in group.points):
        if point.percent.verdict is Verdict.BROKEN:
            found.append(Broken(point.scheme, "goal", point.point.id))
        if point.alone and point.alone.verdict is Verdict.BROKEN:
            found.append(Broken(point.scheme, "best path alone", point.point.id))
    return found
