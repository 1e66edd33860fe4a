"""Options and outputs that the studies of limits have in common: runs, tables, known broken limits, exit status."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive, time_within
from anabranch.command.status import FAILED
from anabranch.errors import PlanError, ScenarioError, SchemeError, SweepError
from anabranch.experiments.limits.known import news, read_known, write_known
from anabranch.experiments.limits.outcome import CheckOutcome, Plan, as_json
from anabranch.experiments.limits.pages import blocks, conditions, limit_lines, summary_table
from anabranch.experiments.pages.document import Table, markdown
from anabranch.experiments.points import Bench
from anabranch.experiments.stored import about_now
from anabranch.experiments.sweeps import SweepOptions
from studies.stored import write_study

STATUS = (
    "Finished runs are kept in the cache, so that an interrupted command resumes.\n\n"
    "Status: 0 no limit is broken, 1 one is, or something could not be run, read or written, 2 the command line or a "
    "file is wrong, 130 Ctrl-C. With --known, limits that are known to be broken do not count."
)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of runs."""
    add = parser.add_argument
    add("--quick", action="store_true", help="a fixed part of it with few seeds, in about a minute")
    add("--workers", metavar="N", type=positive, help="threads [default: one per processor]")
    add("--executor", metavar="NAME", help="processes:N or dask://HOST:PORT in place of threads of this process")
    cache = parser.add_mutually_exclusive_group()
    cache.add_argument("--cache", metavar="DIR", type=Path, help="where finished runs are kept [default: user's cache]")
    cache.add_argument("--no-cache", action="store_true", help="keep no finished runs, and look for none")
    add("-q", "--quiet", action="store_true", help="show no progress")


def add_options(parser: Parser) -> None:
    """Adds the options of runs and of limits."""
    add_run_options(parser)
    add = parser.add_argument
    add("--store", metavar="FILE", type=Path, help="write the results for the book, as docs/results/NAME.json.xz")
    add("--out", metavar="DIR", type=Path, help="folder for the tables in Markdown and everything as JSON")
    add("--json", action="store_true", help="print everything as JSON in place of tables")
    known = parser.add_mutually_exclusive_group()
    known.add_argument("--known", metavar="FILE", type=Path, help="limits that are known to be broken, as a file")
    known.add_argument("--store-known", metavar="FILE", type=Path, help="write the limits that are broken now")


def sweep_options(options: argparse.Namespace) -> SweepOptions:
    """Returns the settings of runs."""
    cache = False if options.no_cache else options.cache or True
    return SweepOptions(cache, options.executor, options.workers, False if options.quiet else None)


def bench_of(options: argparse.Namespace) -> Bench:
    """Opens the cache. Reads the known limits too, so that errors in their file precede hours of runs.

    Raises `PlanError` and `CacheError`.
    """
    if options.known:
        read_known(options.known)
    return Bench(sweep_options(options))


def conclude(
    options: argparse.Namespace,
    name: str,
    plan: Plan,
    outcomes: Sequence[CheckOutcome],
    bench: Bench,
    first: Sequence[Table] = (),
) -> int:
    """Prints and writes the outcomes, after the tables `first`, and returns the exit status."""
    content = as_json(plan, outcomes)
    if options.json:
        print(json.dumps(content, indent=1))
    else:
        tables = [table.text() for table in (*first, summary_table(outcomes))]
        print("\n\n".join([*tables, conditions(plan), "\n".join(limit_lines(outcomes))]))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        page = markdown([*first, *blocks(plan, outcomes)])
        (options.out / f"{name}.md").write_text(page, encoding="utf-8")
        (options.out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if options.store:
        write_study(options.store, about_now(bench.cost), content)
    if not options.quiet:
        print(bench.cost, file=sys.stderr)
    return _status(options, outcomes)


def _status(options: argparse.Namespace, outcomes: Sequence[CheckOutcome]) -> int:
    """Returns the exit status, and prints changes of the limits that are known to be broken."""
    broken = [limit for outcome in outcomes for limit in outcome.broken]
    if options.store_known:
        write_known(options.store_known, broken)
        return 0
    if not options.known:
        return FAILED if broken else 0
    fresh, mended = news(broken, read_known(options.known))
    for each in mended:
        print(f"{each}: known to be broken, and is not: --store-known {options.known} removes it", file=sys.stderr)
    for each in fresh:
        print(f"{each}: broken, and not known to be", file=sys.stderr)
    return FAILED if fresh else 0


def seconds(text: str) -> float:
    """Returns a time in seconds that is longer than handshake and slow start."""
    return time_within(text, 5, 100_000)


def seeds_of(text: str) -> tuple[int, ...]:
    """Returns seeds in the format of `anabranch sweep --seeds`. Raises `PlanError`."""
    from anabranch.sweeps.seeds import parse_seeds, read_seeds

    try:
        return tuple(read_seeds(parse_seeds(text), None) or ())
    except SweepError as error:
        raise PlanError(f"--seeds: {error}") from error


def schemes_of(text: str, option: str = "--schemes") -> tuple[str, ...]:
    """Returns the schemes of a list. `all` stands for the built-in ones. Raises `PlanError` that names the option."""
    from anabranch import _native

    try:
        listed = _native.schemes_of(_ANY_SCENARIO, option, text)
    except (ScenarioError, SchemeError) as error:
        raise PlanError(f"{option}: {error}") from error
    return tuple(dict.fromkeys(listed))


_ANY_SCENARIO = '[run]\nduration = "1 s"\n[[path]]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'


def chosen(option: str, listed: str | None, known: Sequence[str], about: str) -> list[str]:
    """Returns the names in a list, or all. Raises `PlanError` for an unknown one."""
    if listed is None:
        return list(known)
    wanted = [name.strip() for name in listed.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        raise PlanError(f"{option}: unknown {about} `{unknown[0]}`; choose one of: {', '.join(known)}")
    return wanted
