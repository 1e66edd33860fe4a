"""`anabranch plot`: a figure of results or of a traced run."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.command.parser import Parser
from anabranch.command.quantities import time_s, times_between
from anabranch.command.status import INPUT_ERROR
from anabranch.counting import counted
from anabranch.errors import AnabranchError, FigureError, StatisticsError

if TYPE_CHECKING:
    from anabranch.figures.catalogue import Entry
    from anabranch.results import Results
    from anabranch.series import Series


_EXAMPLES = """Examples:
  List the figures that a folder supports:
    anabranch plot out/losses --list
  Draw goodput over the swept loss, for a paper and for slides:
    anabranch plot out/losses --figure metric --out goodput.svg goodput.png
  Draw the gains of two schemes over cmt, seed by seed:
    anabranch plot out/losses --figure bars --baseline cmt --schemes cmt-pf,db-cmt
  Draw time-outs over one of two swept keys:
    anabranch plot out/grid --figure metric --metric timeouts --x path.path-2.loss \\
        --at path.path-2.delay='100 ms'
  Draw one second of TSNs of a traced run:
    anabranch plot out/trace/cmt-seed1 --figure tsn --between 10,11
"""


def main(arguments: Sequence[str]) -> int:
    """Draws the requested figure, and returns the exit status. `command.dispatch` handles other errors."""
    options = _parser().parse_args(arguments)
    try:
        return _list(options.folder) if options.list else _plot(options)
    except (FigureError, StatisticsError) as error:
        print(f"{options.folder}: {error}", file=sys.stderr)
        return INPUT_ERROR


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch plot",
        description="Draw a figure of the results of a sweep, or of a traced run.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="results of `anabranch sweep`, or traces of one run")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--figure", metavar="NAME", help="which figure")
    what.add_argument(
        "--list", action="store_true", help="list the figures that DIR supports, and the quantities to draw"
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, nargs="+", help="files to write, .svg or .png (default: NAME.svg, here)"
    )
    parser.add_argument("--title", metavar="TEXT", help="a title above the axes")
    _add_result_options(parser.add_argument_group("Figures of results"))
    _add_trace_options(parser.add_argument_group("Figures of a traced run"))
    return parser


def _add_result_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--metric", metavar="M", help="column of the results (default: goodput_kbps)")
    group.add_argument("--x", metavar="KEY", help="swept key along the axis (default: the only one)")
    group.add_argument("--schemes", metavar="LIST", type=_split, help="these schemes only, in this order: a,b(c=1,d=2)")
    group.add_argument(
        "--at",
        metavar="KEY=VALUE",
        type=_pair,
        action="append",
        help="only where another swept key, or flow or path, has this value; can be repeated",
    )
    group.add_argument("--baseline", metavar="SCHEME", help="bars: gains over this scheme under the same seeds")
    group.add_argument("--interval", choices=("t", "normal"), help="Student's t (default), or as the papers print it")
    group.add_argument("--confidence", metavar="C", type=float, help="level of confidence (default: 0.95)")


def _add_trace_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--flow", metavar="NAME", help="this flow, if there are several")
    group.add_argument("--direction", choices=("forward", "reverse"), help="this direction, if data goes both ways")
    group.add_argument("--between", metavar="A,B", type=times_between, help="from time A to time B")
    group.add_argument(
        "--every", metavar="TIME", type=time_s, dest="every_s", help="throughput: length of each step (1s)"
    )
    group.add_argument("--ssthresh", action="store_true", default=None, help="cwnd: draw slow-start thresholds as well")


def _plot(options: argparse.Namespace) -> int:
    from anabranch.figures.canvas import styled_axes
    from anabranch.figures.saving import check_ending, save

    entry, data = _chosen(options.folder, options.figure)
    given = _given(entry, options)
    files = options.out or [Path(f"{entry.name}.svg")]
    for file in files:
        check_ending(file)
    for note in _notes(data):
        print(f"{options.folder}: {note}", file=sys.stderr)
    with styled_axes(entry.width) as axes:
        entry.draw(data, **given, title=options.title, ax=axes)
        for file in files:
            print(save(axes, file))
    return 0


def _chosen(folder: Path, name: str) -> tuple[Entry, Results | Series]:
    """Returns the figure, and its data."""
    from anabranch.figures.catalogue import FIGURES

    if name not in FIGURES:
        raise FigureError(f"unknown figure `{name}`; choose one of {', '.join(FIGURES)}")
    entry, data = FIGURES[name], _read(folder)
    kind = _kind(data)
    if entry.input != kind:
        fitting = ", ".join(other.name for other in FIGURES.values() if other.input == kind)
        needs = {"results": "results of a sweep", "trace": "traces of a run"}
        raise FigureError(f"`{name}` is drawn from {needs[entry.input]}, and these are {needs[kind]}: {fitting}")
    return entry, data


def _read(folder: Path) -> Results | Series:
    """Returns the content of the folder."""
    from anabranch.results import Results
    from anabranch.series import read_trace

    if any((folder / name).exists() for name in ("manifest.json", "runs.parquet")):
        return Results.read(folder)
    if (folder / "run.toml").exists() or any(folder.glob("*/run.toml")):
        return read_trace(folder)
    if not folder.is_dir():
        raise AnabranchError(f"{folder}: no such folder")
    raise AnabranchError(
        f"{folder}: neither results nor traces: `anabranch sweep PLAN.toml --out DIR` writes results, "
        "`anabranch run SCENARIO.toml --trace DIR` a folder of traces for each run"
    )


def _kind(data: Results | Series) -> str:
    from anabranch.results import Results

    return "results" if isinstance(data, Results) else "trace"


def _given(entry: Entry, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the given options. Raises `FigureError` for those that the figure does not take."""
    from anabranch.figures.catalogue import FIGURES

    known = sorted(frozenset().union(*(other.options for other in FIGURES.values())))
    given = {name: value for name in known if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in entry.options:
            takers = ", ".join(other.name for other in FIGURES.values() if name in other.options)
            raise FigureError(f"--{name.removesuffix('_s')} is not for `{entry.name}` but for {takers}")
    if "at" in given:
        given["at"] = dict(given["at"])
    return given


def _notes(data: Results | Series) -> list[str]:
    """Returns notes on incomplete data."""
    from anabranch.results import Results

    if not isinstance(data, Results):
        return data.notes
    missing = data.manifest.get("missing", 0)
    return [f"{counted(missing, 'run')} missing of the sweep, because it was stopped"] if missing else []


def _list(folder: Path) -> int:
    from anabranch.figures.catalogue import FIGURES

    data = _read(folder)
    kind = _kind(data)
    for entry in FIGURES.values():
        if entry.input == kind:
            mismatch = entry.mismatch(data)
            print(f"{entry.name:14} {entry.about}")
            if mismatch:
                print(f"{'':14} not without more: {mismatch}")
    for name, values in _contents(data).items():
        print(f"{name}: {', '.join(values) or 'none'}")
    return 0


def _contents(data: Results | Series) -> dict[str, list[str]]:
    """Returns the available metrics, schemes and keys, or flows, paths and times."""
    from anabranch.results import Results
    from anabranch.statistics.samples import metrics_of

    if isinstance(data, Results):
        # Omits columns without values, such as Jain's index of one flow.
        frames = [data.to_pandas(table).dropna(axis="columns", how="all") for table in ("runs", "flows", "paths")]
        swept = [f"{key} ({', '.join(map(str, values))})" for key, values in data.manifest["over"].items()]
        return {
            "metrics": list(dict.fromkeys(name for frame in frames for name in metrics_of(frame))),
            "schemes": data.schemes,
            "swept": swept,
        }
    senders = data.manifest.get("sender", [])
    return {
        "flows": list(dict.fromkeys(f"{sender['flow']} ({sender['direction']})" for sender in senders)),
        "paths": list(dict.fromkeys(path for sender in senders for path in sender["paths"])),
        "seconds": [f"0 to {data.end_s:g}"],
    }


def _split(text: str) -> list[str]:
    """Returns a list of schemes. Commas inside parentheses do not separate them."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, not {text!r}")
    return key, value
