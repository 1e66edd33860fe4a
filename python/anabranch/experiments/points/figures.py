"""Figures of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PathFigures:
    """Path of a run, over all flows: packets with DATA that were sent and dropped, and wire bytes that arrived."""

    sent_packets: int
    dropped_packets: int
    arrived_packets: int
    arrived_bytes: int
    delay_ms: float | None
    """Mean one-way delay of arrived packets; `None` if it was not measured or no packet arrived."""

    @property
    def sent_bytes(self) -> float:
        """Estimated number of wire bytes sent: the packets sent times the mean size of the packets that arrived."""
        return self.arrived_bytes * self.sent_packets / self.arrived_packets if self.arrived_packets else 0.0


@dataclass(frozen=True, slots=True)
class MessageDelays:
    """Delays of small messages beside a bulk flow."""

    sent: int
    delivered: int
    median_ms: float
    p99_ms: float
    queue_p99_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Goodput and delivered user bytes by flow, paths by name, and the delays of small messages by flow."""

    goodput_kbps: Mapping[str, float]
    delivered_bytes: Mapping[str, int]
    paths: Mapping[str, PathFigures]
    messages: Mapping[str, MessageDelays]


def read_figures(text: str) -> Figures:
    """Returns the figures in the text of the native module. Raises `ValueError` or `LookupError` for another text."""
    run = json.loads(text)
    return Figures(
        goodput_kbps={flow["name"]: flow["goodput_kbps"] for flow in run["flows"]},
        delivered_bytes={flow["name"]: flow["delivered_bytes"] for flow in run["flows"]},
        paths={path["name"]: _path(path) for path in run["paths"]},
        messages={
            flow["name"]: delays
            for flow in run["flows"]
            if (delays := _messages(flow.get("message_delays"))) is not None
        },
    )


def _path(path: Mapping[str, Any]) -> PathFigures:
    return PathFigures(
        sent_packets=path["sent_packets"],
        dropped_packets=path["drops"],
        arrived_packets=path["data_packets"],
        arrived_bytes=path["bytes"],
        delay_ms=path.get("delay_ms"),
    )


def _messages(delays: Mapping[str, Any] | None) -> MessageDelays | None:
    if delays is None or delays["p99_ms"] is None:
        return None
    names = ("sent", "delivered", "median_ms", "p99_ms", "queue_p99_ms")
    return MessageDelays(**{name: delays[name] for name in names})
