"""Work of a run: bulk data, a file, messages, or bulk data while a link is down."""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE_BYTES = 1000
MESSAGES_PER_S = 50


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a run. `seconds` is its duration, or the time after which a file is given up."""

    name: str
    kind: str
    seconds: float
    size: int = MESSAGE_BYTES
    outage: tuple[float, float] | None = None
    """Times at which the first link fails, and returns."""


def works(bulk_s: float, messages_s: float) -> dict[str, Work]:
    """Returns all works by name, for these durations of bulk data and of messages."""
    listed = [
        Work("bulk", "bulk", bulk_s),
        Work("file-1", "file", 30, 1_000_000),
        Work("file-10", "file", 40, 10_000_000),
        Work("file-100", "file", 600, 100_000_000),
        Work("messages", "messages", messages_s),
        Work("bulk-outage", "bulk", bulk_s, outage=_middle_third(bulk_s)),
        Work("messages-outage", "messages", messages_s, outage=_middle_third(messages_s)),
    ]
    return {work.name: work for work in listed}


def _middle_third(seconds: float) -> tuple[float, float]:
    return seconds / 3, 2 * seconds / 3
