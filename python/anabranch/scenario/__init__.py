"""Scenarios: links and paths between two hosts, flows, and settings of runs.

The dataclasses here mirror scenario files both ways; the book's chapter "Scenario files" says what each key means.
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
