"""The best scheme for each cell of a grid of links."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from anabranch.errors import AnabranchError, ScenarioError, SchemeError, SweepError
from studies.choice import making
from studies.choice.book import BookError, refresh
from studies.choice.explaining import explained
from studies.choice.making import make, run_plans, write

_EXAMPLES = """\
Examples:
  The full grid, some ten minutes on two processors:
    make study NAME=choice
  A part of it, in about a minute:
    make study NAME=choice ARGS='--quick --out out/choice-quick'
  The full grid, and the book's chapter anew:
    make study NAME=choice ARGS='--book docs/src'

Finished runs are kept in the cache: what was stopped, by Ctrl-C or in any other way, goes on where it was.

Status: 0 all went well, 1 something could not be run, read or written, 2 the command line or a plan is wrong, 130
Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out the command, and gives its exit status."""
    options = _parser().parse_args(arguments)
    if options.quick and options.book:
        print("--book: takes the full grid only; leave --quick out", file=sys.stderr)
        return 2
    try:
        return _make(options)
    except KeyboardInterrupt as stop:
        print(str(stop) or "stopped by Ctrl-C", file=sys.stderr)
        return 130
    except (ScenarioError, SchemeError, SweepError, BookError) as error:
        print(error, file=sys.stderr)
        return 2
    except (AnabranchError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _make(options: argparse.Namespace) -> int:
    grid, shared = run_plans(options.quick, options.cache or True)
    for name, results in (("grid", grid), ("sharing", shared)):
        results.write(options.out / name)
    looked_into = explained(making.PLANS / "two-links.toml")
    made = make(grid, shared, looked_into, datetime.now(timezone.utc).date())
    write(made, options.out)
    print(f"Tables: {options.out / 'summary.md'}, {options.out}/*.csv; maps: {options.out / 'maps'}")
    if options.book:
        for path in refresh(options.book, made.parts, options.out / "maps"):
            print(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="studies choice",
        description="Run one grid of links with all schemes, and say which of them wins where.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("out/choice"), help="folder for results, tables and maps"
    )
    parser.add_argument("--quick", action="store_true", help="fewer values, three seeds and shorter runs")
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, help="where finished runs are kept [default: the user's cache]"
    )
    parser.add_argument("--book", metavar="DIR", type=Path, help="the book's sources, whose chapter is made anew")
    return parser


if __name__ == "__main__":
    sys.exit(main())
