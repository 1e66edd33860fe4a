"""Multipath SCTP: simulate it, measure it, compare its schemes, and use it.

The names below are loaded on first use, so that importing the package is fast.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch import errors as errors
    from anabranch import figures as figures
    from anabranch import policy as policy
    from anabranch import reporting as reporting
    from anabranch import statistics as statistics
    from anabranch import video as video
    from anabranch.catalogue import Card as Card
    from anabranch.catalogue import Catalogue as Catalogue
    from anabranch.catalogue import schemes as schemes
    from anabranch.figures.bars import plot_bars as plot_bars
    from anabranch.figures.cwnd import plot_cwnd as plot_cwnd
    from anabranch.figures.metric import plot_metric as plot_metric
    from anabranch.figures.out_of_order import plot_out_of_order as plot_out_of_order
    from anabranch.figures.rates import plot_rate_distribution as plot_rate_distribution
    from anabranch.figures.rates import plot_rates as plot_rates
    from anabranch.figures.regression import plot_regression as plot_regression
    from anabranch.figures.throughput import plot_throughput as plot_throughput
    from anabranch.figures.transfer_time import plot_transfer_time as plot_transfer_time
    from anabranch.figures.tsn import plot_tsn as plot_tsn
    from anabranch.policy import Bind as Bind
    from anabranch.policy import CongestionControl as CongestionControl
    from anabranch.policy import Copies as Copies
    from anabranch.policy import Decision as Decision
    from anabranch.policy import Pacing as Pacing
    from anabranch.policy import Retransmit as Retransmit
    from anabranch.policy import Scheduler as Scheduler
    from anabranch.policy import Wait as Wait
    from anabranch.policy import Window as Window
    from anabranch.reporting.document import report as report
    from anabranch.results import Results as Results
    from anabranch.scenario import Aggregation as Aggregation
    from anabranch.scenario import AssociationSettings as AssociationSettings
    from anabranch.scenario import Background as Background
    from anabranch.scenario import CapacityTrace as CapacityTrace
    from anabranch.scenario import Datagrams as Datagrams
    from anabranch.scenario import Exchange as Exchange
    from anabranch.scenario import Fading as Fading
    from anabranch.scenario import Flow as Flow
    from anabranch.scenario import Jitter as Jitter
    from anabranch.scenario import Link as Link
    from anabranch.scenario import LinkEvent as LinkEvent
    from anabranch.scenario import Loss as Loss
    from anabranch.scenario import Path as Path
    from anabranch.scenario import Policer as Policer
    from anabranch.scenario import Queue as Queue
    from anabranch.scenario import Reliability as Reliability
    from anabranch.scenario import Reverse as Reverse
    from anabranch.scenario import RunSettings as RunSettings
    from anabranch.scenario import Scenario as Scenario
    from anabranch.scenario import Scheme as Scheme
    from anabranch.scenario import SeriesTrace as SeriesTrace
    from anabranch.scenario import SmallMessages as SmallMessages
    from anabranch.series import Series as Series
    from anabranch.series import read_trace as read_trace
    from anabranch.simulation import Run as Run
    from anabranch.simulation import run as run
    from anabranch.sweeps import CacheWarning as CacheWarning
    from anabranch.sweeps import Precision as Precision
    from anabranch.sweeps import sweep as sweep
    from anabranch.transfer import connect as connect
    from anabranch.transfer import listen as listen
    from anabranch.transfer.files import recv as recv
    from anabranch.transfer.files import send as send
    from anabranch.version import Engine as Engine
    from anabranch.version import engine as engine

    __version__: str

# Module of each public name. The imports above are for type checkers; a test compares both.
_HOMES = {
    "Aggregation": "anabranch.scenario",
    "AssociationSettings": "anabranch.scenario",
    "Background": "anabranch.scenario",
    "Bind": "anabranch.policy",
    "CacheWarning": "anabranch.sweeps",
    "CapacityTrace": "anabranch.scenario",
    "Card": "anabranch.catalogue",
    "Catalogue": "anabranch.catalogue",
    "CongestionControl": "anabranch.policy",
    "Copies": "anabranch.policy",
    "Datagrams": "anabranch.scenario",
    "Decision": "anabranch.policy",
    "Engine": "anabranch.version",
    "Exchange": "anabranch.scenario",
    "Fading": "anabranch.scenario",
    "Flow": "anabranch.scenario",
    "Jitter": "anabranch.scenario",
    "Link": "anabranch.scenario",
    "LinkEvent": "anabranch.scenario",
    "Loss": "anabranch.scenario",
    "Pacing": "anabranch.policy",
    "Path": "anabranch.scenario",
    "Policer": "anabranch.scenario",
    "Precision": "anabranch.sweeps",
    "Queue": "anabranch.scenario",
    "Reliability": "anabranch.scenario",
    "Results": "anabranch.results",
    "Retransmit": "anabranch.policy",
    "Reverse": "anabranch.scenario",
    "Run": "anabranch.simulation",
    "RunSettings": "anabranch.scenario",
    "Scenario": "anabranch.scenario",
    "Scheduler": "anabranch.policy",
    "Scheme": "anabranch.scenario",
    "Series": "anabranch.series",
    "SeriesTrace": "anabranch.scenario",
    "SmallMessages": "anabranch.scenario",
    "Wait": "anabranch.policy",
    "Window": "anabranch.policy",
    "connect": "anabranch.transfer",
    "engine": "anabranch.version",
    "listen": "anabranch.transfer",
    "plot_bars": "anabranch.figures.bars",
    "plot_cwnd": "anabranch.figures.cwnd",
    "plot_metric": "anabranch.figures.metric",
    "plot_out_of_order": "anabranch.figures.out_of_order",
    "plot_rate_distribution": "anabranch.figures.rates",
    "plot_rates": "anabranch.figures.rates",
    "plot_regression": "anabranch.figures.regression",
    "plot_throughput": "anabranch.figures.throughput",
    "plot_transfer_time": "anabranch.figures.transfer_time",
    "plot_tsn": "anabranch.figures.tsn",
    "read_trace": "anabranch.series",
    "recv": "anabranch.transfer.files",
    "report": "anabranch.reporting.document",
    "run": "anabranch.simulation",
    "schemes": "anabranch.catalogue",
    "send": "anabranch.transfer.files",
    "sweep": "anabranch.sweeps",
}

# Modules that are also loaded on first use.
_MODULES = ("errors", "figures", "policy", "reporting", "statistics", "video")


if not TYPE_CHECKING:  # With it in sight, a type checker would take any name for one of the package's.

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            value = importlib.import_module(f"anabranch.{name}")
        elif name == "__version__":
            value = importlib.import_module("anabranch.version").engine().version
        elif name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'anabranch' has no attribute {name!r}")
        globals()[name] = value
        return value


def public(name: str) -> Any:
    """Returns the object of a public name. Methods such as `Results.plot` call modules of upper layers through it."""
    return getattr(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__", *_MODULES])
