"""`anabranch report`: results or traces as one HTML file."""

from __future__ import annotations

import sys

from anabranch.command.parser import Parser
from anabranch.command.status import INPUT_ERROR
from anabranch.reporting.choice import ChoiceError

_EXAMPLES = """\
Examples:
  anabranch report out/losses
  anabranch report out/losses --timeline cmt@path.path-2.loss=0.05 --timeline cmt-pf@path.path-2.loss=0.05
  anabranch report out/losses --timeline all@path.path-2.loss=0.05,seed=3 --out losses.html
  anabranch run scenarios/outage.toml --seeds 1, --trace out/trace && anabranch report out/trace

exit status: 0 written, 1 the folder cannot be read or the file not written, 2 wrong command line, 130 Ctrl-C
"""


def main(arguments: list[str]) -> int:
    """Writes a report, and returns the exit status."""
    options = _parser().parse_args(arguments)
    from anabranch.reporting.document import write_report
    from anabranch.reporting.progress import Progress

    progress = Progress(quiet=options.quiet)
    try:
        written = write_report(options.folder, options.out, options.timeline, options.seed, options.title, progress)
    except ChoiceError as error:
        print(f"anabranch report: {error}", file=sys.stderr)
        return INPUT_ERROR
    for warning in written.warnings:
        print(f"anabranch report: warning: {warning}", file=sys.stderr)
    if not options.quiet:
        print(written.path)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch report",
        description="Writes the results of a sweep, or the traces of runs, as one HTML file: tables, figures and an "
        "interactive timeline of runs. The page needs no other files and no network.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "folder", metavar="DIR", help="a folder of `anabranch sweep --out DIR`, or of other commands with `--trace DIR`"
    )
    parser.add_argument("--out", metavar="FILE.html", help="the file to write (default: DIR/report.html)")
    parser.add_argument(
        "--timeline",
        metavar="SCHEME[@KEY=VALUE,...]",
        action="append",
        default=[],
        help="a run for the timeline; `all` selects every scheme; KEY is a swept key or `seed`, with its first value "
        "by default; can be repeated, for at most 40 runs (default: all schemes at the first point, or "
        "all traces, up to ten)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="the seed of the timeline's runs that name none (default: the first)"
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the report")
    parser.add_argument("-q", "--quiet", action="store_true", help="print neither progress nor the name of the file")
    return parser
