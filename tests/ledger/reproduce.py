#!/usr/bin/env python3
"""Reproduces the bugs of `bugs.toml` at the parents of their fixes, and makes the book's page about them."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bugs
import page
from bugs import LedgerError
from scratch import Limits, Scratch

EXAMPLES = """\
examples:
  tests/ledger/reproduce.py list
  tests/ledger/reproduce.py run rack-copies-without-time
  tests/ledger/reproduce.py run --fixed rack-copies-without-time
  tests/ledger/reproduce.py run --fixed --all
  tests/ledger/reproduce.py show rack-copies-without-time
  tests/ledger/reproduce.py book

A reproduction runs in a clone of this repository below target/ledger, which is removed afterwards. Your checkout is
only read. What cargo builds stays in target/ledger/build for the next reproduction; `cargo clean` or rm removes it.
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="action", required=True, metavar="COMMAND")
    commands.add_parser("list", help="list all bugs, and say which can be reproduced")
    show = commands.add_parser("show", help="print what is known of bugs, and the commands that reproduce them by hand")
    show.add_argument("id", nargs="+")
    run = commands.add_parser("run", help="run the command of bugs at the parents of their fixes; it has to fail there")
    run.add_argument("id", nargs="*")
    run.add_argument("--all", action="store_true", help="all bugs that can be reproduced, oldest fix first")
    run.add_argument("--fixed", action="store_true", help="run it at the fix as well; it has to pass there")
    run.add_argument("--keep", action="store_true", help="keep the clone in target/ledger/tree, to look into it")
    run.add_argument("--record", action="store_true", help="write today's date as `verified` into bugs.toml")
    run.add_argument("--timeout", type=int, default=1800, metavar="S", help="seconds for each command (1800)")
    commands.add_parser("book", help="write the generated part of docs/src/bug-ledger.md")
    commands.add_parser(
        "check", help="say what is wrong with the ledger, or stale in the book, and exit with 1 if anything is"
    )
    return top


def list_bugs(ledger: bugs.Ledger) -> None:
    width = max(len(bug.id) for bug in ledger.bugs)
    for bug in ledger.bugs:
        state = (
            "not reproducible"
            if bug.not_reproducible
            else f"verified {bug.verified}"
            if bug.verified
            else "not verified"
        )
        print(f"{bug.id:{width}}  {bug.date}  {state:19}  {bug.title}")


def show(bug: bugs.Bug) -> None:
    print(f"{bug.id}: {bug.title}\n{bug.wrong}\nfound by: {bug.found_by}\ninput:    {bug.input}\ntest:     {bug.test}")
    if bug.not_reproducible:
        print(f"not reproducible: {bug.not_reproducible}")
    else:
        print("by hand:")
        for line in page.by_hand(bug):
            print(f"  {line}")


def chosen(ledger: bugs.Ledger, arguments: argparse.Namespace) -> list[bugs.Bug]:
    if arguments.all == bool(arguments.id):
        raise LedgerError("name bugs or give --all; `tests/ledger/reproduce.py list` prints all ids")
    if arguments.all:
        return [bug for bug in ledger.bugs if not bug.not_reproducible]
    found = [ledger.bug(name) for name in arguments.id]
    for bug in found:
        if bug.not_reproducible:
            raise LedgerError(f"{bug.id} cannot be reproduced: {bug.not_reproducible}")
    return found


def run(ledger: bugs.Ledger, arguments: argparse.Namespace) -> int:
    wanted = chosen(ledger, arguments)
    if arguments.timeout < 1:
        raise LedgerError("--timeout needs at least 1 second")
    limits = Limits(seconds=arguments.timeout)
    reproduced = 0
    with Scratch(bugs.ROOT, limits, keep=arguments.keep) as scratch:
        # Bugs of one fix together: what cargo has built of a commit serves all of them.
        for _, group in itertools.groupby(wanted, key=lambda bug: bug.fixed):
            reproduced += run_group(scratch, list(group), arguments)
    print(f"{reproduced} of {len(wanted)} reproduced")
    return 0 if reproduced == len(wanted) else 1


def run_group(scratch: Scratch, group: list[bugs.Bug], arguments: argparse.Namespace) -> int:
    """Gives how many bugs of a fix were reproduced."""
    good = [bug for bug in group if attempt(bug, "fails as expected at the parent of the fix", scratch.fails_at_parent)]
    if arguments.fixed:
        good = [bug for bug in good if attempt(bug, "passes at the fix", scratch.passes_at_fix)]
    if arguments.record:
        for bug in good:
            bugs.record(bugs.BUGS, bug.id, date.today().isoformat())
    return len(good)


def attempt(bug: bugs.Bug, what: str, call: Callable[[bugs.Bug], float]) -> bool:
    try:
        seconds = call(bug)
    except LedgerError as error:
        print(f"{bug.id}: NOT REPRODUCED: {error}", flush=True)
        return False
    print(f"{bug.id}: {what} {bug.fixed[:12]} ({seconds:.0f} s)", flush=True)
    return True


def main() -> int:
    arguments = parser().parse_args()
    try:
        if arguments.action == "check":
            problems = page.problems()
            print("\n".join(problems) if problems else "bug ledger: nothing wrong")
            return 1 if problems else 0
        ledger = bugs.read()
        if arguments.action == "list":
            list_bugs(ledger)
        elif arguments.action == "show":
            for name in arguments.id:
                show(ledger.bug(name))
        elif arguments.action == "book":
            page.write(ledger)
        else:
            if arguments.record and not arguments.fixed:
                raise LedgerError(
                    "--record needs --fixed: a bug is verified if its command fails before the fix and passes with it"
                )
            return run(ledger, arguments)
    except LedgerError as error:
        print(f"bug ledger: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
