"""Options of runs and exit status of the studies bounds and degradation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.command.quantities import time_within
from anabranch.errors import PlanError, ScenarioError, SchemeError, SweepError
from studies.trials import Options
from studies.trials.known import Broken, news, read_known, write_known

FAILED = 1
INTERRUPTED = 130

_MOST_NUMBER = 100_000

STATUS = (
    "Finished runs are kept in the cache: what was stopped, by Ctrl-C or in any other way, goes on where it was.\n\n"
    "Status: 0 no limit is broken, 1 one is, or something could not be run, read or written, 2 the command line or a "
    "file is wrong, 130 Ctrl-C. With --known, limits that are known to be broken do not count."
)


def add_options(parser: Parser) -> None:
    """Adds the options of runs and of outputs."""
    add = parser.add_argument
    add("--quick", action="store_true", help="a fixed part of it with few seeds, in less than a minute")
    add("--out", metavar="DIR", type=Path, help="folder for the tables in Markdown and everything as JSON")
    add("--json", action="store_true", help="print everything as JSON in place of tables")
    add("--book", metavar="PAGE", type=Path, help="a page of the book whose tables are written anew")
    known = parser.add_mutually_exclusive_group()
    known.add_argument("--known", metavar="FILE", type=Path, help="limits that are known to be broken, as a file")
    known.add_argument("--store-known", metavar="FILE", type=Path, help="write the limits that are broken now")
    add("--workers", metavar="N", type=positive, help="threads [default: one per processor]")
    cache = parser.add_mutually_exclusive_group()
    cache.add_argument("--cache", metavar="DIR", type=Path, help="where finished runs are kept [default: user's cache]")
    cache.add_argument("--no-cache", action="store_true", help="keep no finished runs, and look for none")
    add("-q", "--quiet", action="store_true", help="show no progress")


def options_of(options: argparse.Namespace) -> Options:
    """Returns the settings of runs."""
    from anabranch.sweeps.steps import open_cache

    cache = open_cache(False if options.no_cache else options.cache or True, _say)
    return Options(cache, options.workers, False if options.quiet else None)


def _say(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def check_files(options: argparse.Namespace, parts: Collection[str]) -> None:
    """Reads the files that are needed in the end, so that errors precede hours of runs. Raises `PlanError`.

    `parts` are the parts of the book's page that will be written.
    """
    from studies.trials.book import check_parts

    if options.known:
        read_known(options.known)
    if options.book:
        check_parts(options.book, parts)


def interrupted(stop: KeyboardInterrupt) -> int:
    """Prints after Ctrl-C how to resume, and returns the exit status."""
    print(str(stop) or "stopped by Ctrl-C", file=sys.stderr)
    return INTERRUPTED


def positive(text: str) -> int:
    """Returns a whole number above 0, with an upper bound, so that the settings fit into memory."""
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    if not 1 <= number <= _MOST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is no whole number from 1 to {_MOST_NUMBER}")
    return number


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


def status_of(options: argparse.Namespace, broken: Collection[Broken]) -> int:
    """Returns the exit status, and prints changes of the limits that are known to be broken."""
    if options.store_known:
        write_known(options.store_known, broken)
        return 0
    if not options.known:
        return FAILED if broken else 0
    fresh, mended = news(broken, read_known(options.known))
    for each in mended:
        print(f"{each}: known to be broken, and is not: --store-known {options.known} takes it out", file=sys.stderr)
    for each in fresh:
        print(f"{each}: broken, and not known to be", file=sys.stderr)
    return FAILED if fresh else 0
