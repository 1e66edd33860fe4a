"""Search for settings in which a scheme falls far below its best path."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive
from anabranch.errors import PlanError
from anabranch.experiments.limits.outcome import CheckOutcome, Plan
from anabranch.experiments.pages.document import Table
from studies.adversary.cases import CASES, read_cases, write_case
from studies.adversary.checking import check_cases, check_search
from studies.adversary.searching import Search
from studies.degradation.setting import Setting
from studies.options import STATUS, add_options, bench_of, chosen, conclude, schemes_of, seconds, seeds_of

_EXAMPLES = f"""\
Examples:
  5,000 settings in ten restarts, and the confirmed minima as scenarios in a folder:
    make study NAME=adversary ARGS='--evaluations 5000 --restarts 10 --minima out/minima'
  Another search, of two schemes:
    make study NAME=adversary ARGS='--checks search --schemes braid,cmt --seed 7'
  The minima of earlier searches alone, then those in another folder:
    make study NAME=adversary ARGS='--checks cases'
    make study NAME=adversary ARGS='--checks cases --cases out/minima'
  A short search with a fixed seed and the stored minima, in a minute:
    make study NAME=adversary ARGS=--quick

Checks: search, cases.

{STATUS}"""

_CHECKS = ("search", "cases")
_SCHEMES = "braid"
_RIVALS = "sctp,cmt,cmt-qa,db-cmt"
_EVALUATIONS, _RESTARTS, _DURATION_S, _LISTED = 1000, 4, 30.0, 20
_QUICK_EVALUATIONS, _QUICK_RESTARTS, _QUICK_DURATION_S, _QUICK_LISTED = 64, 2, 10.0, 4
_LEAST = 0.85
_CONFIRMING_FROM = 1_000_001
"""First seed of the confirmation."""

_CONFIRMING = 5


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    checks = chosen("--checks", options.checks, list(_CHECKS), "check")
    extent, plan = _search(options), _plan(options)
    rivals = schemes_of(options.rivals, "--rivals") if options.rivals else ()
    bench = bench_of(options)
    outcomes: list[CheckOutcome] = []
    if "search" in checks:
        count = _QUICK_LISTED if options.quick else _LISTED
        found, minima = check_search(extent, count, options.least, rivals, plan, bench)
        outcomes += found
        if options.minima:
            _write_minima(options.minima, found, minima)
    if "cases" in checks:
        outcomes += check_cases(read_cases(options.cases), options.least, rivals, plan, bench)[0]
    return conclude(options, "adversary", plan, outcomes, bench, [_minima_table(outcomes)])


def _parser() -> Parser:
    parser = Parser(
        prog="studies adversary",
        description="Search the space of settings for those in which a scheme has the smallest part of the goodput of "
        "its best path alone, and confirm each minimum with other seeds.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--schemes", metavar="LIST", default=_SCHEMES, help=f"schemes to check, or all [default: {_SCHEMES}]")
    add("--checks", metavar="LIST", help="checks to carry out [default: all]")
    add("--evaluations", metavar="N", type=positive, help=f"settings to evaluate [default: {_EVALUATIONS}]")
    add("--restarts", metavar="N", type=positive, help=f"independent searches [default: {_RESTARTS}]")
    add("--seed", metavar="SEED", type=positive, default=1, help="seed of the search and of its runs [default: 1]")
    add("--seeds", metavar="N|LIST", help=f"seeds that confirm a minimum [default: {_CONFIRMING} others]")
    add("--least", metavar="RATIO", type=_ratio, default=_LEAST, help=f"limit of the ratio [default: {_LEAST:g}]")
    add("--rivals", metavar="LIST", default=_RIVALS, help=f"schemes on the best path, shown [default: {_RIVALS}]")
    add("--duration", metavar="TIME", type=seconds, help=f"simulated time of a run [default: {_DURATION_S:g}s]")
    add("--cases", metavar="DIR", type=Path, default=CASES, help="folder of stored minima [default: the study's]")
    add("--minima", metavar="DIR", type=Path, help="folder for the confirmed minima as scenarios")
    add_options(parser)
    return parser


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no ratio above 0 and up to 1, such as {_LEAST:g}")
    return value


def _search(options: argparse.Namespace) -> Search:
    quick = options.quick
    return Search(
        seed=options.seed,
        restarts=options.restarts or (_QUICK_RESTARTS if quick else _RESTARTS),
        evaluations=options.evaluations or (_QUICK_EVALUATIONS if quick else _EVALUATIONS),
        duration_s=options.duration or (_QUICK_DURATION_S if quick else _DURATION_S),
    )


def _plan(options: argparse.Namespace) -> Plan:
    default = f"{_CONFIRMING_FROM}-{_CONFIRMING_FROM + _CONFIRMING - 1}"
    seeds = seeds_of(options.seeds or default)
    if options.seed in seeds:
        raise PlanError(f"--seeds: {options.seed} is the seed of the search, and others confirm it; name others")
    return Plan(schemes_of(options.schemes), seeds, _search(options).duration_s, least_seeds=len(seeds))


def _minima_table(outcomes: Sequence[CheckOutcome]) -> Table:
    rows = [
        [each.scheme, finding.setting, f"{finding.judged.mean:.2f}", finding.note]
        for each in outcomes
        for finding in sorted(each.findings, key=lambda one: one.judged.mean)
    ]
    return Table(["scheme", "setting", "ratio", "goodput, mean of the seeds"], rows, frozenset({2}))


def _write_minima(folder: Path, outcomes: list[CheckOutcome], minima: dict[str, list[Setting]]) -> None:
    for outcome in outcomes:
        notes = {each.setting: f"{outcome.scheme}: {each.judged.mean:.2f}; {each.note}" for each in outcome.findings}
        for setting in minima[outcome.scheme]:
            write_case(folder, setting, outcome.scheme, notes[setting.name])
