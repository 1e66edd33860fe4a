"""Schemes in Python: policies for slots of a scheme, with their inputs and decisions.

A scheduler is a class with a method `pick`, which chooses a path:

    class LowestRtt(anabranch.Scheduler):
        def pick(self, ask, view):
            return min(view.ready(), key=lambda path: path.smoothed_rtt_ms or 0.0, default=None)

    anabranch.run("two-path.toml", schemes=["cmt", LowestRtt()], seeds=10)
"""

from __future__ import annotations

from anabranch._native import (
    Acknowledged,
    AssociationFacts,
    Bind,
    Copies,
    Decision,
    DeliverySample,
    HeadOfLine,
    LostChunk,
    PaceAsk,
    Pacing,
    PathFacts,
    PathLoss,
    PolicyEvent,
    SendAsk,
    View,
    Wait,
    Window,
)
from anabranch.policy import allowed_objects as allowed_objects
from anabranch.policy.slots import CongestionControl, Policy, Retransmit, Scheduler

__all__ = [
    "Acknowledged",
    "AssociationFacts",
    "Bind",
    "CongestionControl",
    "Copies",
    "Decision",
    "DeliverySample",
    "HeadOfLine",
    "LostChunk",
    "PaceAsk",
    "Pacing",
    "PathFacts",
    "PathLoss",
    "Policy",
    "PolicyEvent",
    "Retransmit",
    "Scheduler",
    "SendAsk",
    "View",
    "Wait",
    "Window",
]
