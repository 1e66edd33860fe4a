"""Labels and units of axes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricLabel:
    """Name of a metric on an axis. The drawn value is the metric times `factor`, in `unit`."""

    name: str
    unit: str = ""
    factor: float = 1.0

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


_MEASURES: dict[str, MetricLabel] = {
    "goodput_kbps": MetricLabel("goodput", "kbit/s"),
    "throughput_kbps": MetricLabel("throughput", "kbit/s"),
    "duration_s": MetricLabel("time counted", "s"),
    "retransmissions": MetricLabel("retransmissions", "chunks"),
    "timeouts": MetricLabel("time-outs", "T3 expiries"),
    "heartbeat_timeouts": MetricLabel("HEARTBEATs without an answer"),
    "fast_retransmits": MetricLabel("fast retransmissions", "SACKs"),
    "spurious_retransmissions": MetricLabel("spurious retransmissions", "chunks"),
    "peak_reorder_bytes": MetricLabel("most held by a receiver", "KiB", 1 / 1024),
    "rwnd_blocked_s": MetricLabel("blocked by the receive window", "s"),
    "jain_index": MetricLabel("Jain's index"),
    "transfer_s": MetricLabel("transfer time", "s"),
    "delivered_bytes": MetricLabel("delivered", "MB", 1e-6),
    "data_packets": MetricLabel("packets with data that arrived"),
    "sent_packets": MetricLabel("packets with data that left"),
    "drops": MetricLabel("packets with data that were dropped"),
    "bytes": MetricLabel("arrived", "MB", 1e-6),
    "share": MetricLabel("share of the packets with data", "%", 100.0),
    "cwnd_bytes": MetricLabel("cwnd", "KiB", 1 / 1024),
}

# Suffixes of names that contain a unit.
_ENDINGS: dict[str, tuple[str, float]] = {
    "_kbps": ("kbit/s", 1.0),
    "_bytes": ("KiB", 1 / 1024),
    "_ms": ("ms", 1.0),
    "_s": ("s", 1.0),
}

_KEYS: dict[str, str] = {
    "loss": "loss",
    "delay": "one-way delay",
    "rate": "rate",
    "queue": "queue",
    "recv_buffer": "receive buffer",
    "send_buffer": "send buffer",
    "size": "file size",
    "mtu": "MTU",
}


def metric_label(metric: str) -> MetricLabel:
    """Returns the label of a metric. The label of an unknown metric is derived from the suffix of its name."""
    if metric in _MEASURES:
        return _MEASURES[metric]
    for ending, (unit, factor) in _ENDINGS.items():
        if metric.endswith(ending):
            return MetricLabel(metric.removesuffix(ending).replace("_", " "), unit, factor)
    return MetricLabel(metric.replace("_", " "))


def key_label(key: str, unit: str = "") -> str:
    """Returns the label of a swept key on an axis.

    >>> key_label("path.path-2.loss", "%")
    'loss on path-2 (%)'
    >>> key_label("association.recv_buffer", "KiB")
    'receive buffer (KiB)'
    """
    section, *middle, last = key.split(".") if "." in key else ("", key)
    name = _KEYS.get(last, last.replace("_", " "))
    if section in ("path", "link") and middle:
        where = f"all {section}s" if middle[0] == "*" else middle[0]
        # A key with more parts, such as a key of cross traffic, is named in full.
        name = f"{name} on {where}" if len(middle) == 1 else f"{key}"
    return f"{name} ({unit})" if unit else name
