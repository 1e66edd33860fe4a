"""Scenarios: links and paths between two hosts, flows, and settings of runs.

The dataclasses here mirror scenario files both ways; the book's chapter "Scenario files" says what each key means.
"""

from anabranch.scenario.flow import Flow
from anabranch.scenario.scenario import Scenario, load
from anabranch.scenario.tables import (
    Aggregation,
    Association,
    Background,
    Event,
    Jitter,
    Link,
    Loss,
    MessagesBeside,
    Path,
    Policer,
    Reliability,
    Reverse,
    RunSettings,
    Scheme,
)

__all__ = [
    "Aggregation",
    "Association",
    "Background",
    "Event",
    "Flow",
    "Jitter",
    "Link",
    "Loss",
    "MessagesBeside",
    "Path",
    "Policer",
    "Reliability",
    "Reverse",
    "RunSettings",
    "Scenario",
    "Scheme",
    "load",
]
