"""Figures of results and of single runs, with matplotlib.

Every `plot_*` takes `ax=` and returns the Axes it drew on. Schemes look the same in every figure (`look_of`), and
remain distinguishable in greyscale and under colour blindness. `save` writes SVG and PNG with reproducible bytes.

    import anabranch

    ax = anabranch.plot_metric(anabranch.Results.read("out/losses"), "goodput_kbps")
    anabranch.figures.save(ax, "goodput.svg")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.figures.bars import plot_bars as plot_bars
    from anabranch.figures.canvas import new_figure as new_figure
    from anabranch.figures.canvas import styled_axes as styled_axes
    from anabranch.figures.cwnd import plot_cwnd as plot_cwnd
    from anabranch.figures.metric import plot_metric as plot_metric
    from anabranch.figures.out_of_order import plot_out_of_order as plot_out_of_order
    from anabranch.figures.rates import RateTrace as RateTrace
    from anabranch.figures.rates import plot_rate_distribution as plot_rate_distribution
    from anabranch.figures.rates import plot_rates as plot_rates
    from anabranch.figures.regression import plot_regression as plot_regression
    from anabranch.figures.saving import save as save
    from anabranch.figures.style import Look as Look
    from anabranch.figures.style import look_of as look_of
    from anabranch.figures.style import looks as looks
    from anabranch.figures.style import path_looks as path_looks
    from anabranch.figures.throughput import plot_throughput as plot_throughput
    from anabranch.figures.transfer_time import plot_transfer_time as plot_transfer_time
    from anabranch.figures.tsn import plot_tsn as plot_tsn

# Loaded on first use: reports need the looks, but no matplotlib.
_HOMES = {
    "Look": "style",
    "RateTrace": "rates",
    "look_of": "style",
    "looks": "style",
    "new_figure": "canvas",
    "styled_axes": "canvas",
    "path_looks": "style",
    "plot_bars": "bars",
    "plot_cwnd": "cwnd",
    "plot_metric": "metric",
    "plot_out_of_order": "out_of_order",
    "plot_rate_distribution": "rates",
    "plot_rates": "rates",
    "plot_regression": "regression",
    "plot_throughput": "throughput",
    "plot_transfer_time": "transfer_time",
    "plot_tsn": "tsn",
    "save": "saving",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
