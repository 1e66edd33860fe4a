"""Goodput beside the most that links and receive buffer admit."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.experiments.limits.outcome import Plan
from studies.bounds.judging import class_table, judge
from studies.bounds.points import DATA, PointClass, read_points
from studies.options import STATUS, add_options, bench_of, chosen, conclude, schemes_of, seconds, seeds_of

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
    classes, plan = _classes(options), _plan(options)
    bench = bench_of(options)
    outcomes = judge(classes, options.alone, plan, bench)
    return conclude(options, "bounds", plan, outcomes, bench, [class_table(classes, outcomes)])


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
    add(
        "--points",
        metavar="FILE",
        type=Path,
        default=DATA,
        help="a file with other points, in the form of data/points.toml",
    )
    add("--seeds", metavar="N|LIST", help="seeds [default: 30]")
    add("--duration", metavar="TIME", type=seconds, help="simulated time of a run [default: 200s]")
    add("--no-alone", dest="alone", action="store_false", help="leave out the runs over each path alone")
    add_options(parser)
    return parser


def _classes(options: argparse.Namespace) -> list[PointClass]:
    classes = read_points(options.points)
    wanted = chosen("--classes", options.classes, [group.name for group in classes], "class")
    kept = [group for group in classes if group.name in wanted]
    return [_first_and_last(group) for group in kept] if options.quick else kept


def _first_and_last(group: PointClass) -> PointClass:
    return replace(group, points=tuple(dict.fromkeys((group.points[0], group.points[-1]))))


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(
        schemes=schemes_of(options.schemes),
        seeds=seeds_of(options.seeds or (_QUICK_SEEDS if options.quick else "30")),
        duration_s=options.duration or (_QUICK_S if options.quick else 200.0),
    )
