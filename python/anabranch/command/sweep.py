"""`anabranch sweep`: runs a grid and writes tables."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.command.parser import Parser
from anabranch.command.quantities import time_s
from anabranch.command.status import FAILED, INPUT_ERROR, INTERRUPTED
from anabranch.errors import AnabranchError, PlanError, ScenarioError, SchemeError, SweepError

if TYPE_CHECKING:
    from anabranch.sweeps.plan import Plan
    from anabranch.sweeps.runner import Interrupted, StoppedError

_EXAMPLES = """\
Examples:
  Run a plan of the program, or your own, and write its tables:
    anabranch sweep second-path --out out/second-path
    anabranch sweep scenarios/sweeps/second-path.toml --out out/second-path
  The same without a plan file:
    anabranch sweep scenarios/two-path.toml --over path.path-2.loss=0,0.01,0.05 --schemes cmt,cmt-pf --seeds 20 \\
        --out out/losses
  On a cluster whose Dask scheduler runs on another machine:
    anabranch sweep scenarios/sweeps/second-path.toml --out out/second-path --executor dask://head:8786

Finished runs are kept in the cache, so that the same command continues a sweep that Ctrl-C or a failure interrupted.
The results do not depend on the executor, or on the number of workers.

Status: 0 all runs succeeded, 1 a run failed or a file could not be read or written, 2 the command line, the plan or the
scenario is wrong, 130 Ctrl-C."""

_EXECUTOR = re.compile(r"(threads|processes):[1-9]\d{0,3}|dask://\S+:\d+")
_INPUT_ERRORS = (PlanError, SweepError, ScenarioError, SchemeError)


def main(arguments: list[str]) -> int:
    """Runs `anabranch sweep` with its arguments, and returns the exit status."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else INPUT_ERROR
    try:
        return _sweep(options)
    except AnabranchError as error:
        print(error, file=sys.stderr)
        return INPUT_ERROR if isinstance(error, _INPUT_ERRORS) else FAILED
    except KeyboardInterrupt:
        print("interrupted before the first run", file=sys.stderr)
        return INTERRUPTED


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch sweep",
        description="Run a scenario at every point of a grid, with every scheme and seed, and write tables.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("plan", metavar="PLAN", type=Path, help="the file of a plan or a scenario, or one that `anabranch init` lists")
    add(
        "--out",
        metavar="DIR",
        type=Path,
        required=True,
        help="folder for runs.parquet, paths.parquet, flows.parquet and manifest.json",
    )
    add(
        "--over",
        metavar="KEY=V1,V2",
        action="append",
        default=[],
        help="a key of the scenario and its values, beside those of the plan; can be repeated",
    )
    add(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="another value in the scenario, for all runs; can be repeated",
    )
    add(
        "--schemes",
        metavar="LIST",
        help="schemes in place of those of the plan: a list such as sctp,cmt(trigger=4), or all",
    )
    add(
        "--seeds",
        metavar="N|LIST",
        help="seeds in place of those of the plan: 20 means 1 to 20; 3,7,10-12 is a list; 7, is seed 7 alone",
    )
    add(
        "--executor",
        metavar="WHICH",
        type=_executor,
        help="threads:N, processes:N or dask://HOST:PORT [default: one thread per processor]",
    )
    add(
        "--worker-timeout",
        metavar="TIME",
        type=time_s,
        default=60.0,
        help="maximum time for which a Dask cluster may have no workers [default: 60s]",
    )
    cache = parser.add_mutually_exclusive_group()
    cache.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        help="folder that stores finished runs, which are not repeated [default: $ANABRANCH_CACHE, or the user's cache "
        "folder]",
    )
    cache.add_argument("--no-cache", action="store_true", help="repeat finished runs, and store none")
    add("--force", action="store_true", help="write into a folder with other files, or with another sweep")
    add("--json", action="store_true", help="print one JSON object in place of the table")
    add("-q", "--quiet", action="store_true", help="show no progress bar")
    return parser


def _executor(text: str) -> str:
    if not _EXECUTOR.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected threads:N, processes:N or dask://HOST:PORT, found {text!r}")
    return text


def _sweep(options: argparse.Namespace) -> int:
    plan = _plan(options)
    # Imported here, so that `--help` and errors are fast.
    from anabranch.results.files import check_folder, check_sweep, make_folder
    from anabranch.sweeps.manifest import manifest
    from anabranch.sweeps.output import as_json, as_text, failures
    from anabranch.sweeps.progress import write_warning
    from anabranch.sweeps.runner import Interrupted, StoppedError
    from anabranch.sweeps.steps import fill, open_cache, read_grid
    from anabranch.version import engine

    check_folder(options.out, overwrite=options.force)
    grid = read_grid(plan.scenario, plan.over, plan.seeds, plan.overrides, plan.until)
    check_sweep(options.out, manifest(grid, engine(), plan.until, 0), overwrite=options.force)
    cache = open_cache(False if options.no_cache else options.cache or True, write_warning)
    make_folder(options.out)
    try:
        results = fill(
            grid,
            until=plan.until,
            executor=options.executor,
            workers=None,
            worker_timeout_s=options.worker_timeout,
            cache=cache,
            progress=False if options.quiet else None,
            notify=write_warning,
        )
    except (Interrupted, StoppedError) as error:
        return _incomplete(error, options, kept=cache is not None and not cache.unstored)
    results.write(options.out, overwrite=options.force)
    print(as_json(results, options.out) if options.json else as_text(results, options.out, cache))
    return FAILED if failures(results) else 0


def _plan(options: argparse.Namespace) -> Plan:
    """Returns the plan with the changes of the command line."""
    from anabranch.sweeps.plan import read_plan
    from anabranch.sweeps.seeds import parse_seeds
    from anabranch.sweeps.settings import parse_over, parse_override

    plan = read_plan(options.plan)
    for key, values in _parsed("--over", options.over, parse_over).items():
        plan.over[key] = values
    plan.overrides |= _parsed("--set", options.set, parse_override)
    if options.schemes is not None:
        plan.over["scheme"] = [options.schemes]
    if options.seeds is not None:
        try:
            plan.seeds = parse_seeds(options.seeds)
        except SweepError as error:
            raise PlanError(f"--seeds: {error}") from error
    return plan


def _parsed(option: str, texts: Sequence[str], parse: Callable[[str], tuple[str, Any]]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for text in texts:
        try:
            key, value = parse(text)
        except PlanError as error:
            raise PlanError(f"{option}: {error}") from error
        if key in parsed:
            raise PlanError(f"{option}: `{key}` is given twice")
        parsed[key] = value
    return parsed


def _incomplete(error: Interrupted | StoppedError, options: argparse.Namespace, *, kept: bool) -> int:
    """Prints how to resume. Writes results that are not in the cache."""
    print(error, file=sys.stderr)
    if not kept and error.results.runs.num_rows:
        error.results.write(options.out, overwrite=options.force)
        print(f"the finished runs are in {options.out}", file=sys.stderr)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
