"""Scenarios: links and paths between two hosts, flows, and settings of runs.

The dataclasses here mirror scenario files both ways; the book's chapter "Scenario files" says what each key means.
"""

from anabranch.scenario.flow import Flow
from anabranch.scenario.link import Background, Event, Link, Loss, Path, Reverse
from anabranch.scenario.scenario import Scenario, load
from anabranch.scenario.settings import Association, RunSettings, Scheme

__all__ = [
    "Association",
    "Background",
    "Event",
    "Flow",
    "Link",
    "Loss",
    "Path",
    "Reverse",
    "RunSettings",
    "Scenario",
    "Scheme",
    "load",
]
