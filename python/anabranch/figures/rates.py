"""Rates of recorded networks over time, and their distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch._native import read_rates
from anabranch.errors import FigureError
from anabranch.figures.canvas import drawing, line_style
from anabranch.figures.decimate import decimate_line
from anabranch.figures.from_series import checked
from anabranch.figures.legend import legend
from anabranch.figures.style import path_looks

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes

OUTAGE_MBPS = 0.1
_QUANTILES = np.linspace(0, 100, 401)
# Distance of the rows of outages from each other, as a part of the axes' height.
_OUTAGE_ROW = 0.025


@dataclass(frozen=True, slots=True)
class RateTrace:
    """Mean rates of the steps of a trace, in Mbit/s. The first step begins at time 0."""

    name: str
    step_s: float
    mbps: np.ndarray

    @classmethod
    def read(
        cls, file: str | os.PathLike[str], *, step_s: float = 0.5, column: str | None = None, **table: str | None
    ) -> RateTrace:
        """Reads a file of Mahimahi, or a table with the options `time` and `unit` of `anabranch trace`.

        Raises `AnabranchError` if the file cannot be read, is malformed or has no capacity.
        """
        return cls(column or str(file), step_s, np.array(read_rates(file, step_s, column, **table)))

    def outages(self, below_mbps: float) -> list[tuple[float, float]]:
        """Returns beginning and end of each time with less than this rate, in seconds."""
        is_out = np.concatenate(([False], self.mbps < below_mbps, [False]))
        edges = np.flatnonzero(is_out[1:] != is_out[:-1]) * self.step_s
        return [(float(start), float(end)) for start, end in edges.reshape(-1, 2)]


def plot_rates(
    traces: Sequence[RateTrace],
    *,
    outage_mbps: float = OUTAGE_MBPS,
    between: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draws the rates of all traces on one clock, and their outages as bars at the bottom.

    Raises `FigureError` without traces, for several traces of one name, or if no trace has rates in `between`.
    """
    _check(traces)
    shown = [_shown(trace, between) for trace in traces]
    if not any(len(rates) for _, rates in shown):
        last_s = max(len(trace.mbps) * trace.step_s for trace in traces)
        raise FigureError(f"no rates from {between}: the traces are from 0 to {last_s:g} s")
    with drawing(ax, "page", title) as axes:
        for row, ((trace, style), (start_s, rates)) in enumerate(zip(_styles(traces), shown, strict=True)):
            if len(rates):
                _draw_rates(axes, trace, start_s, rates, style)
            _draw_outages(axes, trace.outages(outage_mbps), row, style["color"])
        if between is not None:
            axes.set_xlim(between)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("rate (Mbit/s)")
        steps = ", ".join(f"{step:g}" for step in sorted({trace.step_s for trace in traces}))
        legend(axes, f"mean rates of {steps} s; bars below: less than {outage_mbps:g} Mbit/s")
    return axes


def plot_rate_distribution(traces: Sequence[RateTrace], *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draws the quantiles of the rates: the share of the time in which the rate is at most the one on the y axis.

    Raises `FigureError` without traces, or for several traces of one name.
    """
    _check(traces)
    with drawing(ax, "column", title) as axes:
        for trace, style in _styles(traces):
            axes.plot(_QUANTILES, np.percentile(trace.mbps, _QUANTILES), label=trace.name, **style)
        axes.set_xlim(0, 100)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time at this rate or less (%)")
        axes.set_ylabel("rate (Mbit/s)")
    return axes


def _check(traces: Sequence[RateTrace]) -> None:
    if not traces:
        raise FigureError("no trace to draw")
    names = [trace.name for trace in traces]
    if len(set(names)) < len(names):
        raise FigureError(f"several traces have the same name: {', '.join(names)}; give each another `name`")


def _styles(traces: Sequence[RateTrace]) -> list[tuple[RateTrace, dict[str, Any]]]:
    looks = path_looks([trace.name for trace in traces])
    return [(trace, line_style(looks[trace.name], markers=False)) for trace in traces]


def _shown(trace: RateTrace, between: tuple[float, float] | None) -> tuple[float, np.ndarray]:
    """Returns the time of the first rate, and the rates of the steps that are between two times."""
    if between is None:
        return 0.0, trace.mbps
    start_s, end_s = checked(between)
    first = max(math.floor(start_s / trace.step_s), 0)
    return first * trace.step_s, trace.mbps[first : max(math.ceil(end_s / trace.step_s), 0)]


def _draw_rates(axes: Axes, trace: RateTrace, start_s: float, rates: np.ndarray, style: dict[str, Any]) -> None:
    """Draws a step for each rate, to the end of the last one."""
    places = decimate_line(rates)
    times = start_s + trace.step_s * np.append(places, len(rates))
    axes.plot(times, np.append(rates[places], rates[-1]), drawstyle="steps-post", label=trace.name, **style)


def _draw_outages(axes: Axes, outages: Sequence[tuple[float, float]], row: int, color: str) -> None:
    """Draws a bar for each outage, in a row of the trace's own."""
    if outages:
        starts, ends = zip(*outages, strict=True)
        height = _OUTAGE_ROW * (row + 0.6)
        axes.hlines([height] * len(starts), starts, ends, color, linewidth=2.2, transform=axes.get_xaxis_transform())
