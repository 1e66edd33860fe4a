"""`anabranch view`: events in the format of qlog as a timeline."""

from __future__ import annotations

from pathlib import Path

from anabranch.command.parser import Parser

_EXAMPLES = """\
Examples:
  anabranch view client.qlog
  anabranch view logs --out logs.html

The logs are qlog 0.3 or later of a QUIC stack, or written by other commands of anabranch with --qlog. The format is
JSON, JSON lines or JSON text sequences. The page needs no other files and no network.

exit status: 0 written, 1 a log cannot be read or the page not written, 2 wrong command line, 130 Ctrl-C
"""


def main(arguments: list[str]) -> int:
    """Writes the page, and returns the exit status."""
    options = _parser().parse_args(arguments)
    from anabranch.reporting.document import write_page
    from anabranch.reporting.qlog_page import page_of_logs

    source = Path(options.source)
    page = page_of_logs(source, options.title)
    written = write_page(page, Path(options.out) if options.out else _default_target(source))
    if not options.quiet:
        print(written.path)
    return 0


def _default_target(source: Path) -> Path:
    return source / "view.html" if source.is_dir() else source.with_name(f"{source.name}.html")


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch view",
        description="Writes the events of qlog files as one HTML file with an interactive timeline.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "source", metavar="FILE|FOLDER", help="a log, or a folder with logs that end with .qlog or .sqlog"
    )
    parser.add_argument(
        "--out", metavar="FILE.html", help="the file to write (default: FILE.html beside it, or FOLDER/view.html)"
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the page")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print the name of the file")
    return parser
