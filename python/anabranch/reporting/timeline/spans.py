"""Times during which something held: the peer's receive window closed, a path out of service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anabranch.reporting.timeline.model import Seconds, SpanKind, Spans

if TYPE_CHECKING:
    import pandas as pd

MOST_SPANS = 20_000
"""Spans of one kind that a path keeps at the most, before all of a report share what there is room for."""


def blocked_spans(blocked: pd.DataFrame, track: int) -> Iterator[Spans]:
    """When only the peer's receive window kept data back, by the path of the hole.

    There is none while nothing was outstanding.
    """
    for path, rows in blocked.groupby("path", sort=True, observed=True, dropna=False):
        starts_s, ends_s = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
        yield _spans("blocked", track, path if isinstance(path, str) else None, starts_s, ends_s)


def state_spans(paths: pd.DataFrame, track: int, end_s: float) -> Iterator[Spans]:
    """When a path was in a state other than `Active`."""
    for path, rows in paths.groupby("path", sort=False, observed=True):
        times_s = rows["time_s"].to_numpy(dtype=np.float64)
        states = rows["state"].to_numpy(dtype=str)
        changed = np.flatnonzero(np.concatenate(([True], states[1:] != states[:-1])))
        starts_s, held = times_s[changed], states[changed]
        ends_s = np.append(starts_s[1:], end_s)
        for state in np.unique(held[held != "Active"]):
            own = (held == state) & (ends_s > starts_s)
            if own.any():
                yield _spans("state", track, str(path), starts_s[own], ends_s[own], str(state))


def longest(spans: Spans, most: int) -> Spans:
    """The longest of these spans, at most so many, in order of time."""
    lengths_s = spans.ends_s - spans.starts_s
    kept = np.sort(np.argsort(-lengths_s, kind="stable")[:most])
    return replace(spans, starts_s=spans.starts_s[kept], ends_s=spans.ends_s[kept])


def _spans(
    kind: SpanKind, track: int, path: str | None, starts_s: Seconds, ends_s: Seconds, state: str | None = None
) -> Spans:
    spans = Spans(kind, track, path, starts_s, ends_s, len(starts_s), float((ends_s - starts_s).sum()), state)
    return longest(spans, MOST_SPANS)
