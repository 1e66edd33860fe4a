"""`anabranch papers`: lists, shows and reproduces the experiments and claims of the papers."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive
from anabranch.command.status import INPUT_ERROR, INTERRUPTED
from anabranch.errors import ExperimentError
from anabranch.experiments.fields import hint
from anabranch.experiments.selection import Selection
from anabranch.papers.catalogue import ALL, DATA, keys, read_key, select

_EXAMPLES = """\
Examples:
  anabranch papers list
  anabranch papers show db-cmt/fig6
  anabranch papers reproduce all --quick --out out/quick
  anabranch papers reproduce db-cmt --out out/papers
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status: 0, 1 if it failed, 2 for wrong input, 130 for Ctrl-C.

    The status does not depend on the verdicts.
    """
    options = _parser().parse_args(list(arguments))
    try:
        return int(options.run(options))
    except ExperimentError as error:
        print(error, file=sys.stderr)
        return INPUT_ERROR


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch papers",
        description="Five papers about concurrent multipath transfer: their experiments, their claims, and whether "
        "runs here reproduce them.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the papers (those of the package)")
    commands = parser.add_subparsers(title="Commands", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list all papers with their experiments")
    listing.set_defaults(run=_list)
    show = commands.add_parser("show", help="show a paper, or the setting, unknowns and claims of an experiment")
    show.add_argument("name", metavar="KEY[/EXPERIMENT]", help="a name that `papers list` prints")
    show.set_defaults(run=_show)
    _add_reproduce(commands)
    _add_stored(commands)
    return parser


def _add_stored(commands: Any) -> None:
    store = commands.add_parser(
        "store", help="write the data of a full reproduction that the book needs into one compact file"
    )
    store.add_argument("folder", type=Path, metavar="DIR", help="a folder of `papers reproduce all --out DIR`")
    store.add_argument("file", type=Path, metavar="FILE", help="the file to write: docs/results/papers.json.xz")
    store.set_defaults(run=_store)
    book = commands.add_parser("book", help="write the pages of the book about a full reproduction")
    book.add_argument("results", type=Path, metavar="FILE", help="the file that `papers store` wrote")
    book.add_argument("book", type=Path, metavar="BOOK", help="the folder with the sources of the book")
    book.add_argument("--page-only", action="store_true", help="write the summary page alone, without chapters")
    book.set_defaults(run=_book)


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="run experiments, judge their claims, and write figures, data and pages",
        description="Runs experiments and judges whether the runs reproduce each claim. Finished runs are kept, so "
        "that the same command continues after an interruption. The exit status does not depend on the verdicts.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("name", metavar="all|KEY[/EXPERIMENT]", help="papers or experiments to reproduce")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer seeds and values, no variants, no ablations: everything takes two and a half minutes of processor "
        "time",
    )
    parser.add_argument("--seeds", type=positive, metavar="N", help="number of seeds of every experiment")
    parser.add_argument("--no-variants", dest="variants", action="store_false", help="run the chosen values only")
    parser.add_argument("--no-ablations", dest="ablations", action="store_false", help="leave ablations out")
    parser.add_argument(
        "--claims",
        action="store_true",
        help="only the runs that verdicts need: no figures, readings or ablations, and no schemes or values that no "
        "claim names; verdicts are those of a full run",
    )
    parser.add_argument(
        "--change",
        metavar="ID",
        help="only the runs of this variant, reading or ablation, such as radio, and those that it is compared with; "
        "`papers store` adds them to stored results",
    )
    parser.add_argument(
        "--executor",
        metavar="WHERE",
        help="where sweeps run: processes:N or dask://HOST:PORT (threads of this machine); runs that need a trace are "
        "performed on this machine in any case",
    )
    parser.add_argument("--workers", type=positive, metavar="N", help="threads or processes (one for each processor)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where finished runs are kept")
    parser.add_argument("--no-cache", action="store_true", help="keep no finished runs")
    parser.set_defaults(run=_reproduce)


def _list(options: argparse.Namespace) -> int:
    from anabranch.experiments.pages.listing import list_studies

    print(list_studies(read_key(key, options.data) for key in keys(options.data)))
    return 0


def _show(options: argparse.Namespace) -> int:
    from anabranch.experiments.pages.listing import show_experiment, show_study

    if options.name == ALL:
        return _list(options)
    selection = select(options.name, options.data)[0]
    if "/" in options.name:
        print(show_experiment(selection.study, selection.experiments[0]))
    else:
        print(show_study(selection.study))
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from anabranch.experiments.pages.summary import counts_text
    from anabranch.experiments.pipeline import reproduce
    from anabranch.experiments.plan import Scope
    from anabranch.experiments.sweeps import SweepOptions
    from anabranch.sweeps import CacheWarning
    from anabranch.sweeps.cache import default_folder

    if options.no_cache and options.cache:
        raise ExperimentError("--cache and --no-cache: omit one of them")
    cache = None if options.no_cache else (options.cache or default_folder())
    selections = select(options.name, options.data)
    if options.change:
        _check_change(options.change, selections)
    scope = Scope(options.quick, options.seeds, options.variants, options.ablations, options.claims, options.change)
    sweeps = SweepOptions(cache, options.executor, options.workers)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", CacheWarning)
            warnings.showwarning = _print_warning
            outcome, cost = reproduce(selections, options.out, scope, sweeps)
    except KeyboardInterrupt:
        kept = "no run is kept" if cache is None else f"finished runs are kept in {cache}: the same command continues"
        print(f"stopped by Ctrl-C; {kept}", file=sys.stderr)
        return INTERRUPTED
    print(counts_text(outcome))
    print(f"\nPages, figures and data: {options.out / 'index.html'}, {options.out / 'summary.md'}")
    print(cost)
    return 0


def _check_change(change: str, selections: Iterable[Selection]) -> None:
    """Raises `ExperimentError` if no selected experiment has the change."""
    experiments = [experiment for selection in selections for experiment in selection.experiments]
    known = sorted({each.id for experiment in experiments for each in experiment.changes})
    if change not in known:
        raise ExperimentError(f"--change: no selected experiment has `{change}`: {hint(change, known)}")


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Prints a warning in one line, without its place in the code."""
    print(message, file=sys.stderr)


def _store(options: argparse.Namespace) -> int:
    from anabranch.experiments.stored import store

    store(options.folder, options.file)
    print(options.file)
    return 0


def _book(options: argparse.Namespace) -> int:
    from anabranch.papers.book import write_book, write_page

    if options.page_only:
        written = [write_page(options.results, options.book)]
    else:
        written = write_book(options.results, options.book, options.data)
    for path in written:
        print(path)
    return 0
