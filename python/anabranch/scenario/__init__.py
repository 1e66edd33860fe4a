"""Scenarios: links and paths between two hosts, flows, and settings of runs.

The dataclasses have the keys of scenario files, which the book's chapter "Scenario files" defines.
"""

from anabranch.scenario.flow import Flow
from anabranch.scenario.link_tables import (
    Aggregation,
    Background,
    CapacityTrace,
    Fading,
    Jitter,
    Link,
    LinkEvent,
    Loss,
    Path,
    Policer,
    Queue,
    Reverse,
    SeriesTrace,
)
from anabranch.scenario.scenario import Scenario, load
from anabranch.scenario.tables import (
    AssociationSettings,
    Datagrams,
    Exchange,
    Handover,
    Reliability,
    RunSettings,
    Scheme,
    SmallMessages,
)

__all__ = [
    "Aggregation",
    "AssociationSettings",
    "Background",
    "CapacityTrace",
    "Datagrams",
    "Exchange",
    "Fading",
    "Flow",
    "Handover",
    "Jitter",
    "Link",
    "LinkEvent",
    "Loss",
    "Path",
    "Policer",
    "Queue",
    "Reliability",
    "Reverse",
    "RunSettings",
    "Scenario",
    "Scheme",
    "SeriesTrace",
    "SmallMessages",
    "load",
]
