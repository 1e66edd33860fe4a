"""Events of chunks: dropped by the network, declared lost, retransmitted, timed out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from anabranch.reporting.timeline.downsampling import evenly
from anabranch.reporting.timeline.model import EventKind, Events

if TYPE_CHECKING:
    import pandas as pd

MAX_EVENTS = 10_000
"""Maximum number of events of one kind that a path keeps, before the limit of a whole report applies."""

_TSNS = 2**32


def path_events(kind: EventKind, track: int, rows: pd.DataFrame, first_tsn: int) -> Iterator[Events]:
    """Yields the events of one kind and sender by path. Rows have `time_s`, `path`, and optionally `tsn` and `cause`.

    TSNs are counted from `first_tsn`, the first one of the association on the wire.

    A time-out that declared no chunk lost names no path.
    """
    for path, own in rows.groupby("path", sort=True, observed=True, dropna=False):
        kept = evenly(len(own), MAX_EVENTS)
        causes = own["cause"].astype(str) if "cause" in own else [""] * len(own)
        words, details = np.unique(np.asarray(causes, dtype=str), return_inverse=True)
        tsns = None
        if "tsn" in own:
            relative = (own["tsn"].to_numpy(dtype=np.int64) - first_tsn) % _TSNS
            tsns = relative.astype(np.uint32)[kept]
        yield Events(
            kind,
            track,
            path if isinstance(path, str) else None,
            own["time_s"].to_numpy(dtype=np.float64)[kept],
            tsns,
            details.astype(np.uint8)[kept],
            tuple(str(word) for word in words),
            len(own),
        )
