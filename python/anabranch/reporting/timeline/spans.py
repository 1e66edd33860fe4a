"""Periods of a condition: the peer's receive window closed, or a path out of service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anabranch.reporting.timeline.model import Seconds, SpanKind, Spans

if TYPE_CHECKING:
    import pandas as pd

MAX_SPANS = 20_000
"""Maximum number of spans of one kind that a path keeps, before the limit of a whole report applies."""


def blocked_spans(blocked: pd.DataFrame, track: int) -> Iterator[Spans]:
    """Yields periods in which only the peer's receive window blocked data, by the path of the hole.

    Periods in which nothing was outstanding do not count.
    """
    for path, rows in blocked.groupby("path", sort=True, observed=True, dropna=False):
        starts_s, ends_s = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
        yield _spans("blocked", track, path if isinstance(path, str) else None, starts_s, ends_s)


def state_spans(paths: pd.DataFrame, track: int, end_s: float) -> Iterator[Spans]:
    """Yields periods in which a path was in a state other than `Active`."""
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
    """Returns the longest of these spans, at most `most`, in order of time."""
    lengths_s = spans.ends_s - spans.starts_s
    kept = np.sort(np.argsort(-lengths_s, kind="stable")[:most])
    return replace(spans, starts_s=spans.starts_s[kept], ends_s=spans.ends_s[kept])


def _spans(
    kind: SpanKind, track: int, path: str | None, starts_s: Seconds, ends_s: Seconds, state: str | None = None
) -> Spans:
    spans = Spans(kind, track, path, starts_s, ends_s, len(starts_s), float((ends_s - starts_s).sum()), state)
    return longest(spans, MAX_SPANS)
