"""Scenarios: links and paths between two hosts, flows, and settings of runs.

The dataclasses have the keys of scenario files, which the book's chapter "Scenario files" defines.
"""

from anabranch.scenario.flow import Flow
from anabranch.scenario.scenario import Scenario, load
from anabranch.scenario.tables import (
    Aggregation,
    AssociationSettings,
    Background,
    Jitter,
    Link,
    LinkEvent,
    Loss,
    Path,
    Policer,
    Reliability,
    Reverse,
    RunSettings,
    Scheme,
    SmallMessages,
)

__all__ = [
    "Aggregation",
    "AssociationSettings",
    "Background",
    "Flow",
    "Jitter",
    "Link",
    "LinkEvent",
    "Loss",
    "Path",
    "Policer",
    "Reliability",
    "Reverse",
    "RunSettings",
    "Scenario",
    "Scheme",
    "SmallMessages",
    "load",
]
