"""`anabranch trace plot`: a figure of recorded networks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.command.parser import Parser
from anabranch.command.quantities import rate_mbps, time_within, times_between
from anabranch.command.status import INPUT_ERROR
from anabranch.errors import FigureError

if TYPE_CHECKING:
    from anabranch.figures.rates import RateTrace

_EXAMPLES = """Examples:
  Draw two operators of one drive:
    anabranch trace plot drive.csv --column rate_a --column rate_b
  Draw a minute of two files that begin at the same time, as SVG and PNG:
    anabranch trace plot a.csv b.csv --between 60,120 --out drive.svg drive.png
"""
_UNITS = ("bit/s", "kbit/s", "Mbit/s", "B/s")


def main(arguments: Sequence[str]) -> int:
    """Draws rates over time beside their distribution, and returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        _plot(options)
    except FigureError as error:
        print(error, file=sys.stderr)
        return INPUT_ERROR
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch trace plot",
        description="Draw the rates of traces over time on one clock, their outages, and their distribution.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("files", metavar="FILE", type=Path, nargs="+", help="files with traces, each of which begins at time 0")
    add("--column", metavar="COLUMN", action="append", help="name or number of a column with rates; can be repeated")
    add("--time", metavar="COLUMN", help="name or number of the column with times (default: the first)")
    add("--unit", choices=_UNITS, help="unit of the rates (default: as the column is named, or else Mbit/s)")
    add(
        "--step",
        metavar="TIME",
        type=partial(time_within, least_s=1e-3, most_s=86_400),
        default=0.5,
        help="time over which rates are averaged (500ms)",
    )
    add("--outage", metavar="RATE", type=rate_mbps, default=0.1, help="rate below which the network is out (100kbit)")
    add("--between", metavar="A,B", type=times_between, help="draw the rates from time A to time B")
    add("--out", metavar="FILE", type=Path, nargs="+", default=[Path("trace.svg")], help="files to write, .svg or .png")
    add("--title", metavar="TEXT", help="a title above the axes")
    return parser


def _plot(options: argparse.Namespace) -> None:
    from anabranch.figures.canvas import styled_pair
    from anabranch.figures.rates import plot_rate_distribution, plot_rates
    from anabranch.figures.saving import check_ending, save

    for file in options.out:
        check_ending(file)
    traces = _read(options)
    with styled_pair((3, 1)) as (left, right):
        plot_rates(traces, outage_mbps=options.outage, between=options.between, title=options.title, ax=left)
        plot_rate_distribution(traces, ax=right)
        for file in options.out:
            print(save(left, file))


def _read(options: argparse.Namespace) -> list[RateTrace]:
    """Returns the trace of each file and column. Names have the file only if there are several."""
    from dataclasses import replace

    from anabranch.figures.rates import RateTrace

    traces = []
    for file in options.files:
        for column in options.column or [None]:
            trace = RateTrace.read(file, step_s=options.step, column=column, time=options.time, unit=options.unit)
            several = len(options.files) > 1 and column is not None
            traces.append(replace(trace, name=f"{file} {column}") if several else trace)
    return traces
