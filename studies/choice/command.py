"""Runs all schemes on a grid of links and finds the best one of each cell."""

from __future__ import annotations

from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.errors import PlanError
from anabranch.experiments.cost import Cost
from anabranch.experiments.stored import about_now
from studies.choice import making
from studies.choice.explaining import explained
from studies.choice.making import make, run_plans, write
from studies.options import add_run_options, sweep_options
from studies.stored import block_json, write_study

_EXAMPLES = """\
Examples:
  The full grid, some twenty minutes on two processors:
    make study NAME=choice
  A part of it, in about a minute:
    make study NAME=choice ARGS='--quick --out out/choice-quick'
  The full grid, and the results that the book's chapter is made from:
    make study NAME=choice ARGS='--store docs/results/choice.json.xz'

Finished runs are kept in the cache, so that an interrupted command resumes.

Status: 0 all went well, 1 something could not be run, read or written, 2 the command line or a plan is wrong, 130
Ctrl-C."""


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    if options.quick and options.store:
        raise PlanError("--store: takes the full grid only; leave --quick out")
    grid, shared = run_plans(options.quick, sweep_options(options))
    cost = Cost()
    for name, results in (("grid", grid), ("sharing", shared)):
        results.write(options.out / name)
        cost.add(results)
    made = make(grid, shared, explained(making.PLANS / "two-links.toml"))
    write(made, options.out)
    print(f"Tables: {options.out / 'summary.md'}, {options.out}/*.csv; maps: {options.out / 'maps'}")
    if options.store:
        parts = {name: [block_json(block) for block in part] for name, part in made.parts.items()}
        write_study(options.store, about_now(cost), {"parts": parts})
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="studies choice",
        description="Run one grid of links with all schemes, and print the places of tables and maps of the best ones.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("out/choice"), help="folder for results, tables and maps"
    )
    parser.add_argument(
        "--store", metavar="FILE", type=Path, help="write the results that the book's tables are made from"
    )
    add_run_options(parser)
    return parser
