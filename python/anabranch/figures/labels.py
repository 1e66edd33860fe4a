"""What axes are called, and in which unit figures are drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """What a metric is called on an axis. Drawn is its value times `factor`, in `unit`."""

    name: str
    unit: str = ""
    factor: float = 1.0

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


_MEASURES: dict[str, Measure] = {
    "goodput_kbps": Measure("goodput", "kbit/s"),
    "throughput_kbps": Measure("throughput", "kbit/s"),
    "duration_s": Measure("time counted", "s"),
    "retransmissions": Measure("retransmissions", "chunks"),
    "timeouts": Measure("time-outs", "T3 expiries"),
    "heartbeat_timeouts": Measure("HEARTBEATs without an answer"),
    "fast_retransmits": Measure("fast retransmissions", "SACKs"),
    "spurious_retransmissions": Measure("spurious retransmissions", "chunks"),
    "peak_reorder_bytes": Measure("most held by a receiver", "KiB", 1 / 1024),
    "rwnd_blocked_s": Measure("blocked by the receive window", "s"),
    "jain_index": Measure("Jain's index"),
    "transfer_s": Measure("transfer time", "s"),
    "delivered_bytes": Measure("delivered", "MB", 1e-6),
    "data_packets": Measure("packets with data that arrived"),
    "sent_packets": Measure("packets with data that left"),
    "drops": Measure("packets with data that were dropped"),
    "bytes": Measure("arrived", "MB", 1e-6),
    "share": Measure("share of the packets with data", "%", 100.0),
    "cwnd_bytes": Measure("cwnd", "KiB", 1 / 1024),
}

# Endings of names that say a unit.
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


def measure_of(metric: str) -> Measure:
    """How a metric is drawn; of one that is not known, what the ending of its name says."""
    if metric in _MEASURES:
        return _MEASURES[metric]
    for ending, (unit, factor) in _ENDINGS.items():
        if metric.endswith(ending):
            return Measure(metric.removesuffix(ending).replace("_", " "), unit, factor)
    return Measure(metric.replace("_", " "))


def key_label(key: str, unit: str = "") -> str:
    """What a swept key is called on an axis.

    >>> key_label("path.path-2.loss", "%")
    'loss on path-2 (%)'
    >>> key_label("association.recv_buffer", "KiB")
    'receive buffer (KiB)'
    """
    section, *middle, last = key.split(".") if "." in key else ("", key)
    name = _KEYS.get(last, last.replace("_", " "))
    if section in ("path", "link") and middle:
        where = f"all {section}s" if middle[0] == "*" else middle[0]
        # A key deeper down, as of cross traffic, is named in full.
        name = f"{name} on {where}" if len(middle) == 1 else f"{key}"
    return f"{name} ({unit})" if unit else name
