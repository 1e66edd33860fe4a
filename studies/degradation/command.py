"""Effects of schemes on the goodput of one path, on other flows, on links and on small messages."""

from __future__ import annotations

import argparse
from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive
from anabranch.errors import PlanError
from anabranch.experiments.limits.outcome import Plan
from studies.degradation.checking import CHECKS, Scope, check
from studies.options import STATUS, add_options, bench_of, chosen, conclude, schemes_of, seconds, seeds_of

_EXAMPLES = f"""\
Examples:
  All checks of one scheme, with 200 settings drawn with seed 7:
    make study NAME=degradation ARGS='--schemes bonded --random 200 --draw 7'
  Shares that two schemes leave to other flows, with few seeds:
    make study NAME=degradation ARGS='--schemes cmt,bonded --checks share,two-alike,free-link --seeds 5'
  Comparison with the best single link in every cell of a plan:
    make study NAME=degradation ARGS='--checks one-link --plan studies/choice/plans/grid.toml'
  A fixed part, which takes less than a minute:
    make study NAME=degradation ARGS=--quick

Checks: one-link, published, share, two-alike, free-link, policer, queueing, wire, collapse, messages.

{STATUS}"""

_SCHEMES = "bonded"
_OTHERS = "sctp,sctp+cubic"
_QUICK_SEEDS, _QUICK_CHOOSING, _QUICK_RANDOM, _QUICK_S = "3", 2, 5, 20.0
_QUICK_RIVALS = "sctp,cmt,db-cmt,cmt-dfr,bonded"
_CHOOSING_FROM = 1_000_001
"""First seed of the choice of comparisons."""


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    names = chosen("--checks", options.checks, list(CHECKS), "check")
    scope, plan = _scope(options), _plan(options)
    bench = bench_of(options)
    return conclude(options, "degradation", plan, check(names, scope, plan, bench), bench)


def _parser() -> Parser:
    parser = Parser(
        prog="studies degradation",
        description="Search for settings in which a scheme is worse than one path or than published schemes, uses more "
        "than its share, fills queues, or delays small messages.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--schemes", metavar="LIST", default=_SCHEMES, help=f"schemes to check, or all [default: {_SCHEMES}]")
    add("--checks", metavar="LIST", help="checks to carry out [default: all]")
    add("--random", metavar="N", type=positive, help="settings to draw [default: 200]")
    add("--draw", metavar="SEED", type=int, default=1, help="seed of the draw [default: 1]")
    add("--plan", metavar="FILE", type=Path, action="append", default=[], help="plans of sweeps whose points count too")
    add("--rivals", metavar="LIST", help="published schemes to compare with [default: all, within the receive buffer]")
    add("--beside", metavar="LIST", default=_OTHERS, help=f"schemes of other flows [default: {_OTHERS}]")
    add("--seeds", metavar="N|LIST", help="seeds that are compared [default: 20]")
    add(
        "--choosing",
        metavar="N",
        type=positive,
        help="number of other seeds that select the schemes to compare with [default: 5]",
    )
    add("--duration", metavar="TIME", type=seconds, help="simulated time of a run [default: 60s]")
    add_options(parser)
    return parser


def _plan(options: argparse.Namespace) -> Plan:
    count = options.choosing or (_QUICK_CHOOSING if options.quick else 5)
    choosing = tuple(range(_CHOOSING_FROM, _CHOOSING_FROM + count))
    seeds = seeds_of(options.seeds or (_QUICK_SEEDS if options.quick else "20"))
    if set(seeds) & set(choosing):
        raise PlanError(
            f"--seeds: {_CHOOSING_FROM} and the next {count - 1} select the schemes to compare with; name others"
        )
    return Plan(
        schemes=schemes_of(options.schemes),
        seeds=seeds,
        choosing=choosing,
        duration_s=options.duration or (_QUICK_S if options.quick else 60.0),
    )


def _scope(options: argparse.Namespace) -> Scope:
    return Scope(
        random_settings=options.random or (_QUICK_RANDOM if options.quick else 200),
        draw_seed=options.draw,
        plans=tuple(options.plan),
        rivals=schemes_of(options.rivals or (_QUICK_RIVALS if options.quick else _all_rivals()), "--rivals"),
        others=schemes_of(options.beside, "--beside"),
        quick=options.quick,
    )


def _all_rivals() -> str:
    """Returns all schemes, each limited to the receive buffer of the setting: `mptcp-ns2` alone has no limit."""
    from anabranch import schemes

    presets = [each for each in schemes() if each.kind == "scheme"]
    unbounded = {each.name for each in presets if any(key.name == "shared-window" for key in each.parameters)}
    return ",".join(f"{each.name}(shared-window=true)" if each.name in unbounded else each.name for each in presets)
