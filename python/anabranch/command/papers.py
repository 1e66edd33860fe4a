"""`anabranch papers`: lists, shows and reproduces the experiments and claims of the papers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from anabranch.papers.catalogue import ALL, DATA, keys, read_key, select
from anabranch.papers.error import PaperError

FAILED = 1
WRONG_INPUT = 2
INTERRUPTED = 130

_EXAMPLES = """\
examples:
  anabranch papers list
  anabranch papers show db-cmt/fig6
  anabranch papers reproduce all --quick --out out/quick
  anabranch papers reproduce db-cmt --out out/papers
"""


def main(arguments: Sequence[str]) -> int:
    """Carries out the command and gives its exit status: 0, 1 if it failed, 2 for wrong input, 130 for Ctrl-C.

    What the verdicts are has no influence on it.
    """
    options = _parser().parse_args(list(arguments))
    try:
        return int(options.run(options))
    except PaperError as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="anabranch papers",
        description="Five papers about concurrent multipath transfer: what they measured, what they claim, and what "
        "becomes of it here.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the papers (those of the package)")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list all papers with their experiments")
    listing.set_defaults(run=_list)
    show = commands.add_parser("show", help="show a paper, or the setting, unknowns and claims of an experiment")
    show.add_argument("name", metavar="KEY[/EXPERIMENT]", help="as `papers list` names them")
    show.set_defaults(run=_show)
    return parser


def _list(options: argparse.Namespace) -> int:
    from anabranch.papers.pages.listing import list_papers

    print(list_papers(read_key(key, options.data) for key in keys(options.data)))
    return 0


def _show(options: argparse.Namespace) -> int:
    from anabranch.papers.pages.listing import show_experiment, show_paper

    if options.name == ALL:
        return _list(options)
    selection = select(options.name, options.data)[0]
    if "/" in options.name:
        print(show_experiment(selection.paper, selection.experiments[0]))
    else:
        print(show_paper(selection.paper))
    return 0
